//! One call: JSON out, JSON or a refusal back, both bounded.

use std::time::Duration;

use reqwest::{
    RequestBuilder, Response, StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};
use serde::de::DeserializeOwned;

use super::error::{CallError, Refusal};

/// A batch of 500 answers, with room to spare.
const ANSWER_BYTES: usize = 1024 * 1024;

/// Sends and parses the answer.
pub(super) async fn json<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, CallError> {
    let (status, body) = answer(request).await?;
    serde_json::from_slice(&body).map_err(|_| CallError::Unreadable(status.as_u16()))
}

/// Sends, and expects nothing back.
pub(super) async fn nothing(request: RequestBuilder) -> Result<(), CallError> {
    answer(request).await.map(|_| ())
}

async fn answer(request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), CallError> {
    let response = request.send().await.map_err(CallError::of_transport)?;
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let body = body(response).await?;
    if status.is_success() {
        return Ok((status, body));
    }
    match serde_json::from_slice(&body) {
        Ok(wire) => Err(Refusal::new(wire, Some(status.as_u16()), retry_after).into()),
        Err(_) => Err(CallError::Unreadable(status.as_u16())),
    }
}

async fn body(mut response: Response) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(CallError::of_transport)? {
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(CallError::Unreadable(response.status().as_u16()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// A relay says whole seconds; the other form of the header is a proxy's, and no hint is as good as that.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
