//! Registering this device with an instance, and taking that back.
//!
//! ```text
//! GET    {base}/api/account/push-device-token        -> is native push on, and this user's devices
//! POST   {base}/api/account/push-device-token        {platform, deviceToken, publicKey, environment?}
//! DELETE {base}/api/account/push-device-token/{id}
//! ```
//! Each call carries the user's session, and so goes to the instance alone: https (plain http to loopback by a flag, for
//! development), no redirects. Nothing is retried here; a [`CallError`] says whether a repeat makes sense. A repeated
//! registration is the same registration.
//!
//! An app registers at each start, after [`crate::Keys::open_or_make`], and whenever the system gives it a new token.

mod call;
mod error;

use std::{fmt, time::Duration};

use reqwest::{Certificate, ClientBuilder, Method, RequestBuilder, header, redirect::Policy};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sovereign_relay_protocol::{platform::Platform, redacted::Redacted};
use url::{Host, Url};

pub use self::error::{CallError, Refusal, SetupError};
use crate::{
    Keys,
    token::{DeviceToken, Environment},
};

const PATH: [&str; 3] = ["api", "account", "push-device-token"];
/// A handshake that takes longer is a dead end.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A phone's network may be slow; an app's user waits no longer than this.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// An instance, for the calls of one signed-in user.
#[derive(Clone)]
pub struct Instance {
    http: reqwest::Client,
    base: Url,
    session: Session,
}

/// How the instance knows its user. It prints nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Session {
    /// The `Cookie` header, `name=value`, as the app's web view has it.
    Cookie(Redacted),
    /// A bearer token.
    Bearer(Redacted),
}

/// Whom the app believes to be the instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trust<'a> {
    /// PEM certificates to trust beside the system's: those of a self-hosted instance with its own authority.
    pub extra_certificates: Option<&'a str>,
    /// Also `http://` to this machine, for development: the session travels in plain text.
    pub plain_loopback: bool,
}

/// What an instance knows of its user's devices.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registrations {
    /// Whether the instance sends to devices at all.
    pub relay_enabled: bool,
    /// The devices. Tokens and keys are not among what is told.
    #[serde(default)]
    pub devices: Vec<RegisteredDevice>,
}

/// One device of the user.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredDevice {
    /// Its name in [`Instance::revoke`].
    pub id: String,
    /// `None` for a platform of a later version.
    #[serde(deserialize_with = "known_platform")]
    pub platform: Option<Platform>,
    /// When it was registered, or last registered anew: Unix seconds, if the instance says it so.
    #[serde(default, deserialize_with = "whole_seconds")]
    pub created_at: Option<u64>,
    /// When a notification was last accepted for it.
    #[serde(default, deserialize_with = "whole_seconds")]
    pub last_used_at: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RegisterOut<'a> {
    platform: &'a str,
    device_token: &'a str,
    public_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Environment>,
}

impl Instance {
    /// The instance at `base`, such as `https://example.org` or `https://example.org/sovereign`.
    pub fn new(base: &str, session: Session, trust: Trust<'_>) -> Result<Self, SetupError> {
        let base = address(base, trust.plain_loopback)?;
        let http = client(&base, trust)?;
        session.check()?;
        Ok(Self { http, base, session })
    }

    /// Notifications for this user are sent to `token` from now on, sealed for `keys`.
    pub async fn register(&self, token: &DeviceToken, keys: &Keys) -> Result<(), CallError> {
        let body = RegisterOut {
            platform: token.platform().as_str(),
            device_token: token.expose(),
            public_key: keys.public_key(),
            environment: token.environment(),
        };
        let request = self.request(Method::POST, None).json(&body);
        call::send(request).await.map(|_| ())
    }

    /// The user's devices.
    pub async fn registrations(&self) -> Result<Registrations, CallError> {
        let answer = call::send(self.request(Method::GET, None)).await?;
        answer.json()
    }

    /// Notifications are no longer sent to the device with this id. Says whether there was one of this user.
    pub async fn revoke(&self, id: &str) -> Result<bool, CallError> {
        // The library leaves dots, tabs and line ends out of a path; none of it is an id.
        if matches!(id, "" | "." | "..") || id.contains(char::is_control) {
            return Ok(false);
        }
        match call::send(self.request(Method::DELETE, Some(id))).await {
            Ok(_) => Ok(true),
            Err(CallError::Refused(refusal)) if refusal.status == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn request(&self, method: Method, id: Option<&str>) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(PATH).extend(id);
        }
        let request = self.http.request(method, url);
        match &self.session {
            Session::Cookie(cookie) => request.header(header::COOKIE, cookie.expose()),
            Session::Bearer(token) => request.bearer_auth(token.expose()),
        }
    }
}

impl Session {
    /// A header has visible characters and single spaces; a line's end in it would begin another header.
    fn check(&self) -> Result<(), SetupError> {
        let (Self::Cookie(text) | Self::Bearer(text)) = self;
        let is_visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if !text.is_empty() && text.expose().bytes().all(is_visible) {
            Ok(())
        } else {
            Err(SetupError::Session)
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}

fn address(base: &str, plain_loopback: bool) -> Result<Url, SetupError> {
    let url = Url::parse(base).map_err(|_| SetupError::Address)?;
    let host = url.host().ok_or(SetupError::Address)?;
    let is_bare = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    match url.scheme() {
        "https" if is_bare => Ok(url),
        "http" if is_bare && plain_loopback && is_loopback(&host) => Ok(url),
        "http" => Err(SetupError::Plaintext),
        _ => Err(SetupError::Address),
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

fn client(base: &Url, trust: Trust<'_>) -> Result<reqwest::Client, SetupError> {
    let extra = Certificate::from_pem_bundle(trust.extra_certificates.unwrap_or_default().as_bytes());
    let extra = extra.map_err(SetupError::Certificates)?;
    if trust.extra_certificates.is_some() && extra.is_empty() {
        return Err(SetupError::NoCertificate);
    }
    let mut builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .timeout(CALL_LIMIT)
        .https_only(base.scheme() == "https");
    if base.scheme() == "http" {
        // This machine is reached without anybody's help.
        builder = builder.no_proxy();
    }
    with_roots(builder, extra).build().map_err(SetupError::Client)
}

/// The system's certificates and those of the app.
#[cfg(not(target_os = "android"))]
fn with_roots(builder: ClientBuilder, extra: Vec<Certificate>) -> ClientBuilder {
    if extra.is_empty() {
        builder
    } else {
        builder.tls_certs_merge(extra)
    }
}

/// Android gives its certificates to Java alone, so that Mozilla's take their place; an app's own take theirs.
#[cfg(target_os = "android")]
fn with_roots(builder: ClientBuilder, extra: Vec<Certificate>) -> ClientBuilder {
    if !extra.is_empty() {
        return builder.tls_certs_only(extra);
    }
    let roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let tls = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    builder.tls_backend_preconfigured(tls)
}

fn known_platform<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Platform>, D::Error> {
    Ok(Platform::parse(&String::deserialize(deserializer)?))
}

/// A time is for showing: one in another form is no reason to lose the list.
fn whole_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64())
}

#[cfg(test)]
mod tests;
