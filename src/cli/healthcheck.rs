//! `healthcheck`: `GET /livez` on the public listener, for container engines that need a command.

use super::{admin_api, environment, exit::CommandError, output};
use crate::config::{Flags, Listen, Sources};

/// Exit 0: alive. 1: it answered something else. 3: it did not answer.
pub(crate) async fn run(flags: &Flags) -> Result<(), CommandError> {
    let listen = Listen::load(&Sources::open(flags, &environment)?)?;
    let listener = admin_api::reachable(listen.address);
    let url = format!("http://{listener}/livez");
    let sent = admin_api::client()?.get(url).send().await;
    let status = sent
        .map_err(|error| admin_api::unreachable(&error, listener, "RELAY_LISTEN"))?
        .status();
    if status.is_success() {
        return output::print("alive");
    }
    Err(CommandError::failed(format!("/livez answered {status}")))
}
