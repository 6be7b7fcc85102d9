//! Pushes to the relay as instances do: HTTP/1.1, one push a request, connections that are kept.

use std::net::SocketAddr;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use http_body_util::Full;
use serde_json::json;

use super::{PAYLOAD_BYTES, targets::Target};
use crate::{connections::Http1, instance, process::RelayProcess, run::Call};

/// Instances, and how they push.
pub(super) struct Through {
    connections: Http1,
    host: String,
    keys: Vec<String>,
    payload: String,
    platform: &'static str,
    target: fn(u64) -> Target,
    token: Box<Token>,
}

/// The address of a device.
pub(super) type Token = dyn Fn(u64) -> String + Send + Sync;

/// Which devices are pushed to.
pub(super) struct Devices {
    /// Theirs.
    pub(super) platform: &'static str,
    /// Whose turn it is.
    pub(super) target: fn(u64) -> Target,
    /// Their addresses.
    pub(super) token: Box<Token>,
}

impl Through {
    /// `keys`: of the instances.
    pub(super) fn new(relay: &RelayProcess, keys: Vec<String>, devices: Devices) -> anyhow::Result<Self> {
        Ok(Self {
            connections: Http1::to(&relay.url)?,
            host: relay.address()?.to_string(),
            keys,
            payload: "x".repeat(PAYLOAD_BYTES),
            platform: devices.platform,
            target: devices.target,
            token: devices.token,
        })
    }

    /// The bytes of a request, for somebody who will not read the answer.
    pub(super) fn request(&self, number: u64) -> anyhow::Result<Vec<u8>> {
        let (key, body) = self.key_and_body(number)?;
        let head = format!(
            "POST /v1/push HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len(),
        );
        Ok([head, body].concat().into_bytes())
    }

    /// Where the relay listens.
    pub(super) fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.host.parse()?)
    }

    /// Ends the connections that are kept.
    pub(super) fn close(&self) {
        self.connections.close();
    }

    async fn post(&self, number: u64) -> anyhow::Result<bool> {
        let (key, body) = self.key_and_body(number)?;
        let request = Request::post("/v1/push")
            .header("host", &self.host)
            .header(AUTHORIZATION, format!("Bearer {key}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        let (status, answer) = self.connections.call(request).await?;
        Ok(status == 200 && answer.starts_with(b"{\"result\":\"sent\""))
    }

    fn key_and_body(&self, number: u64) -> anyhow::Result<(&str, String)> {
        let Target { instance, device } = (self.target)(number);
        let key = self.keys.get(usize::try_from(instance)?);
        let body = json!({
            "deviceToken": (self.token)(device),
            "platform": self.platform,
            "encryptedPayload": self.payload,
        });
        Ok((key.context("no such instance")?, body.to_string()))
    }
}

impl Call for Through {
    async fn call(&self, number: u64) -> bool {
        self.post(number).await.unwrap_or(false)
    }
}

/// The keys of so many grown instances.
pub(super) fn keys(secret: &str, instances: u64) -> anyhow::Result<Vec<String>> {
    (0..instances).map(|_| instance::key(secret)).collect()
}
