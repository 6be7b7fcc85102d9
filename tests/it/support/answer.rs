//! What the relay answered.

use std::sync::LazyLock;

use reqwest::{RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::Value;

use super::documented::{self, Seen};

/// An enrolled instance.
#[derive(Clone, Debug)]
pub struct Instance {
    pub id: String,
    pub key: String,
}

/// An answer, whole.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    /// Sends a request. Its answer must be one that the relay's own document knows.
    pub async fn from(request: RequestBuilder) -> Self {
        let (client, request) = request.build_split();
        let request = request.expect("a request");
        let (method, path) = (request.method().to_string(), request.url().path().to_owned());
        let response = client.execute(request).await.expect("the relay answers");
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.expect("a body");
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let answer = Self {
            status,
            headers,
            body,
        };
        answer.documented(&method, &path)
    }

    /// The same answer, if the document says that this request may have it.
    pub fn documented(self, method: &str, path: &str) -> Self {
        static DOCUMENT: LazyLock<Value> =
            LazyLock::new(|| serde_json::from_str(sovereign_relay::http::openapi::text()).unwrap());
        // A proxy's own: every answer of the relay has an id.
        if !self.headers.contains_key("x-request-id") {
            return self;
        }
        let seen = Seen {
            method,
            path,
            status: self.status.as_u16(),
            body: Some(&self.body),
        };
        documented::check(&DOCUMENT, &seen).unwrap_or_else(|fault| panic!("{fault}: {self:?}"));
        self
    }

    /// `result` of a push answer, or `error` of a refusal.
    pub fn word(&self) -> &str {
        let word = self.body.get("result").or_else(|| self.body.get("error"));
        word.and_then(Value::as_str)
            .unwrap_or_else(|| panic!("neither result nor error in {self:?}"))
    }

    pub fn reason(&self) -> &str {
        self.body["reason"]
            .as_str()
            .unwrap_or_else(|| panic!("no reason in {self:?}"))
    }

    pub fn retry_after(&self) -> u64 {
        let header = self
            .headers
            .get("retry-after")
            .unwrap_or_else(|| panic!("no Retry-After in {self:?}"));
        header.to_str().unwrap().parse().unwrap()
    }
}
