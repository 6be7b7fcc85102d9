//! FCM's answers to outcomes. <https://firebase.google.com/docs/cloud-messaging/error-codes>
//!
//! Two answers look alike and mean opposite things: a 404 is the device's end only when an `FcmError` says
//! `UNREGISTERED` (else the project is wrong), and a 400 `INVALID_ARGUMENT` is about the token only in two exact shapes
//! (else it is about the payload). An error without Google's envelope is not FCM's, and final for nobody.

use std::time::Duration;

use serde::Deserialize;
use sovereign_relay_actors::ports::{Certainty, Health, Hold, Outcome};
use sovereign_relay_protocol::{push::Reason, redacted::Redacted};

use self::body::ErrorObject;
use crate::provider::{
    alarm::Refusal,
    answer::{Answer, Reading, failed, not_the_providers, perhaps_taken},
};

mod body;

/// What Google asks to wait when a 429 names no time.
const DEFAULT_QUOTA_WAIT: Duration = Duration::from_secs(60);
/// Longer names of messages are not Google's.
const MESSAGE_ID_CHARS: usize = 128;

#[derive(Deserialize)]
struct Accepted {
    name: String,
}

/// Reads an answer to a push to `token`.
pub(super) fn read(answer: &Answer, token: &Redacted) -> Reading {
    let error = match ErrorObject::parse(&answer.body) {
        Some(error) => error,
        None => match not_googles(answer.status) {
            Some(reading) => return reading,
            None => ErrorObject::default(),
        },
    };
    let fcm_code = error.fcm_code();
    let outcome = match (answer.status, fcm_code.as_deref()) {
        (200, _) => accepted(answer),
        (201..=299, _) => perhaps_taken(),
        (404, Some("UNREGISTERED")) => answer.gone(Certainty::Certain, Reason::Unregistered),
        (403, Some("SENDER_ID_MISMATCH")) => answer.gone(Certainty::Conditional, Reason::WrongApp),
        (400, Some("INVALID_ARGUMENT")) if error.is_about_the_token() => {
            answer.gone(Certainty::Conditional, Reason::BadToken)
        }
        (400 | 413, _) => failed(Reason::PayloadRejected, false, Health::Answered),
        (401, None) => return Reading::TokenRefused(refusal(answer.status, None)),
        (429, _) => throttled(answer, error.names_the_device(token)),
        (500..=599, _) => answer.unavailable(),
        (300..=399 | 407 | 408, _) => not_the_providers(),
        (status, code) => return Reading::RelayRefused(refusal(status, code)),
    };
    Reading::Outcome(outcome)
}

/// Whether it was FCM that answered with this error, and not some proxy.
pub(super) fn is_from_fcm(answer: &Answer) -> bool {
    ErrorObject::parse(&answer.body).is_some()
}

/// A 4xx without Google's envelope, which is some proxy's or of a wrong FCM_ENDPOINT. `None`: it means the same with any
/// body. A 401 may be about the access token, and a 429 asks to wait.
fn not_googles(status: u16) -> Option<Reading> {
    match status {
        401 | 429 => None,
        403 | 404 => Some(Reading::PerhapsRelayRefused(refusal(status, None))),
        400..=499 => Some(Reading::Outcome(not_the_providers())),
        _ => None,
    }
}

fn accepted(answer: &Answer) -> Outcome {
    let Ok(Accepted { name }) = serde_json::from_slice(&answer.body) else {
        return perhaps_taken();
    };
    let id = name.rsplit('/').next().map(str::to_owned);
    Outcome::Sent {
        message_id: id.filter(|id| !id.is_empty() && id.len() <= MESSAGE_ID_CHARS),
    }
}

/// The project's quota holds everybody; the rate of one device, which one instance can exceed alone, must not.
fn throttled(answer: &Answer, is_the_devices: bool) -> Outcome {
    let (reason, hold) = if is_the_devices {
        (Reason::DeviceThrottled, Hold::Token)
    } else {
        (Reason::ProviderThrottled, Hold::Provider)
    };
    answer.throttled(reason, hold, DEFAULT_QUOTA_WAIT)
}

fn refusal(status: u16, fcm_code: Option<&str>) -> Refusal {
    let (reason, advice) = match (status, fcm_code) {
        (_, Some("THIRD_PARTY_AUTH_ERROR")) => (
            "third_party_auth",
            "the Firebase project's APNs or web push credentials are wrong",
        ),
        (401, _) => ("unauthenticated", "Google does not take its own access token"),
        (403, _) => (
            "permission_denied",
            "the service account lacks the right cloudmessaging.messages.create, or the API is not enabled",
        ),
        (404, _) => ("not_found", "there is no such Firebase project"),
        _ => (
            "unexpected",
            "the answer is not one that FCM documents; is FCM_ENDPOINT right?",
        ),
    };
    Refusal {
        status,
        reason,
        advice,
    }
}

#[cfg(test)]
mod tests;
