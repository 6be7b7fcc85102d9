//! Tells the operator that a provider refuses the relay itself, can't be reached or isn't understood: counted, and
//! logged now and then, since the same comes to every push.
//!
//! What a provider says to a push is told in the span of that push's request, which one sees by its id. Connections and
//! access tokens are everybody's, and no request's id stands beside them ([`of_the_provider`]).

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::counter;
use tracing::Span;

use super::http::BodyError;

/// One line in this time says enough.
const EVERY: Duration = Duration::from_secs(10);

/// A provider's refusal of the relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// HTTP status.
    pub(crate) status: u16,
    /// From a closed set: it is a metric label.
    pub(crate) reason: &'static str,
    /// What the operator can do about it.
    pub(crate) advice: &'static str,
}

/// The alarms of one provider.
pub(crate) struct Alarms {
    provider: &'static str,
    refusals: Paces,
    dials: Pace,
    bodies: Pace,
}

impl Alarms {
    pub(crate) fn new(provider: &'static str) -> Self {
        Self {
            provider,
            refusals: Paces::default(),
            dials: Pace::default(),
            bodies: Pace::default(),
        }
    }

    /// The provider refuses the relay.
    pub(crate) fn refused(&self, refusal: Refusal, now: Duration) {
        let Refusal {
            status,
            reason,
            advice,
        } = refusal;
        let provider = self.provider;
        counter!("relay_provider_refuses_relay_total", "provider" => provider, "reason" => reason)
            .increment(1);
        if self.refusals.due(reason, now) {
            tracing::error!(
                provider,
                status,
                reason,
                "the provider refuses the relay: {advice}"
            );
        }
    }

    /// The provider takes an access token no more, and another is fetched: told once for each, however many pushes had
    /// it. Google and Microsoft may end a token early; often it is a sign of a wrong clock.
    pub(crate) fn mending(&self, refusal: Refusal) {
        let (provider, status) = (self.provider, refusal.status);
        let _entered = of_the_provider().entered();
        tracing::warn!(
            provider,
            status,
            "access token refused before its time, fetching another"
        );
    }

    /// A push could not be sent; `cause` is asked for only when it is logged.
    pub(crate) fn not_sent(&self, now: Duration, cause: impl FnOnce() -> String) {
        if self.dials.due(now) {
            let _entered = of_the_provider().entered();
            tracing::warn!(
                provider = self.provider,
                cause = cause(),
                "provider not reached, trying again"
            );
        }
    }

    /// The head of an answer came and its body could not be read.
    pub(crate) fn unreadable(&self, status: u16, cause: BodyError, now: Duration) {
        let provider = self.provider;
        counter!("relay_provider_unreadable_answers_total", "provider" => provider).increment(1);
        if self.bodies.due(now) {
            tracing::warn!(provider, status, %cause, "the body of the provider's answer could not be read");
        }
    }
}

/// A span without a parent: the log shows the innermost span, and `parent: None` on a line alone would show the
/// request's all the same. At the highest level, so that it is there whenever the line is.
pub(crate) fn of_the_provider() -> Span {
    tracing::error_span!(parent: None, "provider")
}

/// A pace for each reason, lest one that streams hides the first of another. As many as there are reasons.
#[derive(Default)]
struct Paces(Mutex<HashMap<&'static str, Pace>>);

impl Paces {
    fn due(&self, reason: &'static str, now: Duration) -> bool {
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paces.entry(reason).or_default().due(now)
    }
}

/// When the next line may be written, in milliseconds of the monotonic clock.
#[derive(Default)]
struct Pace(AtomicU64);

impl Pace {
    fn due(&self, now: Duration) -> bool {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (now, next) = (millis(now), millis(now.saturating_add(EVERY)));
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| {
                (now >= at).then_some(next)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_refusals_a_second_are_a_line_each_ten() {
        let pace = Pace::default();
        let lines = (0..60_000)
            .filter(|milli| pace.due(Duration::from_millis(*milli)))
            .count();
        assert_eq!(lines, 6);
    }

    #[test]
    fn the_first_of_a_reason_is_told_while_another_streams() {
        let paces = Paces::default();
        let told: Vec<_> = (0..30_000)
            .flat_map(|milli| [(milli, "bad_topic"), (milli, "domain_blocked")])
            .filter(|(milli, reason)| *reason == "bad_topic" || *milli >= 12_345)
            .filter(|(milli, reason)| paces.due(reason, Duration::from_millis(*milli)))
            .collect();
        assert_eq!(
            told,
            [
                (0, "bad_topic"),
                (10_000, "bad_topic"),
                (12_345, "domain_blocked"),
                (20_000, "bad_topic"),
                (22_345, "domain_blocked"),
            ]
        );
    }
}
