//! One POST to a push service (RFC 8030, 5), and how it ended.
//!
//! ```text
//!   head   TTL, Urgency, Topic, Content-Encoding, Authorization
//!   body   the sealed bytes as they are
//!   answer its status is the outcome; a little of its body is read, so that the connection can be used again
//! ```
//!
//! Invariant: what an answer can cost is bounded: connecting, the whole exchange and the bytes that are read each have
//! a limit. No redirect is followed, and no proxy of the environment is used: it would resolve names itself, and the
//! rule of [`super::address`] would hold no more.

use std::{error::Error as _, sync::Arc, time::Duration};

use reqwest::{
    Certificate, Client, RequestBuilder, Response,
    dns::Resolve,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
    redirect::Policy,
};
use sovereign_relay_protocol::platform::Priority;

use super::{
    Settings, SetupError,
    address::{NoPublicAddress, PublicOnly},
    outcome::{Failure, Outcome, RetryCause},
};

/// A handshake that takes longer is a dead end; the push is repeated later.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Services answer with a line at most.
const MOST_ANSWER_BYTES: usize = 4096;
/// The rest of an answer is worth one connection set up anew, and no more.
const ANSWER_BODY_LIMIT: Duration = Duration::from_secs(1);
/// Connections of one service that wait for the next push ...
const IDLE_PER_HOST: usize = 8;
/// ... so long: hosts are the users' choice, so that many may be kept.
const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// What is said about a push in the open.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// How soon the browser should learn of it.
    pub priority: Priority,
    /// How long the service may keep it for a browser that is not there; 0 is now or never.
    pub ttl_seconds: u32,
    /// Replaces what waits under the same tag. The service sees a hash that it can't guess the tag from.
    pub tag: Option<&'a str>,
}

/// The client that all pushes go through.
pub(super) fn client(settings: &Settings, names: Arc<dyn Resolve>) -> Result<Client, SetupError> {
    let extra = settings.extra_ca.as_deref().unwrap_or_default();
    let extra = Certificate::from_pem_bundle(extra.as_bytes()).map_err(SetupError::Client)?;
    Client::builder()
        .dns_resolver(Arc::new(PublicOnly::new(names, settings.addresses)))
        .redirect(Policy::none())
        .no_proxy()
        .tls_certs_merge(extra)
        .connect_timeout(CONNECT_LIMIT)
        .timeout(settings.answer_within)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .pool_idle_timeout(IDLE_LIMIT)
        .user_agent(concat!("sovereign-instance/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(SetupError::Client)
}

/// Sets the head, all but `Authorization`, and the body.
pub(super) fn head(
    request: RequestBuilder,
    delivery: &Delivery<'_>,
    topic: Option<String>,
    sealed: Vec<u8>,
) -> RequestBuilder {
    let request = request
        .header(CONTENT_ENCODING, "aes128gcm")
        .header(CONTENT_TYPE, "application/octet-stream")
        .header("TTL", delivery.ttl_seconds)
        .header("Urgency", urgency(delivery.priority))
        .body(sealed);
    match topic {
        Some(topic) => request.header("Topic", topic),
        None => request,
    }
}

/// Reads what is left of an answer, as long as it is little and comes at once.
pub(super) async fn drain(mut response: Response) {
    let within = async {
        let mut bytes_read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes_read += chunk.len();
            if bytes_read > MOST_ANSWER_BYTES {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(ANSWER_BODY_LIMIT, within).await;
}

/// Why there is no answer.
pub(super) fn outcome_of_error(error: &reqwest::Error) -> Outcome {
    if refused_by_resolver(error) {
        return Outcome::Failed(Failure::NotPublic);
    }
    if error.is_builder() {
        return Outcome::Failed(Failure::Rejected);
    }
    let cause = if error.is_connect() {
        RetryCause::NotReached
    } else if error.is_timeout() {
        RetryCause::TimedOut
    } else {
        RetryCause::Lost
    };
    Outcome::retry(cause)
}

fn refused_by_resolver(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(current) = cause {
        if current.is::<NoPublicAddress>() {
            return true;
        }
        cause = current.source();
    }
    false
}

fn urgency(priority: Priority) -> &'static str {
    match priority {
        Priority::High => "high",
        Priority::Normal => "normal",
    }
}
