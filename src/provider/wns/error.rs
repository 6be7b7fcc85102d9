//! WNS's answers to outcomes. "Push notification service request and response headers" (Microsoft).
//!
//! WNS is known by its `X-WNS-` headers. Its two 410s differ only in their description: one says that the channel has
//! ended, the other that WNS has blocked the relay, which must never cost a device.

use std::time::Duration;

use reqwest::header::HeaderMap;
use sovereign_relay_actors::ports::{Certainty, Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::{push::Reason, time::UnixMillis};

use crate::provider::{
    alarm::Refusal,
    call::{Answer, Reading, failed, not_the_providers, unavailable},
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
        // Perhaps taken, but not in the words that WNS has for it.
        201..=299 => failed(Reason::UnknownOutcome, true, Health::Answered),
        401 => {
            return Reading::TokenRefused(refusal(
                401,
                "unauthorized",
                "WNS does not take its own access token",
            ));
        }
        403 | 404 | 410 if !from_wns => not_the_providers(),
        403 => gone(Certainty::Conditional, Reason::WrongApp, began),
        404 => gone(Certainty::Certain, Reason::Unregistered, began),
        410 => return ended(answer, began),
        406 | 429 => throttled(hint),
        400 | 413 => failed(Reason::PayloadRejected, false, Health::Answered),
        500..=599 => unavailable(hint),
        300..=399 => not_the_providers(),
        _ if !from_wns => not_the_providers(),
        status => {
            let advice = "the answer is not one that WNS documents";
            return Reading::RelayRefused(refusal(status, "unexpected", advice));
        }
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
        return failed(Reason::Dropped, true, Health::Answered);
    }
    let id = headers
        .get("x-wns-msg-id")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    Outcome::Sent {
        message_id: id.filter(|id| !id.is_empty() && id.len() <= MESSAGE_ID_CHARS),
    }
}

/// Blocked comes first: a sentence that says both must not cost a device.
fn ended(answer: &Answer, began: UnixMillis) -> Reading {
    let description = answer
        .headers
        .get("x-wns-error-description")
        .and_then(|value| value.to_str().ok());
    let description = description.unwrap_or_default().to_ascii_lowercase();
    if description.contains("blocked") {
        let advice = "Microsoft has blocked the relay's domain for abuse and has to be asked to lift it";
        return Reading::RelayRefused(refusal(410, "domain_blocked", advice));
    }
    Reading::Outcome(if description.contains("expired") {
        gone(Certainty::Certain, Reason::ExpiredToken, began)
    } else if description.contains("revoked") {
        gone(Certainty::Certain, Reason::Unregistered, began)
    } else {
        gone(Certainty::Conditional, Reason::Unregistered, began)
    })
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

fn gone(certainty: Certainty, reason: Reason, since: UnixMillis) -> Outcome {
    Outcome::Gone {
        certainty,
        reason,
        since,
    }
}

fn refusal(status: u16, reason: &'static str, advice: &'static str) -> Refusal {
    Refusal {
        status,
        reason,
        advice,
    }
}

#[cfg(test)]
mod tests;
