//! One push from request to outcome: which tries it gets, and what their end means.
//!
//! Called by the port for each delivery. [`Tries`] decides and is pure; [`deliver`] waits and sends.
//!
//! ```text
//! lease a stream -> submit -> answer -> judge -> outcome
//!       ^------------- not taken, 500/503 once, connection of no use ---'
//! ```
//!
//! Invariant: after a try that the provider may have accepted there is no other, except the one that follows a
//! 500 or 503, which carries the same `apns-id`.

use std::{sync::Arc, time::Duration};

use metrics::counter;
use sovereign_relay_actors::ports::{Delivery, Failure, Health, Outcome};
use sovereign_relay_protocol::{push::Reason, time::UnixMillis};
use tokio::time::sleep;

use super::{
    Inner,
    connection::NoAnswer,
    error::{Again, Answer, ApnsReason, Judgement},
    pool::{Lease, NoLease},
    request::ApnsRequest,
};
use crate::provider::{alarm::Refusal, answer::failed};

/// Tries that the peer did not take, at most. Each costs a pause that doubles, so a peer that refuses everything is
/// not asked in a loop.
const UNTAKEN_TRIES: u32 = 6;
/// Pause after the second of them; the first is followed up at once.
const UNTAKEN_PAUSE: Duration = Duration::from_millis(50);
/// Pause before the one repeat after a 500 or 503.
const STUMBLE_PAUSE: Duration = Duration::from_millis(200);
/// Silence that says something of the connection: five times a usual answer. A push that has less time left says nothing.
const TELLING_SILENCE: Duration = Duration::from_millis(500);
/// Earliest useful retry when all streams stay taken.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);

/// What one try came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Try {
    /// No stream.
    NoLease(NoLease),
    /// No answer.
    NoAnswer {
        /// How it ended.
        end: NoAnswer,
        /// Over which connection.
        connection: u64,
    },
    /// An answer.
    Answered {
        /// What it means.
        judgement: Judgement,
        /// What the operator is to hear of it, if it is what the push comes to.
        refusal: Option<Refusal>,
        /// Over which connection.
        connection: u64,
    },
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// It is over.
    Done(Outcome),
    /// Another try after a pause, rather not over this connection.
    Again {
        /// First wait.
        pause: Duration,
        /// Avoid it.
        avoid: Option<u64>,
    },
}

/// The tries of one push so far.
#[derive(Default, Debug)]
pub(super) struct Tries {
    untaken: u32,
    /// The answer that allowed the one repeat: what is said if the repeat comes to nothing.
    answered: Option<Outcome>,
    /// The refusal of the relay in the last answer.
    refusal: Option<Refusal>,
}

impl Tries {
    /// Decides on the end of a try; `left` is the time to the deadline.
    pub(super) fn next(&mut self, tried: Try, left: Duration) -> Step {
        match tried {
            Try::NoLease(NoLease::Retired) => self.untaken(Duration::ZERO, None, left),
            Try::NoLease(NoLease::Unreachable) => self.give_up(Outcome::Unreachable),
            Try::NoLease(NoLease::Full) => self.give_up(Outcome::Overloaded {
                retry_after: FULL_RETRY_AFTER,
            }),
            Try::NoAnswer {
                end: NoAnswer::NotTaken,
                connection,
            } => self.untaken(UNTAKEN_PAUSE, Some(connection), left),
            Try::NoAnswer {
                end: NoAnswer::Lost,
                connection,
            } => {
                let health = Health::ConnectionLost { connection };
                Step::Done(failed(Reason::UnknownOutcome, true, health))
            }
            Try::NoAnswer {
                end: NoAnswer::Reset, ..
            } => Step::Done(failed(Reason::UnknownOutcome, true, Health::Faulty)),
            Try::NoAnswer {
                end: NoAnswer::Silent,
                connection,
            } => {
                let health = Health::ConnectionLost { connection };
                Step::Done(failed(Reason::ProviderTimeout, true, health))
            }
            Try::NoAnswer {
                end: NoAnswer::TimedOut,
                ..
            } => Step::Done(failed(Reason::ProviderTimeout, true, Health::Faulty)),
            Try::Answered {
                judgement,
                refusal,
                connection,
            } => {
                self.refusal = refusal;
                self.answered(judgement, connection, left)
            }
        }
    }

    /// The refusal that the push has come to: one that another connection made good is none.
    fn refusal(&self, outcome: &Outcome) -> Option<Refusal> {
        self.refusal.filter(|_| refuses_the_relay(outcome))
    }

    fn untaken(&mut self, step: Duration, avoid: Option<u64>, left: Duration) -> Step {
        let pause = if self.untaken == 0 {
            Duration::ZERO
        } else {
            step * (1 << (self.untaken - 1).min(8))
        };
        self.untaken += 1;
        if self.untaken >= UNTAKEN_TRIES || pause >= left {
            return self.give_up(failed(Reason::ProviderUnavailable, true, Health::Faulty));
        }
        Step::Again { pause, avoid }
    }

    fn answered(&mut self, judgement: Judgement, connection: u64, left: Duration) -> Step {
        let pause = match judgement.again {
            Again::No => return Step::Done(judgement.outcome),
            Again::Once => STUMBLE_PAUSE,
            Again::OnAnotherConnection => Duration::ZERO,
        };
        if self.answered.is_some() || pause >= left {
            return Step::Done(judgement.outcome);
        }
        self.answered = Some(judgement.outcome);
        Step::Again {
            pause,
            avoid: Some(connection),
        }
    }

