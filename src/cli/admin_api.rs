//! A client of a running relay's admin API, for the commands of the operator.
//!
//! It finds the relay and the token as the relay itself does: `RELAY_ADMIN_LISTEN`, then `RELAY_ADMIN_TOKEN` or the
//! file that the relay keeps in its data folder.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::{Client, Method, Response, StatusCode};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sovereign_relay_protocol::redacted::Redacted;

use super::{environment, exit::CommandError};
use crate::{
    config::{Admin, Flags, Sources, Storage, Tls},
    defaults,
    store::embedded::read_admin_token,
};

/// The setting that says where the admin listener is.
const ADDRESS: &str = "RELAY_ADMIN_LISTEN";

/// One relay's admin API.
pub(crate) struct AdminApi {
    client: Client,
    /// Where the admin listener is.
    listener: SocketAddr,
    base: String,
    token: Redacted,
}

impl AdminApi {
    /// From the settings; nothing is connected yet.
    pub(crate) fn find(flags: &Flags) -> Result<Self, CommandError> {
        let sources = Sources::open(flags, &environment)?;
        let admin = Admin::load(&sources)?;
        let token = match admin.token {
            Some(token) => token,
            None => read_token(&Storage::load(&sources, &Tls::default())?)?,
        };
        let listener = reachable(admin.listen);
        Ok(Self {
            client: client()?,
            listener,
            base: format!("http://{listener}/admin/v1"),
            token,
        })
    }

    /// GET, answered as `T`.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandError> {
        let request = self.client.request(Method::GET, format!("{}{path}", self.base));
        parse(self.send(request).await?).await
    }

    /// POST of a JSON body, answered as `T`.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, CommandError> {
        let request = self
            .client
            .request(Method::POST, format!("{}{path}", self.base))
            .json(body);
        parse(self.send(request).await?).await
    }

    /// GET, as the text that came.
    pub(crate) async fn get_text(&self, path: &str) -> Result<String, CommandError> {
        let request = self.client.request(Method::GET, format!("{}{path}", self.base));
        self.send(request)
            .await?
            .text()
            .await
            .map_err(|error| unreachable(&error, self.listener, ADDRESS))
    }

    /// PUT of JSON text, answered as `T`.
    pub(crate) async fn put_text<T: DeserializeOwned>(
        &self,
        path: &str,
        body: String,
    ) -> Result<T, CommandError> {
        let request = self.client.request(Method::PUT, format!("{}{path}", self.base));
        let request = request
            .header(reqwest::header::CONTENT_TYPE, "application/json")
            .body(body);
        parse(self.send(request).await?).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, CommandError> {
        let sent = request.bearer_auth(self.token.expose()).send().await;
        let response = sent.map_err(|error| unreachable(&error, self.listener, ADDRESS))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        Err(refusal(status, response.json().await.ok()))
    }
}

/// A client for this machine: no proxy, no certificates (a container may have none), no patience.
pub(crate) fn client() -> Result<Client, CommandError> {
    Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .timeout(defaults::CLI_TIMEOUT)
        .build()
        .map_err(CommandError::failed)
}

/// Where a listener is reached from this machine: one on all addresses, at loopback.
pub(crate) fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// One line: nothing answered, or not in HTTP. `setting`: what says where it was looked for.
pub(crate) fn unreachable(error: &reqwest::Error, listener: SocketAddr, setting: &str) -> CommandError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    CommandError::unreachable(format!(
        "the relay was not reached at {listener}: {cause}; is it running, and is {setting} the same here as there?"
    ))
}

fn read_token(storage: &Storage) -> Result<Redacted, CommandError> {
    let folder = storage.data_dir.display();
    let missing = || {
        format!(
            "is the relay running? None has kept an admin token in {folder}; for one that runs elsewhere, set \
             RELAY_ADMIN_TOKEN"
        )
    };
    read_admin_token(&storage.data_dir)
        .map_err(|error| {
            CommandError::failed(format!(
                "set RELAY_ADMIN_TOKEN, or run this as the relay's user: {error}"
            ))
        })?
        .ok_or_else(|| CommandError::unreachable(missing()))
}

#[derive(Deserialize)]
struct ErrorBody {
    error: String,
    message: String,
}

fn refusal(status: StatusCode, body: Option<ErrorBody>) -> CommandError {
    let said = body.map(|body| format!("{} ({})", body.message, body.error));
    let said = said.unwrap_or_else(|| format!("the relay answered {status}"));
    if status != StatusCode::UNAUTHORIZED {
        return CommandError::refused(said);
    }
    CommandError::refused(format!(
        "{said}; the token is RELAY_ADMIN_TOKEN where that is set, else of the file admin-token in RELAY_DATA_DIR: both \
         have to be the relay's own"
    ))
}

async fn parse<T: DeserializeOwned>(response: Response) -> Result<T, CommandError> {
    let answer = response.json().await;
    answer
        .map_err(|_| CommandError::failed("the relay's answer was not understood: is it of another version?"))
}
