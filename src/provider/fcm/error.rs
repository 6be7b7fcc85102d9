//! FCM's answers to outcomes. <https://firebase.google.com/docs/cloud-messaging/error-codes>
//!
//! Two answers look alike and mean opposite things: a 404 is the device's end only when an `FcmError` says
//! `UNREGISTERED` (else the project is wrong), and a 400 `INVALID_ARGUMENT` is about the token only in two exact shapes
//! (else it is about the payload).

use std::time::Duration;

use serde::Deserialize;
use sovereign_relay_actors::ports::{Certainty, Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::{push::Reason, time::UnixMillis};

use crate::provider::{
    call::{Answer, Reading},
    retry_after::retry_after,
};

/// What FCM says of a token that is none.
const BAD_TOKEN_MESSAGE: &str = "The registration token is not a valid FCM registration token";
/// The field that such an answer may name.
const TOKEN_FIELD: &str = "message.token";
/// What Google asks to wait when a 429 names no time.
const DEFAULT_QUOTA_WAIT: Duration = Duration::from_secs(60);

#[derive(Deserialize, Default)]
struct Body {
    #[serde(default)]
    error: ErrorObject,
}

#[derive(Deserialize, Default)]
struct ErrorObject {
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Detail {
    #[serde(rename = "@type")]
    kind: String,
    error_code: Option<String>,
    field_violations: Vec<FieldViolation>,
    violations: Vec<QuotaViolation>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FieldViolation {
    field: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct QuotaViolation {
    subject: String,
    description: String,
}

#[derive(Deserialize)]
struct Accepted {
    name: String,
}

/// Reads an answer to a push that began at `began`.
pub(super) fn read(answer: &Answer, began: UnixMillis, now: UnixMillis) -> Reading {
    let body = serde_json::from_slice::<Body>(&answer.body).unwrap_or_default();
    let hint = retry_after(&answer.headers, now);
    let fcm_code = body.error.fcm_code();
    let outcome = match (answer.status, fcm_code) {
        (200, _) => accepted(answer),
        // Not FCM's way to say anything: it may have been accepted.
        (201..=299, _) => failed(Reason::UnknownOutcome, true),
        // A redirect, which is not followed: somebody else speaks.
        (300..=399, _) => failed(Reason::ProviderUnavailable, true),
        (404, Some("UNREGISTERED")) => gone(Certainty::Certain, Reason::Unregistered, began),
        (403, Some("SENDER_ID_MISMATCH")) => gone(Certainty::Conditional, Reason::WrongApp, began),
        (400, Some("INVALID_ARGUMENT")) if body.error.is_about_the_token() => {
            gone(Certainty::Conditional, Reason::BadToken, began)
        }
        (401, None) => return Reading::TokenRefused(misconfigured(answer, fcm_code)),
        (429, _) => throttled(&body.error, hint),
        (500..=599, _) => Outcome::Failed(Failure {
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
        (401 | 403 | 404, _) => misconfigured(answer, fcm_code),
        (400 | 413, _) => failed(Reason::PayloadRejected, false),
        _ => misconfigured(answer, fcm_code),
    };
    Reading::Outcome(outcome)
}

impl ErrorObject {
    fn fcm_code(&self) -> Option<&str> {
        let ours = self
            .details
            .iter()
            .find(|detail| detail.kind.ends_with("google.firebase.fcm.v1.FcmError"));
        ours.and_then(|detail| detail.error_code.as_deref())
    }

    /// The two shapes of a bad token: every named field is the token's, or no field is named and the sentence is this.
    fn is_about_the_token(&self) -> bool {
        let mut fields = self
            .details
            .iter()
            .flat_map(|detail| &detail.field_violations)
            .map(|violation| &violation.field);
        match fields.next() {
            Some(first) => first == TOKEN_FIELD && fields.all(|field| field == TOKEN_FIELD),
            None => self.message == BAD_TOKEN_MESSAGE,
        }
    }

    /// A quota of one device, not of the project: the violation says so.
    fn is_about_one_device(&self) -> bool {
        let mut violations = self.details.iter().flat_map(|detail| &detail.violations);
        violations
            .any(|violation| names_a_device(&violation.subject) || names_a_device(&violation.description))
    }
}

fn names_a_device(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| word.eq_ignore_ascii_case("device"))
}

fn accepted(answer: &Answer) -> Outcome {
    // An accepted message without a readable name is still accepted.
    let name = serde_json::from_slice::<Accepted>(&answer.body)
        .ok()
        .map(|accepted| accepted.name);
    let id = name.and_then(|name| name.rsplit('/').next().map(str::to_owned));
    Outcome::Sent {
        message_id: id.filter(|id| !id.is_empty() && id.len() <= 128),
    }
}

fn throttled(error: &ErrorObject, hint: Option<Duration>) -> Outcome {
    let (reason, hold) = if error.is_about_one_device() {
        (Reason::DeviceThrottled, Hold::Token)
    } else {
        (Reason::ProviderThrottled, Hold::Provider)
    };
    let retry_after = Some(hint.unwrap_or(DEFAULT_QUOTA_WAIT));
    Outcome::Failed(Failure {
        reason,
        retryable: true,
        retry_after,
        hold,
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

fn misconfigured(answer: &Answer, fcm_code: Option<&str>) -> Outcome {
    let fcm_code = fcm_code.filter(|code| code.len() <= 40).unwrap_or("none");
    tracing::error!(
        provider = "fcm",
        status = answer.status,
        fcm_code,
        "fcm refuses the relay"
    );
    failed(Reason::RelayMisconfigured, false)
}

#[cfg(test)]
mod tests;
