//! WNS's answers to outcomes. "Push notification service request and response headers" (Microsoft).
//!
//! WNS is known by its `X-WNS-` headers. Its two 410s differ only in their description: one says that the channel has
//! ended, the other that WNS has blocked the relay, which must never cost a device.

use std::time::Duration;

use reqwest::header::HeaderMap;
use sovereign_relay_actors::ports::{Certainty, Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::{push::Reason, time::UnixMillis};

use crate::provider::{
    call::{Answer, Reading},
    retry_after::retry_after,
};

/// What to wait when a throttled channel names no time; Microsoft publishes no figure.
const DEFAULT_THROTTLE_WAIT: Duration = Duration::from_secs(60);
const MESSAGE_ID_CHARS: usize = 64;

/// Reads an answer to a push that began at `began`.
pub(super) fn read(answer: &Answer, began: UnixMillis, now: UnixMillis) -> Reading {
    let hint = retry_after(&answer.headers, now);
    let from_wns = answer
        .headers
        .keys()
        .any(|name| name.as_str().starts_with("x-wns-"));
    let outcome = match answer.status {
        200 => accepted(&answer.headers, hint),
        // Not WNS's way to say anything: it may have been accepted.
        201..=299 => failed(Reason::UnknownOutcome, true),
        401 => return Reading::TokenRefused(misconfigured(answer)),
        403 | 404 | 410 if !from_wns => not_from_wns(),
        403 => gone(Certainty::Conditional, Reason::WrongApp, began),
        404 => gone(Certainty::Certain, Reason::Unregistered, began),
        410 => ended(answer, began),
        406 | 429 => throttled(hint),
        400 | 413 => failed(Reason::PayloadRejected, false),
        300..=399 => not_from_wns(),
        500..=599 => Outcome::Failed(Failure {
            reason: Reason::ProviderUnavailable,
            retryable: true,
            retry_after: hint,
            hold: if hint.is_some() {
                Hold::Provider
            } else {
                Hold::Nothing
            },
            health: Health::Faulty,
        }),
        _ if !from_wns => not_from_wns(),
        _ => misconfigured(answer),
    };
    Reading::Outcome(outcome)
}

/// A 200 may still say that the notification goes nowhere. Two headers carry the same word, by document and age.
fn accepted(headers: &HeaderMap, hint: Option<Duration>) -> Outcome {
    let says = |word: &str| {
        ["x-wns-status", "x-wns-notificationstatus"]
            .iter()
            .filter_map(|name| headers.get(*name)?.to_str().ok())
            .any(|value| value.trim().eq_ignore_ascii_case(word))
    };
    if says("channelthrottled") {
        return throttled(hint);
    }
    if says("dropped") {
        // The device is offline or its app not running: later it may be there.
        return failed(Reason::Dropped, true);
    }
    let id = headers
        .get("x-wns-msg-id")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    Outcome::Sent {
        message_id: id.filter(|id| !id.is_empty() && id.len() <= MESSAGE_ID_CHARS),
    }
}

fn ended(answer: &Answer, began: UnixMillis) -> Outcome {
    let description = answer
        .headers
        .get("x-wns-error-description")
        .and_then(|value| value.to_str().ok());
    let description = description.unwrap_or_default().to_ascii_lowercase();
    if description.contains("blocked") {
        metrics::counter!("relay_wns_domain_blocked_total").increment(1);
        tracing::error!(
            provider = "wns",
            "wns has blocked the relay's domain for abuse: contact Microsoft"
        );
        return failed(Reason::RelayMisconfigured, false);
    }
    if description.contains("expired") {
        return gone(Certainty::Certain, Reason::ExpiredToken, began);
    }
    if description.contains("revoked") {
        return gone(Certainty::Certain, Reason::Unregistered, began);
    }
    gone(Certainty::Conditional, Reason::Unregistered, began)
}

fn throttled(hint: Option<Duration>) -> Outcome {
    Outcome::Failed(Failure {
        reason: Reason::DeviceThrottled,
        retryable: true,
        retry_after: Some(hint.unwrap_or(DEFAULT_THROTTLE_WAIT)),
        hold: Hold::Token,
        health: Health::Answered,
    })
}

/// Some proxy's answer, or a redirect that is not followed: nothing about the device, and not the provider's health.
fn not_from_wns() -> Outcome {
    failed(Reason::ProviderUnavailable, true)
}

fn gone(certainty: Certainty, reason: Reason, since: UnixMillis) -> Outcome {
    Outcome::Gone {
        certainty,
        reason,
        since,
    }
}

fn failed(reason: Reason, retryable: bool) -> Outcome {
    let health = Health::Answered;
    Outcome::Failed(Failure {
        reason,
        retryable,
        retry_after: None,
        hold: Hold::Nothing,
        health,
    })
}

fn misconfigured(answer: &Answer) -> Outcome {
    tracing::error!(provider = "wns", status = answer.status, "wns refuses the relay");
    failed(Reason::RelayMisconfigured, false)
}

#[cfg(test)]
mod tests;
