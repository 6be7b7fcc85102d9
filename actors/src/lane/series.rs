//! The lane's metric series and its log lines about breaker and fuses. Labels come from closed sets.
//!
//! Breaker and fuses are everybody's: their lines are written outside the span of the push that moved them, which
//! would name one request of many.

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use sovereign_relay_protocol::{
    id::InstanceId,
    push::{PushAnswer, PushResult, Reason},
};
use tracing::Span;

use super::{BreakerState, Verdict, judge::ScopeChange};
use crate::push::TurnKey;

/// `relay_pushes_total{provider,result,reason}`.
pub(super) fn count_push(provider: &'static str, verdict: &Verdict) {
    match verdict {
        Verdict::Answer(answer) => count_answer(provider, answer),
        Verdict::Unreachable { .. } => count(provider, "unreachable", ""),
        Verdict::Overloaded { .. } => count(provider, "overloaded", ""),
    }
}

/// The same for an answer.
pub(super) fn count_answer(provider: &'static str, answer: &PushAnswer) {
    let result = match answer.result {
        PushResult::Sent => "sent",
        PushResult::InvalidToken => "invalid_token",
        PushResult::Failed => "failed",
    };
    count(provider, result, answer.reason.map_or("", reason_label));
}

/// `relay_provider_seconds{provider}`: one call, retries inside included.
pub(super) fn measure_call(provider: &'static str, took: Duration) {
    histogram!("relay_provider_seconds", "provider" => provider).record(took.as_secs_f64());
}

/// `relay_lane_queue` and `relay_lane_in_flight{provider}`.
pub(super) fn show_queue(provider: &'static str, waiting: usize, in_flight: usize) {
    gauge!("relay_lane_queue", "provider" => provider).set(number(waiting));
    gauge!("relay_lane_in_flight", "provider" => provider).set(number(in_flight));
}

/// `relay_breaker_state{provider}`: 0 closed, 1 probing, 2 open.
pub(super) fn show_breaker(provider: &'static str, state: BreakerState) {
    let value = match state {
        BreakerState::Closed => 0.0,
        BreakerState::Probing => 1.0,
        BreakerState::Open => 2.0,
    };
    gauge!("relay_breaker_state", "provider" => provider).set(value);
}

/// A change of the breaker. Failed probes are not told again.
pub(super) fn tell_breaker(provider: &'static str, before: BreakerState, after: BreakerState) {
    show_breaker(provider, after);
    match (before, after) {
        (BreakerState::Closed, BreakerState::Open) => of_the_lane().in_scope(|| {
            tracing::warn!(
                provider,
                "provider is failing, pushes to it are refused until a probe succeeds"
            );
        }),
        (BreakerState::Open | BreakerState::Probing, BreakerState::Closed) => {
            of_the_lane().in_scope(|| tracing::info!(provider, "provider is back"));
        }
        (BreakerState::Closed, BreakerState::Closed | BreakerState::Probing)
        | (BreakerState::Open | BreakerState::Probing, BreakerState::Open | BreakerState::Probing) => {}
    }
}

/// `relay_fuse_open{scope,fuse}`, an error at opening, a line at closing.
pub(super) fn tell_fuses(changes: &[ScopeChange]) {
    for ScopeChange { scope, change, gauge } in changes {
        let fuse = change.fuse.as_str();
        let instance = instance(change.key).map(tracing::field::display);
        gauge!("relay_fuse_open", "scope" => scope.to_string(), "fuse" => fuse)
            .set(f64::from(u8::from(*gauge)));
        let _entered = of_the_lane().entered();
        if change.open {
            tracing::error!(
                scope = &**scope,
                fuse,
                instance,
                bad_tokens = change.share.bad,
                tokens = change.share.tokens,
                "too many tokens are called bad at once, and such verdicts are held: check topic, environment, \
                 project and credentials"
            );
        } else {
            tracing::info!(
                scope = &**scope,
                fuse,
                instance,
                "tokens are called bad no more often than usual again"
            );
        }
    }
}

/// Young instances of one address have no name together.
fn instance(key: Option<TurnKey>) -> Option<InstanceId> {
    match key? {
        TurnKey::Instance(instance) => Some(instance),
        TurnKey::Group(_) => None,
    }
}

/// A span without a parent: the log shows the innermost span, and `parent: None` on a line alone would show the
/// request's all the same. At the highest level, so that it is there whenever the line is.
fn of_the_lane() -> Span {
    tracing::error_span!(parent: None, "lane")
}

fn count(provider: &'static str, result: &'static str, reason: &'static str) {
    counter!("relay_pushes_total", "provider" => provider, "result" => result, "reason" => reason)
        .increment(1);
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn reason_label(reason: Reason) -> &'static str {
    match reason {
        Reason::Unregistered => "unregistered",
        Reason::ExpiredToken => "expired_token",
        Reason::BadToken => "bad_token",
        Reason::WrongApp => "wrong_app",
        Reason::MalformedToken => "malformed_token",
        Reason::RecentlyInvalid => "recently_invalid",
        Reason::UnconfirmedToken => "unconfirmed_token",
        Reason::DeviceThrottled => "device_throttled",
        Reason::ProviderThrottled => "provider_throttled",
        Reason::ProviderUnavailable => "provider_unavailable",
        Reason::ProviderTimeout => "provider_timeout",
        Reason::UnknownOutcome => "unknown_outcome",
        Reason::PayloadRejected => "payload_rejected",
        Reason::Dropped => "dropped",
        Reason::RelayMisconfigured => "relay_misconfigured",
    }
}

#[cfg(test)]
mod tests;
