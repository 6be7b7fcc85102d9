//! What the relay answered.

use reqwest::{RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::Value;

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
    pub async fn from(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("the relay answers");
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.expect("a body");
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self {
            status,
            headers,
            body,
        }
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
