//! Sessions, made over the relay's API.

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::{Request, header::AUTHORIZATION};
use http_body_util::Full;
use sovereign_relay_protocol::{
    redacted::Redacted,
    signal::{
        id::Slot,
        session::{SessionCreated, Tickets},
    },
};

use crate::{connections::Http1, instance};

/// Sessions of one instance: fewer than it may make in a minute.
const OF_INSTANCE: usize = 100;
/// Calls at once.
const AT_ONCE: usize = 32;

/// Makes sessions and gives both tickets of each, side by side.
pub(super) async fn make(url: &str, secret: &str, count: usize) -> anyhow::Result<Vec<Redacted>> {
    let keys = (0..count.div_ceil(OF_INSTANCE)).map(|_| instance::key(secret));
    let keys = keys.collect::<anyhow::Result<Vec<_>>>()?;
    let connections = Http1::to(url)?;
    let host = url.trim_start_matches("http://");
    let made: Vec<[Redacted; 2]> = stream::iter(0..count)
        .map(|number| create(&connections, host, keys.get(number / OF_INSTANCE)))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(made.into_iter().flatten().collect())
}

async fn create(connections: &Http1, host: &str, key: Option<&String>) -> anyhow::Result<[Redacted; 2]> {
    let key = key.context("no such instance")?;
    let request = Request::post("/v1/signal/sessions")
        .header("host", host)
        .header(AUTHORIZATION, format!("Bearer {key}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from_static(br#"{"ttlSeconds":600}"#)))?;
    let (status, answer) = connections.call(request).await?;
    if status != 201 {
        bail!("no session: {status} {}", String::from_utf8_lossy(&answer));
    }
    let Tickets { a, b } = serde_json::from_slice::<SessionCreated>(&answer)?.tickets;
    let missing = |slot: Slot| format!("no ticket for slot {}", slot.as_str());
    Ok([
        a.with_context(|| missing(Slot::A))?,
        b.with_context(|| missing(Slot::B))?,
    ])
}
