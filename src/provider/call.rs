//! One push through the HTTP client: a token, a request, an answer, and the few retries that are safe.
//!
//! FCM and WNS give it their request and the reading of their answer. Flow: token - send - read; again when the
//! request was surely not seen, and once with a fresh token after a 401. Everything ends by the push's deadline.
//!
//! Invariant: what may have been accepted is never sent again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap},
};
use sovereign_relay_actors::ports::{Clock, Entropy, Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::push::Reason;
use tokio::time::{sleep, timeout};

use super::{
    alarm::{Alarms, Refusal},
    http::{SendError, classify, read_body, watched_body},
    oauth::{AccessToken, TokenError, TokenKeeper},
    retry_after::retry_after,
};

/// Error answers of the providers are under 4 KiB; what is longer is not theirs.
const ANSWER_LIMIT: usize = 64 * 1024;
/// Time for the rest of an answer whose head is there.
const BODY_TIME: Duration = Duration::from_secs(3);
/// First wait before an unsent request is tried again; doubles.
const FIRST_RETRY: Duration = Duration::from_millis(100);
/// Longest such wait: a provider that is back is noticed within it.
const LONGEST_RETRY: Duration = Duration::from_secs(2);
/// Losses this close together are one lost connection with many streams.
const SAME_LOSS: Duration = Duration::from_millis(500);

/// An answer, whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What an answer means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// This.
    Outcome(Outcome),
    /// The relay itself is refused, for good.
    RelayRefused(Refusal),
    /// The access token is refused: the relay is, if a fresh one is refused too.
    TokenRefused(Refusal),
}

/// What every call of one provider shares.
pub(crate) struct Caller {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    alarms: Alarms,
    describe: fn(reqwest::Error) -> String,
    losses: Mutex<Losses>,
}

#[derive(Default)]
struct Losses {
    number: u64,
    last: Duration,
}

impl Caller {
    /// `describe` puts an error into words for the log: a URL, or a host that a device named, is not to be in them.
    pub(crate) fn new(
        provider: &'static str,
        (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>),
        describe: fn(reqwest::Error) -> String,
    ) -> Self {
        Self {
            clock,
            entropy,
            alarms: Alarms::new(provider),
            describe,
            losses: Mutex::default(),
        }
    }

    /// Delivers one push by `deadline` on the monotonic clock.
    pub(crate) async fn deliver(
        &self,
        keeper: &TokenKeeper,
        deadline: Duration,
        body: Bytes,
        request: impl Fn() -> RequestBuilder,
        read: impl Fn(&Answer) -> Reading,
    ) -> Outcome {
        let mut fresh_token_tried = false;
        let mut wait = FIRST_RETRY;
        loop {
            let token = match keeper.token(deadline).await {
                Ok(token) => token,
                Err(error) => return without_token(error),
            };
            match self.send(&token, deadline, request(), body.clone()).await {
                Ok(response) => match self
                    .answer(response, deadline)
                    .await
                    .map_or_else(Reading::Outcome, |answer| read(&answer))
                {
                    Reading::Outcome(outcome) => return outcome,
                    Reading::RelayRefused(refusal) => return self.refused(refusal),
                    Reading::TokenRefused(refusal) => {
                        let mendable = keeper.refused(&token);
                        if std::mem::replace(&mut fresh_token_tried, true) || !mendable {
                            return self.refused(refusal);
                        }
                    }
                },
                Err(SendError::NotSent) => {
                    let pause = self.jittered(wait);
                    wait = (wait * 2).min(LONGEST_RETRY);
                    if self.clock.now().until(deadline) <= pause {
                        return Outcome::Unreachable;
                    }
                    sleep(pause).await;
                }
                Err(SendError::Unsendable) => {
                    return failed(Reason::PayloadRejected, false, Health::Answered);
                }
                Err(SendError::TimedOut) => return failed(Reason::ProviderTimeout, true, Health::Faulty),
                Err(SendError::Lost) => {
                    return failed(Reason::UnknownOutcome, true, self.connection_lost());
                }
            }
        }
    }

