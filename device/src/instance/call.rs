//! One call: a request out, JSON or the reason for none back, bounded.

use std::time::Duration;

use reqwest::{
    RequestBuilder, Response,
    header::{HeaderMap, RETRY_AFTER},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::error::{CallError, Refusal};

/// Hundreds of devices, with room to spare.
const ANSWER_BYTES: usize = 256 * 1024;
/// A sentence for a person; what is longer is not one.
const MESSAGE_CHARS: usize = 300;
/// What an instance says with 503 when it only can't tell right now who asks, or has too much to do.
const PASSING: [&str; 3] = ["unavailable", "overloaded", "draining"];

/// An answer that says yes.
#[derive(Debug)]
pub(super) struct Answer {
    status: u16,
    body: Vec<u8>,
}

/// How instances say no.
#[derive(Deserialize)]
struct RefusalIn {
    error: String,
    #[serde(default)]
    message: String,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_slice(&self.body).map_err(|_| CallError::Unreadable(self.status))
    }
}

/// Sends, and reads the answer.
pub(super) async fn send(request: RequestBuilder) -> Result<Answer, CallError> {
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let body = body(response).await?;
    if status.is_success() {
        let answer = Answer {
            status: status.as_u16(),
            body,
        };
        // A captive portal's page comes with 200, too.
        answer.json::<serde_json::Map<String, serde_json::Value>>()?;
        return Ok(answer);
    }
    Err(refusal(status.as_u16(), &body, retry_after))
}

/// Which no it is.
pub(super) fn refusal(status: u16, body: &[u8], retry_after: Option<Duration>) -> CallError {
    if status == 401 {
        return CallError::Unauthenticated;
    }
    let Ok(said) = serde_json::from_slice::<RefusalIn>(body) else {
        return CallError::Unreadable(status);
    };
    let is_passing = retry_after.is_some() || PASSING.contains(&said.error.as_str());
    if status == 503 && !is_passing {
        return CallError::PushOff;
    }
    CallError::Refused(Refusal {
        status,
        code: said.error,
        message: said.message.chars().take(MESSAGE_CHARS).collect(),
        retry_after,
    })
}

async fn body(mut response: Response) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(CallError::Unreadable(response.status().as_u16()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The address may hold more than a log should.
fn unreachable(error: reqwest::Error) -> CallError {
    CallError::Unreachable(error.without_url())
}

/// Whole seconds; the other form of the header is a proxy's, and no hint is as good as that.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
