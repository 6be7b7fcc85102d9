//! Enrolls at a relay and sends one sealed push.
//!
//! ```sh
//! cargo run -p sovereign-relay-client --example push -- https://relay.example ios <device token> <sealed payload>
//! ```
#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::{env, error::Error};

use sovereign_relay_client::{
    http::{Relay, push::PushOutcome},
    protocol::{enroll::EnrollRequest, platform::Platform, push::PushMessage, redacted::Redacted},
    trust::Trust,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [base, platform, token, payload] = arguments.as_slice() else {
        return Err("usage: push <relay> <platform> <device token> <sealed payload>".into());
    };
    run(base, platform, token, payload).await
}

/// The whole of it, at the relay `base`.
pub(crate) async fn run(
    base: &str,
    platform: &str,
    token: &str,
    payload: &str,
) -> Result<(), Box<dyn Error>> {
    let platform = Platform::parse(platform).ok_or("no such platform")?;
    let relay = Relay::new(base, &Trust::system()?)?;
    // An instance enrolls once and keeps its key.
    let enrollment = relay.enroll(&EnrollRequest::default(), None).await?;
    let instance = relay.instance(enrollment.instance_key);
    let message = PushMessage::new(platform, Redacted::new(token), Redacted::new(payload));
    match instance.push(&message).await? {
        PushOutcome::Sent { .. } => println!("sent"),
        PushOutcome::InvalidToken { since, .. } => {
            println!("gone: delete a registration older than {}", since.to_rfc3339());
        }
        PushOutcome::Failed {
            reason,
            retryable,
            retry_after,
        } => {
            println!("failed: {reason:?}, retryable: {retryable}, after {retry_after:?}");
        }
    }
    instance.withdraw().await?;
    Ok(())
}