    async fn send(
        &self,
        token: &AccessToken,
        deadline: Duration,
        request: RequestBuilder,
        body: Bytes,
    ) -> Result<Response, SendError> {
        let left = self.clock.now().until(deadline);
        let length = body.len();
        let (body, taken_up) = watched_body(body);
        let request = request
            .header(AUTHORIZATION, token.header.clone())
            .header(CONTENT_LENGTH, length)
            .body(body);
        match timeout(left, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let sorted = classify(&error, &taken_up);
                self.note(sorted, error);
                Err(sorted)
            }
            // Still dialling, or waiting for a stream.
            Err(_) if !taken_up.yet() => Err(SendError::NotSent),
            Err(_) => Err(SendError::TimedOut),
        }
    }

    /// The rest of an answer. A success or a 5xx is told by its head, and is read as one with an empty body if that
    /// is lost; a 4xx means something else with each body, so one without it is no answer about this push.
    async fn answer(&self, response: Response, deadline: Duration) -> Result<Answer, Outcome> {
        let (status, headers) = (response.status(), response.headers().clone());
        let rest = self.clock.now().until(deadline).min(BODY_TIME);
        let body = match read_body(response, ANSWER_LIMIT, rest).await {
            Ok(body) => body,
            Err(error) => {
                let now = self.clock.now();
                self.alarms.unreadable(status.as_u16(), error, now.mono);
                if status.is_client_error() {
                    return Err(without_body(status, retry_after(&headers, now.unix)));
                }
                Bytes::new()
            }
        };
        Ok(Answer {
            status: status.as_u16(),
            headers,
            body,
        })
    }

    fn note(&self, sorted: SendError, error: reqwest::Error) {
        match sorted {
            SendError::NotSent => {
                let now = self.clock.now().mono;
                self.alarms.not_sent(now, || (self.describe)(error));
            }
            SendError::Unsendable | SendError::TimedOut | SendError::Lost => {
                tracing::debug!(
                    cause = (self.describe)(error),
                    ?sorted,
                    "no answer from the provider"
                );
            }
        }
    }

    fn refused(&self, refusal: Refusal) -> Outcome {
        self.alarms.refused(refusal, self.clock.now().mono);
        failed(Reason::RelayMisconfigured, false, Health::Answered)
    }

    fn connection_lost(&self) -> Health {
        let now = self.clock.now().mono;
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        if losses.number == 0 || now.saturating_sub(losses.last) > SAME_LOSS {
            losses.number += 1;
        }
        losses.last = now;
        Health::ConnectionLost {
            connection: losses.number,
        }
    }

    fn jittered(&self, wait: Duration) -> Duration {
        let mut byte = [0];
        self.entropy.fill(&mut byte);
        wait.mul_f64(0.5 + f64::from(u8::from_ne_bytes(byte)) / 510.0)
    }
}

/// A failure that concerns nobody but this push.
pub(crate) fn failed(reason: Reason, retryable: bool, health: Health) -> Outcome {
    Outcome::Failed(Failure {
        reason,
        retryable,
        retry_after: None,
        hold: Hold::Nothing,
        health,
    })
}

/// The lane asked for a platform that is off or sent another provider's token: the relay's own fault.
pub(crate) fn not_ours() -> Outcome {
    failed(Reason::RelayMisconfigured, false, Health::Answered)
}

/// A 5xx: the provider's own trouble. With a hint everybody waits for it.
pub(crate) fn unavailable(hint: Option<Duration>) -> Outcome {
    Outcome::Failed(Failure {
        reason: Reason::ProviderUnavailable,
        retryable: true,
        retry_after: hint,
        hold: hint.map_or(Hold::Nothing, |_| Hold::Provider),
        health: Health::Faulty,
    })
}

/// Some proxy's answer, or a redirect that is not followed: nothing about the device, and not the provider's health.
pub(crate) fn not_the_providers() -> Outcome {
    failed(Reason::ProviderUnavailable, true, Health::Answered)
}

/// A 4xx whose body was lost. Whom a 429 concerns was in it, so it holds nobody but this push.
fn without_body(status: StatusCode, hint: Option<Duration>) -> Outcome {
    let (reason, retry_after) = match status {
        StatusCode::TOO_MANY_REQUESTS => (Reason::ProviderThrottled, hint),
        _ => (Reason::ProviderUnavailable, None),
    };
    Outcome::Failed(Failure {
        reason,
        retryable: true,
        retry_after,
        hold: Hold::Nothing,
        health: Health::Answered,
    })
}

fn without_token(error: TokenError) -> Outcome {
    match error {
        TokenError::Unreachable => Outcome::Unreachable,
        TokenError::Unavailable => failed(Reason::ProviderUnavailable, true, Health::Faulty),
        TokenError::Refused => failed(Reason::RelayMisconfigured, false, Health::Answered),
    }
}

#[cfg(test)]
impl Reading {
    /// What the instance would be told if it came to that.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Outcome(outcome) => outcome,
            Self::RelayRefused(_) | Self::TokenRefused(_) => {
                failed(Reason::RelayMisconfigured, false, Health::Answered)
            }
        }
    }
}

#[cfg(test)]
mod tests;
