//! One push through the HTTP client: a token, a request, an answer, and the few retries that are safe.
//!
//! FCM and WNS give it their request and the reading of their answer. Flow: token - send - read; again when the
//! request was surely not seen, and once with a fresh token after a 401. Everything ends by the push's deadline.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{RequestBuilder, header::AUTHORIZATION, header::HeaderMap};
use sovereign_relay_actors::ports::{Clock, Entropy, Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::push::Reason;
use tokio::time::{sleep, timeout};

use super::{
    http::{SendError, classify, read_body},
    oauth::{AccessToken, TokenError, TokenKeeper},
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
pub(crate) enum Reading {
    /// This.
    Outcome(Outcome),
    /// The access token was refused; this if it happens again with a fresh one.
    TokenRefused(Outcome),
}

/// What every call of one provider shares.
pub(crate) struct Caller {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    losses: Mutex<Losses>,
}

#[derive(Default)]
struct Losses {
    number: u64,
    last: Duration,
}

impl Caller {
    pub(crate) fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            clock,
            entropy,
            losses: Mutex::default(),
        }
    }

    /// Delivers one push by `deadline` on the monotonic clock.
    pub(crate) async fn deliver(
        &self,
        keeper: &TokenKeeper,
        deadline: Duration,
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
            match self.send(&token, deadline, request()).await {
                Ok(answer) => match read(&answer) {
                    Reading::Outcome(outcome) => return outcome,
                    Reading::TokenRefused(outcome) => {
                        let mendable = keeper.refused(&token);
                        if std::mem::replace(&mut fresh_token_tried, true) || !mendable {
                            return outcome;
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
                Err(SendError::TimedOut) => return failed(Reason::ProviderTimeout, Health::Faulty),
                Err(SendError::Lost) => return failed(Reason::UnknownOutcome, self.connection_lost()),
            }
        }
    }

    async fn send(
        &self,
        token: &AccessToken,
        deadline: Duration,
        request: RequestBuilder,
    ) -> Result<Answer, SendError> {
        let left = self.clock.now().until(deadline);
        let request = request.header(AUTHORIZATION, token.header.clone());
        let response = timeout(left, request.send())
            .await
            .map_err(|_| SendError::TimedOut)?;
        let response = response.map_err(|error| {
            let sorted = classify(&error);
            tracing::debug!(error = %error.without_url(), ?sorted, "no answer from the provider");
            sorted
        })?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let rest = self.clock.now().until(deadline).min(BODY_TIME);
        // The status alone still tells most; an unreadable body is read as an empty one, which no verdict of "gone"
        // that needs a body is given for.
        let body = read_body(response, ANSWER_LIMIT, rest).await.unwrap_or_default();
        Ok(Answer {
            status,
            headers,
            body,
        })
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

fn failed(reason: Reason, health: Health) -> Outcome {
    Outcome::Failed(Failure {
        reason,
        retryable: true,
        retry_after: None,
        hold: Hold::Nothing,
        health,
    })
}

fn without_token(error: TokenError) -> Outcome {
    match error {
        TokenError::Unreachable => Outcome::Unreachable,
        TokenError::Unavailable => failed(Reason::ProviderUnavailable, Health::Faulty),
        TokenError::Refused => Outcome::Failed(Failure {
            reason: Reason::RelayMisconfigured,
            retryable: false,
            retry_after: None,
            hold: Hold::Nothing,
            health: Health::Answered,
        }),
    }
}
