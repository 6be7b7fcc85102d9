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
        // Not told apart from a proxy's: Microsoft doesn't say that a 401 carries a header of WNS, and an expired token
        // that is taken for a proxy's would stay in use. Taken for WNS's, a proxy's costs a new token and an alarm, and
        // never a device.
        401 => {
            return Reading::TokenRefused(refusal(
                401,
                "unauthorized",
                "WNS does not take its own access token",
            ));
        }
        400 | 403 | 404 | 410 | 413 if !from_wns => not_the_providers(),
        403 | 404 | 410 => return refused(answer),
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

/// What the description lines of a refusal say. The header may come more than once.
fn description(headers: &HeaderMap) -> Description {
    let mut told = Vec::new();
    for line in headers.get_all("x-wns-error-description") {
        let text = String::from_utf8_lossy(line.as_bytes()).to_ascii_lowercase();
        told.push(Description::of_line(&text));
    }
    let says = |wanted| told.contains(&wanted);
    match told.as_slice() {
        _ if says(Description::Blocked) => Description::Blocked,
        _ if says(Description::Unreadable) => Description::Unreadable,
        [first, rest @ ..] if rest.iter().all(|other| other == first) => *first,
        _ => Description::Unclear,
    }
}

/// A line of `X-WNS-Error-Description`, or all of them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Description {
    /// WNS has blocked the relay, whatever else is said.
    Blocked,
    /// Not in English letters, so that it may say "blocked".
    Unreadable,
    /// The channel expired, and nothing else.
    Expired,
    /// The channel was revoked, and nothing else.
    Revoked,
    /// Another text, contradictions or none.
    Unclear,
}

impl Description {
    /// Reads a line in lower case. Only a whole sentence about the channel counts: what expired may also be the relay's
    /// access token.
    fn of_line(line: &str) -> Self {
        if line.contains("block") {
            return Self::Blocked;
        }
        if !line.is_ascii() {
            return Self::Unreadable;
        }
        let words: Vec<_> = line.trim().trim_end_matches('.').split_whitespace().collect();
        let words = words.strip_prefix(&["the"]).unwrap_or(&words);
        let Some(words) = words.strip_prefix(&["channel"]) else {
            return Self::Unclear;
        };
        let words = words.strip_prefix(&["uri"]).unwrap_or(words);
        match words {
            ["expired"] | ["has" | "is", "expired"] | ["has", "been", "expired"] => Self::Expired,
            ["revoked"]
            | ["was" | "is", "revoked"]
            | ["has", "been", "revoked"]
            | ["was", "revoked", "by", "the", "user"] => Self::Revoked,
            _ => Self::Unclear,
        }
    }
}

/// An answer that would end a device, by its description: not if WNS has blocked the relay, or may be saying so.
fn refused(answer: &Answer) -> Reading {
    let description = description(&answer.headers);
    let outcome = match (answer.status, description) {
        (_, Description::Blocked) => {
            let advice = "Microsoft has blocked the relay's domain for abuse and has to be asked to lift it";
            return Reading::RelayRefused(refusal(answer.status, "domain_blocked", advice));
        }
        (_, Description::Unreadable) => failed(Reason::UnconfirmedToken, true, Health::Answered),
        (403, _) => answer.gone(Certainty::Conditional, Reason::WrongApp),
        (404, _) => answer.gone(Certainty::Certain, Reason::Unregistered),
        (_, Description::Expired) => answer.gone(Certainty::Certain, Reason::ExpiredToken),
        (_, Description::Revoked) => answer.gone(Certainty::Certain, Reason::Unregistered),
        (_, Description::Unclear) => answer.gone(Certainty::Conditional, Reason::Unregistered),
    };
    Reading::Outcome(outcome)
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
