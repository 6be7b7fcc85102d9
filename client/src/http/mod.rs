//! The relay's HTTP API, typed: [`Relay`] is what anyone may call, [`Instance`] what needs a key.
//!
//! Nothing is retried here: a caller knows what a repeat costs, and every failure says whether and when one makes
//! sense.

mod call;
pub mod error;
pub mod push;
pub mod sessions;

use std::{fmt, time::Duration};

use reqwest::{Method, RequestBuilder, redirect::Policy};
use serde::{Deserialize, Serialize};
use sovereign_relay_protocol::{
    capabilities::Capabilities,
    enroll::EnrollRequest,
    id::InstanceId,
    push::PushMessage,
    redacted::Redacted,
    signal::{
        id::SessionId,
        session::{SessionCreated, SessionView},
    },
    time::UnixMillis,
};
use url::Url;

use self::{
    error::{CallError, Refusal, SetupError},
    push::{AnswerIn, BatchIn, BatchOut, PushOut, PushOutcome},
    sessions::SessionSettings,
};
use crate::trust::{AddressError, Trust};

/// A handshake that takes longer is a dead end.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A relay gives a push its deadline, 10 s or what the operator says, up to 17 s; the rest is the way there and back.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// A batch's messages take turns at the relay: eight times the deadline, 136 s at most.
const BATCH_LIMIT: Duration = Duration::from_secs(150);

/// The longest key that a relay may give: servers take 8 KiB of headers at least.
const KEY_BYTES: usize = 4096;

/// A relay, for calls that need no key.
#[derive(Clone)]
pub struct Relay {
    http: reqwest::Client,
    base: Url,
}

/// A relay, for the calls of an enrolled instance.
#[derive(Clone)]
pub struct Instance {
    relay: Relay,
    key: InstanceKey,
}

/// The secret of an enrolled instance. It prints nothing. What a relay gives is taken for one only if a header can
/// carry it: a key that can't be sent would never be refused, and so never be replaced.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "Redacted")]
pub struct InstanceKey(Redacted);

/// A new instance.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enrollment {
    /// Its name at the relay.
    pub instance_id: InstanceId,
    /// Keep it: it is told once.
    pub instance_key: InstanceKey,
}

/// A new key.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotation {
    /// The instance.
    pub instance_id: InstanceId,
    /// The new key.
    pub instance_key: InstanceKey,
    /// The old key works until then.
    pub previous_valid_until: UnixMillis,
}

#[derive(Serialize)]
struct EnrollOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contact: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RotateOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_seconds: Option<u64>,
}

impl InstanceKey {
    /// A key that was kept.
    pub fn new(key: impl Into<String>) -> Self {
        Self(Redacted::new(key))
    }

    /// The key itself, for keeping it.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl TryFrom<Redacted> for InstanceKey {
    type Error = &'static str;

    fn try_from(key: Redacted) -> Result<Self, Self::Error> {
        let fits = (1..=KEY_BYTES).contains(&key.len());
        if fits && key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(key))
        } else {
            Err("not a key that a header can carry")
        }
    }
}

impl Relay {
    /// The relay at `base`, such as `https://relay.example`.
    pub fn new(base: &str, trust: &Trust) -> Result<Self, SetupError> {
        let mut base = trust.address(base, "https", "http")?;
        if base.cannot_be_a_base() || base.query().is_some() || base.fragment().is_some() {
            return Err(AddressError::Malformed.into());
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let mut builder = reqwest::Client::builder();
        if base.scheme() == "http" {
            // This machine is reached without anybody's help: a proxy of the environment would read the key.
            builder = builder.no_proxy();
        }
        let http = builder
            .tls_backend_preconfigured(trust.tls(&[b"h2", b"http/1.1"]))
            .redirect(Policy::none())
            .connect_timeout(CONNECT_LIMIT)
            .timeout(CALL_LIMIT)
            .build()
            .map_err(SetupError::Client)?;
        Ok(Self { http, base })
    }

    /// Becomes an instance of this relay; with an invite where the operator asks for one.
    pub async fn enroll(
        &self,
        request: &EnrollRequest,
        invite: Option<&Redacted>,
    ) -> Result<Enrollment, CallError> {
        let body = EnrollOut {
            name: request.name.as_ref().map(Redacted::expose),
            contact: request.contact.as_ref().map(Redacted::expose),
        };
        let call = self.call(Method::POST, "v1/enroll").json(&body);
        call::json(match invite {
            Some(invite) => call.bearer_auth(invite.expose()),
            None => call,
        })
        .await
    }

    /// What will work here.
    pub async fn capabilities(&self) -> Result<Capabilities, CallError> {
        call::json(self.call(Method::GET, "v1/capabilities")).await
    }

    /// The calls of an instance.
    pub fn instance(&self, key: InstanceKey) -> Instance {
        let relay = self.clone();
        Instance { relay, key }
    }

    fn call(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        self.http.request(method, url)
    }
}

impl Instance {
    /// The key that it calls with.
    pub fn key(&self) -> &InstanceKey {
        &self.key
    }

    /// Sends one push.
    pub async fn push(&self, message: &PushMessage) -> Result<PushOutcome, CallError> {
        let call = self.call(Method::POST, "v1/push").json(&PushOut::new(message));
        let answer: AnswerIn = call::json(call).await?;
        answer.outcome().ok_or(CallError::Unreadable(200))
    }

    /// Sends 1 to 500 pushes, and gives what became of each in their order.
    pub async fn push_batch(
        &self,
        messages: &[PushMessage],
    ) -> Result<Vec<Result<PushOutcome, Refusal>>, CallError> {
        let answer: BatchIn = call::json(self.batch_call(messages)).await?;
        answer.outcomes(messages.len()).ok_or(CallError::Unreadable(200))
    }

    fn batch_call(&self, messages: &[PushMessage]) -> RequestBuilder {
        self.call(Method::POST, "v1/push/batch")
            .timeout(BATCH_LIMIT)
            .json(&BatchOut::new(messages))
    }

    /// Asks for a new key; the old one goes on working for `grace`, 24 h by default. Use the new one from now on.
    pub async fn rotate(&self, grace: Option<Duration>) -> Result<Rotation, CallError> {
        let grace_seconds = grace.map(|grace| grace.as_secs());
        let call = self.call(Method::POST, "v1/keys/rotate");
        call::json(call.json(&RotateOut { grace_seconds })).await
    }

    /// Withdraws from the relay: the key is worth nothing from then on.
    pub async fn withdraw(self) -> Result<(), CallError> {
        call::nothing(self.call(Method::DELETE, "v1/enrollment")).await
    }

    /// Makes a session, or finds the one at its rendezvous. [`sessions::invitation`] makes the ways in.
    pub async fn create_session(&self, settings: &SessionSettings) -> Result<SessionCreated, CallError> {
        call::json(
            self.call(Method::POST, "v1/signal/sessions")
                .json(&settings.out()),
        )
        .await
    }

    /// Who is in a session, and how much waits for them.
    pub async fn session(&self, id: SessionId) -> Result<SessionView, CallError> {
        call::json(self.call(Method::GET, &format!("v1/signal/sessions/{id}"))).await
    }

    /// Ends a session: nothing of it is delivered from then on.
    pub async fn delete_session(&self, id: SessionId) -> Result<(), CallError> {
        call::nothing(self.call(Method::DELETE, &format!("v1/signal/sessions/{id}"))).await
    }

    fn call(&self, method: Method, path: &str) -> RequestBuilder {
        self.relay.call(method, path).bearer_auth(self.key.expose())
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
