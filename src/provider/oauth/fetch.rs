//! One request to a token endpoint, and what its failure means.

use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::{StatusCode, Url, header::HeaderMap};
use sovereign_relay_protocol::time::UnixMillis;

use super::{
    grant::Grant,
    keeper::TokenError,
    response::{self, Issued},
};
use crate::provider::{
    http::{causes, read_body},
    retry_after::retry_after,
};

/// A token endpoint that takes longer is treated as unreachable: pushes wait for it, and their own time is 10 s.
const FETCH_LIMIT: Duration = Duration::from_secs(8);
/// What a throttled endpoint is given when it names no time.
const DEFAULT_THROTTLE_WAIT: Duration = Duration::from_secs(1);
/// Tokens are a few KiB at most; Entra's are the longest.
const BODY_LIMIT: usize = 64 * 1024;

/// Where tokens come from. The keeper's tests have a double.
pub(crate) trait TokenSource: Send + Sync + 'static {
    /// Asks for a token now. Failures are logged inside, once, however many pushes wait.
    fn fetch(&self, now: UnixMillis) -> BoxFuture<'_, Result<Issued, TokenError>>;
}

/// An endpoint and what proves the relay to it.
pub(crate) struct TokenEndpoint {
    /// For logs and metrics.
    pub(crate) provider: &'static str,
    /// What is posted.
    pub(crate) grant: Grant,
    /// Where to.
    pub(crate) url: Url,
    /// How.
    pub(crate) http: reqwest::Client,
}

impl TokenSource for TokenEndpoint {
    fn fetch(&self, now: UnixMillis) -> BoxFuture<'_, Result<Issued, TokenError>> {
        Box::pin(self.ask(now))
    }
}

impl TokenEndpoint {
    async fn ask(&self, now: UnixMillis) -> Result<Issued, TokenError> {
        let provider = self.provider;
        metrics::counter!("relay_oauth_requests_total", "provider" => provider).increment(1);
        let form = self.grant.form(now).map_err(|error| {
            tracing::error!(provider, %error, "no access token can be asked for");
            TokenError::Refused
        })?;
        let request = self.http.post(self.url.clone()).form(&form).timeout(FETCH_LIMIT);
        let response = request.send().await.map_err(|error| {
            let cause = causes(error);
            tracing::warn!(provider, cause, "token endpoint not reached");
            TokenError::Unreachable
        })?;
        let status = response.status();
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(self.throttled(response.headers(), now));
        }
        let body = read_body(response, BODY_LIMIT, FETCH_LIMIT)
            .await
            .map_err(|error| {
                let (status, cause) = (status.as_u16(), error.to_string());
                tracing::warn!(
                    provider,
                    status,
                    cause,
                    "the token endpoint's answer could not be read"
                );
                without_token(status)
            })?;
        if status == StatusCode::OK
            && let Some(issued) = response::parse(&body)
        {
            return Ok(issued);
        }
        Err(self.no_token(status, &body))
    }

    fn throttled(&self, headers: &HeaderMap, now: UnixMillis) -> TokenError {
        let wait = retry_after(headers, now).unwrap_or(DEFAULT_THROTTLE_WAIT);
        let (provider, wait_seconds) = (self.provider, wait.as_secs());
        tracing::warn!(provider, wait_seconds, "token endpoint asks for fewer requests");
        TokenError::Throttled { wait }
    }

    /// Only an error in the form of RFC 6749, 5.2 is a refusal: whatever else comes may be some proxy's.
    fn no_token(&self, status: StatusCode, body: &[u8]) -> TokenError {
        let (provider, status, code) = (self.provider, status.as_u16(), response::error_code(body));
        if let (400 | 401 | 403, Some(code)) = (status, &code) {
            metrics::counter!(
                "relay_provider_refuses_relay_total", "provider" => provider, "reason" => "credentials"
            )
            .increment(1);
            tracing::error!(
                provider,
                status,
                code,
                "token endpoint refuses the relay's credentials"
            );
            return TokenError::Refused;
        }
        let code = code.as_deref().unwrap_or("unnamed");
        tracing::warn!(provider, status, code, "token endpoint gives no token");
        without_token(status)
    }
}

fn without_token(status: u16) -> TokenError {
    match status {
        500..=599 => TokenError::Unavailable,
        _ => TokenError::Unusable,
    }
}

#[cfg(test)]
mod tests;
