//! HTTP/1.1 by hand, so that a test decides every byte and sees every header.

use std::{net::SocketAddr, sync::LazyLock, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::documented::{self, Seen};
use crate::http::openapi;

/// Everything waits for its event at most this long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// One request, as bytes.
pub(crate) struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            head: format!("{method} {path} HTTP/1.1\r\nHost: relay\r\n"),
            body: Vec::new(),
        }
    }

    /// A push with a body of the deployed runtime's form, without a key.
    pub(crate) fn push() -> Self {
        Self::new("POST", "/v1/push").json(&message())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", &body.to_string())
    }

    pub(crate) fn body(self, content_type: &str, body: &str) -> Self {
        let mut request = self
            .header("Content-Type", content_type)
            .header("Content-Length", &body.len().to_string());
        request.body = body.as_bytes().to_vec();
        request
    }

    /// A body whose headers are there already.
    pub(crate) fn raw_body(self, body: &str) -> Self {
        Self {
            body: body.as_bytes().to_vec(),
            ..self
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.head).into_bytes();
        bytes.extend(self.body);
        bytes
    }
}

pub(crate) fn message() -> Value {
    serde_json::json!({"deviceToken": "token", "platform": "android", "encryptedPayload": "c2VhbGVk"})
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Checks that this is an error of the one form, and gives its code.
    pub(crate) fn error(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        assert!(self.header("x-request-id").is_some(), "{self:?}");
        let body = self.json();
        assert_eq!(body.as_object().unwrap().len(), 2, "{self:?}");
        assert!(body["message"].as_str().unwrap().len() > 10, "{self:?}");
        body["error"].as_str().unwrap().to_owned()
    }

    /// Status and code.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.error())
    }

    /// The same answer, if the document says that this request may have it.
    pub(crate) fn documented(self, request: &[u8]) -> Self {
        static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(openapi::text()).unwrap());
        let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let (method, rest) = line.split_once(' ').unwrap_or_default();
        let body = serde_json::from_slice::<Value>(&self.body).ok();
        let seen = Seen {
            method,
            path: rest.split(' ').next().unwrap_or_default(),
            status: self.status,
            body: body.as_ref(),
        };
        documented::check(&DOCUMENT, &seen).unwrap_or_else(|fault| panic!("{fault}: {self:?}"));
        self
    }
}

/// Sends all bytes on a fresh connection and reads one answer, which the document must know.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // The relay may answer and close before it has read everything.
    let _ = socket.write_all(request).await;
    let answer = read_answer(&mut socket, request.starts_with(b"HEAD")).await;
    answer.documented(request)
}

/// Reads one answer off an open connection.
pub(crate) async fn read_answer(socket: &mut TcpStream, without_body: bool) -> Answer {
    tokio::time::timeout(DEADLINE, read(socket, without_body))
        .await
        .expect("an answer before the deadline")
}

async fn read(socket: &mut TcpStream, without_body: bool) -> Answer {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(socket, &mut bytes).await;
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, n)| n.parse().unwrap());
    let wanted = head_end + if without_body { 0 } else { length };
    while bytes.len() < wanted {
        more(socket, &mut bytes).await;
    }
    Answer {
        status,
        headers,
        body: bytes[head_end..].to_vec(),
    }
}

async fn more(socket: &mut TcpStream, bytes: &mut Vec<u8>) {
    let read = socket.read_buf(bytes).await.unwrap();
    assert!(
        read > 0,
        "the connection ended inside an answer: {:?}",
        String::from_utf8_lossy(bytes)
    );
}
