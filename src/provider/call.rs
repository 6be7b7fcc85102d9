//! One push through the HTTP client: a token, a request, an answer, and the few retries that are safe.
//!
//! [`super::http_provider`] gives it the request and the reading of FCM or WNS. Flow: token - send - read; again when
//! the request was surely not seen, once with a fresh token after a 401, and over HTTP/1.1 once on a fresh connection after
//! an answer that would end a device. Everything ends by the push's deadline.
//!
//! Invariants: what may have been accepted is never sent again, and an answer that did not come whole ends no device.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{
    Response,
    header::{AUTHORIZATION, CONTENT_LENGTH},
};
use sovereign_relay_actors::{
    ports::{Clock, Entropy, Health, Outcome},
    push::TurnKey,
};
use sovereign_relay_protocol::{push::Reason, time::UnixMillis};
use tokio::time::{sleep, timeout};

mod losses;
mod push;
mod unanswered;

pub(crate) use self::push::{Over, Push, Tried};
use self::{
    losses::{Loss, Losses},
    unanswered::{not_taken, token_refused, without_body, without_token},
};

use super::{
    alarm::{Alarms, Refusal},
    answer::{Answer, Reading, failed, misconfigured, not_the_providers, of_an_unknown_host},
    http::{CONNECT_LIMIT, SendError, classify, read_body, watched_body},
    oauth::{AccessToken, Asker, Mend, NoToken, TokenKeeper},
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
/// Time to connect to a host that was never heard of as the provider, all tries together. Whoever names such hosts has
/// turns for this long and no longer; one that is there is connected to in a fraction.
const UNKNOWN_HOST_LIMIT: Duration = Duration::from_secs(2);

/// How a try goes out.
#[derive(Clone, Copy)]
struct Manner {
    over: Over,
    /// The access token that the push was refused with before, 0 if with none.
    refused_with: u64,
}

/// When a try ends, at the latest.
#[derive(Clone, Copy)]
struct Limits {
    /// If the HTTP library has not taken up the body by then: no dial lasts longer, so it waits for a stream, for which
    /// another connection may be better.
    taken_up: Duration,
    deadline: Duration,
}

/// What the tries to reach somebody came to.
enum Reached {
    /// Whose body is still to come, to a try with this token.
    Response(AccessToken, Response),
    Nobody(Outcome),
}

/// What every call of one provider shares.
pub(crate) struct Caller {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    alarms: Alarms,
    describe: fn(reqwest::Error) -> String,
    losses: Losses,
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
            losses: Losses::default(),
        }
    }

    /// Delivers one push by `deadline` on the monotonic clock.
    pub(crate) async fn deliver(
        &self,
        keeper: &TokenKeeper,
        deadline: Duration,
        push: &impl Push,
    ) -> Outcome {
        match self.exchange(keeper, deadline, push).await {
            Ok(outcome) if push.speaks() => outcome,
            Ok(outcome) => of_an_unknown_host(outcome),
            Err(error) => without_token(error),
        }
    }

    async fn exchange(
        &self,
        keeper: &TokenKeeper,
        deadline: Duration,
        push: &impl Push,
    ) -> Result<Outcome, NoToken> {
        let began = self.clock.now().unix;
        let mut manner = Manner {
            over: Over::AnyConnection,
            refused_with: 0,
        };
        loop {
            let (token, response) = match self.reach(keeper, deadline, push, manner).await? {
                Reached::Response(token, response) => (token, response),
                Reached::Nobody(outcome) => return Ok(outcome),
            };
            let answer = match self.answer(response, began, deadline).await {
                Ok(answer) => answer,
                Err(lost) => return Ok(lost),
            };
            let reading = push.read(&answer);
            if accepts_the_token(push, &answer, &reading) {
                keeper.accepted(&token);
            }
            match reading {
                Reading::Outcome(Outcome::Gone { .. })
                    if push.confirms_an_end() && manner.over == Over::AnyConnection =>
                {
                    manner.over = Over::FreshConnection;
                }
                Reading::Outcome(outcome) => return Ok(outcome),
                Reading::RelayRefused(refusal) => {
                    self.alarms.refused(refusal, self.clock.now().mono);
                    return Ok(misconfigured());
                }
                Reading::PerhapsRelayRefused(refusal) => {
                    self.alarms.refused(refusal, self.clock.now().mono);
                    return Ok(not_the_providers());
                }
                Reading::TokenRefused(refusal) => {
                    let (whose, is_first) = ((&token, push.sender()), manner.refused_with == 0);
                    if let Some(outcome) = self.without_this(keeper, whose, is_first, refusal) {
                        return Ok(outcome);
                    }
                    manner.refused_with = token.serial;
                }
            }
        }
    }

    /// Tries until somebody answers, or what becomes of the push without an answer is known.
    async fn reach(
        &self,
        keeper: &TokenKeeper,
        deadline: Duration,
        push: &impl Push,
        Manner { over, refused_with }: Manner,
    ) -> Result<Reached, NoToken> {
        let (body, mut wait, mut give_up) = (push.body(), FIRST_RETRY, None);
        let asker = Asker {
            sender: push.sender(),
            refused_with,
        };
        loop {
            let token = keeper.token(asker, deadline).await?;
            let began = self.clock.now().mono;
            let give_up = *give_up.get_or_insert_with(|| gives_up_at(push, began, deadline));
            let limits = Limits {
                taken_up: give_up.min(began.saturating_add(CONNECT_LIMIT)),
                deadline,
            };
            let sent = self.send(&token, limits, (push, over), body.clone()).await;
            push.tried(&Tried {
                began,
                ended: self.clock.now().mono,
                result: sent.as_ref().map_err(|error| *error),
            });
            let error = match sent {
                Ok(response) => return Ok(Reached::Response(token, response)),
                Err(error) => error,
            };
            if let Some(outcome) = self.after(error, push, began) {
                return Ok(Reached::Nobody(outcome));
            }
            if !self.pause(&mut wait, give_up).await {
                return Ok(Reached::Nobody(not_taken(error)));
            }
        }
    }

    async fn send(
        &self,
        token: &AccessToken,
        limits: Limits,
        (push, over): (&impl Push, Over),
        body: Bytes,
    ) -> Result<Response, SendError> {
        let length = body.len();
        let (body, custody) = watched_body(body);
        let request = push
            .request(over)
            .header(AUTHORIZATION, token.header.clone())
            .header(CONTENT_LENGTH, length)
            .body(body);
        let mut answer = pin!(request.send());
        let until = |end| self.clock.now().until(end);
        let in_time = match timeout(until(limits.taken_up), &mut answer).await {
            Ok(answered) => Ok(answered),
            // Still dialling, or waiting for a stream.
            Err(_) if custody.withdraw() => return Err(SendError::NotSent),
            Err(_) => timeout(until(limits.deadline), answer).await,
        };
        match in_time {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let sorted = classify(&error, &custody);
                self.note(sorted, error, push.speaks());
                Err(sorted)
            }
            Err(_) => Err(SendError::TimedOut),
        }
    }

    /// What a try that `began` then and got no answer comes to; `None` when it may be made again.
    fn after(&self, error: SendError, push: &impl Push, began: Duration) -> Option<Outcome> {
        match error {
            SendError::NotSent | SendError::Refused => None,
            SendError::Unsendable => Some(failed(Reason::PayloadRejected, false, Health::Answered)),
            SendError::TimedOut => Some(failed(Reason::ProviderTimeout, true, Health::Faulty)),
            SendError::Reset => Some(failed(Reason::UnknownOutcome, true, Health::Faulty)),
            SendError::Lost => {
                let loss = Loss {
                    began,
                    at: self.clock.now().mono,
                    shared: push.shares_its_connection(),
                };
                Some(failed(Reason::UnknownOutcome, true, self.losses.note(loss)))
            }
        }
    }

    /// Waits before the next try. `false`: there is no time for one.
    async fn pause(&self, wait: &mut Duration, deadline: Duration) -> bool {
        let pause = self.jittered(*wait);
        *wait = (*wait * 2).min(LONGEST_RETRY);
        let in_time = pause < self.clock.now().until(deadline);
        if in_time {
            sleep(pause).await;
        }
        in_time
    }

    /// The rest of an answer. A success or a 5xx is told by its head, and is read as one with an empty body if that
    /// is lost; a 4xx means something else with each body, so one without it is no answer about this push.
    async fn answer(
        &self,
        response: Response,
        began: UnixMillis,
        deadline: Duration,
    ) -> Result<Answer, Outcome> {
        let (status, headers) = (response.status(), response.headers().clone());
        let rest = self.clock.now().until(deadline).min(BODY_TIME);
        let read = read_body(response, ANSWER_LIMIT, rest).await;
        let now = self.clock.now();
        let body = match read {
            Ok(body) => body,
            Err(error) => {
                self.alarms.unreadable(status.as_u16(), error, now.mono);
                if status.is_client_error() {
                    return Err(without_body(status, retry_after(&headers, now.unix)));
                }
                Bytes::new()
            }
        };
        Ok(Answer::new((status.as_u16(), headers, body), began, now.unix))
    }

    /// What a push comes to whose token was refused; `None` when it may be made once more with another.
    fn without_this(
        &self,
        keeper: &TokenKeeper,
        (token, sender): (&AccessToken, TurnKey),
        is_first: bool,
        refusal: Refusal,
    ) -> Option<Outcome> {
        let mend = keeper.refused(token, sender);
        if mend == Mend::Begins {
            self.alarms.mending(refusal);
        }
        let others_are_accepted = match mend {
            Mend::Begins | Mend::UnderWay if is_first => return None,
            Mend::Begins | Mend::UnderWay => false,
            Mend::Stays { accepted } => accepted,
        };
        if others_are_accepted {
            let status = refusal.status;
            tracing::debug!(
                status,
                "an access token was refused that others are accepted with"
            );
        } else {
            self.alarms.refused(refusal, self.clock.now().mono);
        }
        Some(token_refused(others_are_accepted))
    }

    fn note(&self, sorted: SendError, error: reqwest::Error, speaks: bool) {
        match sorted {
            SendError::NotSent if speaks => {
                let now = self.clock.now().mono;
                self.alarms.not_sent(now, || (self.describe)(error));
            }
            SendError::NotSent
            | SendError::Refused
            | SendError::Unsendable
            | SendError::TimedOut
            | SendError::Reset
            | SendError::Lost => {
                tracing::debug!(
                    cause = (self.describe)(error),
                    ?sorted,
                    "no answer from the provider"
                );
            }
        }
    }

    fn jittered(&self, wait: Duration) -> Duration {
        let mut byte = [0];
        self.entropy.fill(&mut byte);
        wait.mul_f64(0.5 + f64::from(u8::from_ne_bytes(byte)) / 510.0)
    }
}

/// Whether an answer shows that its access token is good.
fn accepts_the_token(push: &impl Push, answer: &Answer, reading: &Reading) -> bool {
    match (answer.status, reading) {
        (_, Reading::TokenRefused(_)) => false,
        (200..=299, _) => true,
        (400..=499, _) => push.is_own(answer),
        _ => false,
    }
}

/// When no further try is begun by a push whose first began at `began`.
fn gives_up_at(push: &impl Push, began: Duration, deadline: Duration) -> Duration {
    match push.speaks() {
        true => deadline,
        false => deadline.min(began.saturating_add(UNKNOWN_HOST_LIMIT)),
    }
}

#[cfg(test)]
mod tests;