    /// The last try was surely not taken, but an earlier one was answered: that answer counts.
    fn give_up(&mut self, outcome: Outcome) -> Step {
        Step::Done(self.answered.take().unwrap_or(outcome))
    }
}

/// Delivers one push.
pub(super) async fn deliver(inner: Arc<Inner>, delivery: Delivery) -> Outcome {
    let began = inner.base.clock.now().unix;
    let mut tries = Tries::default();
    let mut avoided = None;
    loop {
        let left = inner.base.clock.now().until(delivery.deadline);
        let Some(tried) = attempt(&inner, &delivery, began, left, avoided).await else {
            return failed(Reason::RelayMisconfigured, false, Health::Answered);
        };
        match tries.next(tried, inner.base.clock.now().until(delivery.deadline)) {
            Step::Done(outcome) => {
                if let Some(refusal) = tries.refusal(&outcome) {
                    inner.alarms.refused(refusal, inner.base.clock.now().mono);
                }
                return outcome;
            }
            Step::Again { pause, avoid } => {
                sleep(pause).await;
                avoided = avoid;
            }
        }
    }
}

/// One try. `None`: there are no credentials for it, or it is no push for APNs; the edge asked before.
async fn attempt(
    inner: &Inner,
    delivery: &Delivery,
    began: UnixMillis,
    left: Duration,
    avoid: Option<u64>,
) -> Option<Try> {
    let generation = inner.current.load_full();
    let credentials = generation.credentials.as_ref()?;
    let app = credentials.app(delivery.platform)?;
    let clock = &inner.base.clock;
    let request = ApnsRequest::new(delivery, app, &inner.origin, clock.now().unix).ok()?;
    let lease = match generation.pool.lease(left, avoid).await {
        Ok(lease) => lease,
        Err(none) => return Some(Try::NoLease(none)),
    };
    let connection = lease.link().id();
    let tried_at = clock.now().mono;
    let Ok(exchange) = lease
        .link()
        .submit(request, || credentials.tokens.authorization(clock.now().unix))
    else {
        lease.retire_connection();
        return Some(Try::NoAnswer {
            end: NoAnswer::NotTaken,
            connection,
        });
    };
    let answered = exchange.answer(|| clock.now().until(delivery.deadline)).await;
    Some(match answered {
        Ok((head, body)) => {
            let now = clock.now();
            if let Err(error) = &body {
                inner.alarms.unreadable(head.status().as_u16(), *error, now.mono);
            }
            let body = body.as_deref().ok();
            let answer = Answer::new(head.status(), head.headers(), body, now.unix);
            judge(inner, &lease, answer, (began, tried_at))
        }
        Err(end) => {
            if says_something_of_the_connection(end, delivery.deadline.saturating_sub(tried_at)) {
                lease.missed(tried_at);
            }
            Try::NoAnswer { end, connection }
        }
    })
}

/// Whether a try that had so much time tells of a connection that is open but of no use. Lost and silent ones end by
/// themselves.
fn says_something_of_the_connection(end: NoAnswer, had: Duration) -> bool {
    match end {
        NoAnswer::NotTaken | NoAnswer::Reset => true,
        NoAnswer::TimedOut => had >= TELLING_SILENCE,
        NoAnswer::Lost | NoAnswer::Silent => false,
    }
}

/// `began` and `tried_at`: the push, and this try of it.
fn judge(inner: &Inner, lease: &Lease, answer: Answer, (began, tried_at): (UnixMillis, Duration)) -> Try {
    let now = inner.base.clock.now();
    lease.answered(!answer.status.is_server_error(), tried_at, now.mono);
    let (provider, reason) = (inner.base.name, answer.label());
    counter!("relay_apns_answers_total", "provider" => provider, "reason" => reason).increment(1);
    let refusal = Refusal {
        status: answer.status.as_u16(),
        reason,
        advice: advice(answer.reason),
    };
    let judgement = answer.judge(began, now.unix);
    if judgement.again == Again::OnAnotherConnection {
        lease.condemn_connection();
    }
    Try::Answered {
        refusal: refuses_the_relay(&judgement.outcome).then_some(refusal),
        judgement,
        connection: lease.link().id(),
    }
}

/// Whether it is the relay that APNs refuses: the operator must know.
fn refuses_the_relay(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Failed(Failure {
            reason: Reason::RelayMisconfigured,
            ..
        })
    )
}

/// What the operator can do about it.
fn advice(reason: Option<ApnsReason>) -> &'static str {
    let Some(reason) = reason else {
        return "the answer was damaged on its way";
    };
    match reason {
        ApnsReason::ExpiredProviderToken => "this machine's clock is off by more than a quarter of an hour",
        ApnsReason::InvalidProviderToken => "key, key id and team id don't belong together",
        ApnsReason::BadEnvironmentKeyIdInToken => "the key is limited to the other APNs environment",
        ApnsReason::TooManyProviderTokenUpdates => {
            "another program or key of the team renews tokens too often"
        }
        ApnsReason::BadTopic | ApnsReason::MissingTopic | ApnsReason::TopicDisallowed => {
            "the bundle id is wrong, or the key is not for it"
        }
        _ => "see the reason in Apple's documentation",
    }
}

#[cfg(test)]
mod tests;
