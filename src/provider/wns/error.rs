//! WNS's answers to outcomes. "Push notification service request and response headers" (Microsoft).
//!
//! WNS is known by its `X-WNS-` headers. Its two 410s differ only in their description: one says that the channel has
//! ended, the other that WNS has blocked the relay, which must never cost a device.

use std::time::Duration;

use reqwest::header::HeaderMap;
use sovereign_relay_actors::ports::{Certainty, Health, Hold, Outcome};
use sovereign_relay_protocol::push::Reason;

use crate::provider::{
    alarm::Refusal,
    answer::{Answer, Reading, failed, not_the_providers, perhaps_taken},
};

/// What to wait when a throttled channel names no time; Microsoft publishes no figure.
const DEFAULT_THROTTLE_WAIT: Duration = Duration::from_secs(60);
const MESSAGE_ID_CHARS: usize = 64;

/// Reads an answer.
pub(super) fn read(answer: &Answer) -> Reading {
    let from_wns = is_from_wns(&answer.headers);
    let outcome = match answer.status {
        200 => accepted(answer),
        201..=299 => perhaps_taken(),
        401 => {
            return Reading::TokenRefused(refusal(
                401,
                "unauthorized",
                "WNS does not take its own access token",
            ));
        }
        403 | 404 | 410 if !from_wns => not_the_providers(),
        403 => answer.gone(Certainty::Conditional, Reason::WrongApp),
        404 => answer.gone(Certainty::Certain, Reason::Unregistered),
        410 => return ended(answer),
        406 | 429 => throttled(answer),
        400 | 413 => failed(Reason::PayloadRejected, false, Health::Answered),
        500..=599 => answer.unavailable(),
        300..=399 => not_the_providers(),
        _ if !from_wns => not_the_providers(),
        status => {
            let advice = "the answer is not one that WNS documents";
            return Reading::RelayRefused(refusal(status, "unexpected", advice));
        }
    };
    Reading::Outcome(outcome)
}

/// Whether it was WNS that answered, and not some proxy.
pub(super) fn is_from_wns(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("x-wns-"))
}

/// A 200 may still say that the notification goes nowhere. Two headers carry the same word, by document and age.
fn accepted(answer: &Answer) -> Outcome {
    let headers = &answer.headers;
    let says = |word: &str| {
        ["x-wns-status", "x-wns-notificationstatus"]
            .iter()
            .filter_map(|name| headers.get(*name)?.to_str().ok())
            .any(|value| value.trim().eq_ignore_ascii_case(word))
    };
    if says("channelthrottled") {
        return throttled(answer);
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
fn ended(answer: &Answer) -> Reading {
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
        answer.gone(Certainty::Certain, Reason::ExpiredToken)
    } else if description.contains("revoked") {
        answer.gone(Certainty::Certain, Reason::Unregistered)
    } else {
        answer.gone(Certainty::Conditional, Reason::Unregistered)
    })
}

fn throttled(answer: &Answer) -> Outcome {
    answer.throttled(Reason::DeviceThrottled, Hold::Token, DEFAULT_THROTTLE_WAIT)
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
