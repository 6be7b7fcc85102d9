//! What an answer of APNs means for a push.
//!
//! Pure, and the only place that knows Apple's reason strings. Called with each answer; says the outcome and
//! whether the same push may be sent once more.
//!
//! Invariant: a device is called gone by the documented pairs of status and reason and by nothing else; an
//! unknown reason never does, since Apple's list grows. A refusal whose body was lost on the way is no verdict at all:
//! its status alone covers causes that differ in what the caller must do. Nor is one that is not in Apple's form: some
//! machine in between refuses, and that passes.
//! <https://developer.apple.com/documentation/usernotifications/handling-notification-responses-from-apns>

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use sovereign_relay_actors::ports::{Certainty, Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::{push::Reason, time::UnixMillis};

use crate::provider::{
    answer::{failed, not_the_providers},
    retry_after::retry_after,
};

/// How long one device is left alone after "too many requests" without a hint.
const DEVICE_HOLD: Duration = Duration::from_secs(60);

/// A UUID has 36; longer ones are not Apple's.
const MESSAGE_ID_CHARS: usize = 64;

macro_rules! apns_reasons {
    ($($name:ident),+ $(,)?) => {
        /// Apple's reason strings, under their own names.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
        pub(super) enum ApnsReason {
            $($name,)+
            /// Not in Apple's list, or a body that is none of Apple's.
            #[serde(other)]
            Unknown,
        }

        impl ApnsReason {
            /// All that Apple documents.
            pub(super) const ALL: &[Self] = &[$(Self::$name),+];

            /// As Apple writes it: a closed set, so it may be a metric label.
            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    Self::Unknown => "unknown",
                }
            }
        }
    };
}

apns_reasons! {
    BadCollapseId, BadDeviceToken, BadExpirationDate, BadMessageId, BadPriority, BadTopic, DeviceTokenNotForTopic,
    DuplicateHeaders, IdleTimeout, InvalidPushType, MissingDeviceToken, MissingTopic, PayloadEmpty, TopicDisallowed,
    BadCertificate, BadCertificateEnvironment, ExpiredProviderToken, Forbidden, InvalidProviderToken,
    MissingProviderToken, UnrelatedKeyIdInToken, BadEnvironmentKeyIdInToken, BadPath, MethodNotAllowed, ExpiredToken,
    Unregistered, PayloadTooLarge, TooManyProviderTokenUpdates, TooManyRequests, InternalServerError,
    ServiceUnavailable, Shutdown,
}

/// One answer, read and bounded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// `None`: the body was not read to its end.
    pub(super) reason: Option<ApnsReason>,
    /// The body is in Apple's form.
    pub(super) is_apples: bool,
    /// On 410: since when, in milliseconds.
    pub(super) timestamp: Option<UnixMillis>,
    pub(super) retry_after: Option<Duration>,
    /// `apns-id` of the answer.
    pub(super) message_id: Option<String>,
}

/// What an answer means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Judgement {
    /// The outcome, if this was the last try.
    pub(super) outcome: Outcome,
    /// Whether one more is allowed.
    pub(super) again: Again,
}

/// One more try of an answered push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Again {
    /// No.
    No,
    /// The provider stumbled: once more, same `apns-id`.
    Once,
    /// This connection is of no more use for it: once more, over another.
    OnAnotherConnection,
}

#[derive(Deserialize)]
struct ErrorBody {
    reason: ApnsReason,
    #[serde(default)]
    timestamp: Option<serde_json::Value>,
}

impl Answer {
    /// Reads an answer; no `body` is one that was not read to its end. A whole one that is not what Apple documents is
    /// an unknown reason.
    pub(super) fn new(status: StatusCode, headers: &HeaderMap, body: Option<&[u8]>, now: UnixMillis) -> Self {
        let parsed: Option<ErrorBody> = body.and_then(|body| serde_json::from_slice(body).ok());
        let timestamp = parsed
            .as_ref()
            .and_then(|parsed| parsed.timestamp.as_ref()?.as_u64());
        let is_apples = parsed.is_some();
        let reason = parsed.map_or(ApnsReason::Unknown, |parsed| parsed.reason);
        Self {
            status,
            reason: body.is_some().then_some(reason),
            is_apples,
            timestamp: timestamp.map(UnixMillis),
            retry_after: retry_after(headers, now),
            message_id: headers
                .get("apns-id")
                .and_then(|id| id.to_str().ok())
                .filter(|id| !id.is_empty() && id.len() <= MESSAGE_ID_CHARS)
                .map(str::to_owned),
        }
    }

    /// Names the answer in metrics and logs.
    pub(super) fn label(&self) -> &'static str {
        match (self.status, self.reason) {
            (StatusCode::OK, _) => "sent",
            (_, Some(reason)) => reason.as_str(),
            (_, None) => "unreadable",
        }
    }

    /// The outcome. `since` stands in for a missing timestamp: when the relay began the call.
    pub(super) fn judge(self, since: UnixMillis, now: UnixMillis) -> Judgement {
        match (self.status.as_u16(), self.reason) {
            (200, _) => Judgement::last(Outcome::Sent {
                message_id: self.message_id,
            }),
            (201..=299, _) => Judgement::failed(Reason::UnknownOutcome, true),
            (400..=499, None) => self.judge_unreadable(),
            (400 | 403 | 404 | 405 | 413, Some(_)) if !self.is_apples => self.judge_foreign(),
            (400, Some(reason)) => judge_bad_request(reason, since),
            (403, Some(reason)) => judge_forbidden(reason),
            (404 | 405, Some(_)) => Judgement::misconfigured(),
            (410, Some(reason)) => self.judge_inactive(reason, since, now),
            (413, Some(_)) => rejected(),
            (429, Some(reason)) => self.judge_too_many(reason),
            (500..=599, reason) => self.judge_server_error(reason),
            // Not of Apple's making: an intermediary speaks.
            _ => Judgement::failed(Reason::ProviderUnavailable, true),
        }
    }

    /// Refused, so surely not accepted; whose fault it is was in the body.
    fn judge_unreadable(&self) -> Judgement {
        let reason = match self.status {
            StatusCode::TOO_MANY_REQUESTS => Reason::ProviderThrottled,
            _ => Reason::ProviderUnavailable,
        };
        Judgement::last(Outcome::Failed(Failure {
            reason,
            retryable: true,
            retry_after: self.retry_after,
            hold: Hold::Nothing,
            health: Health::Answered,
        }))
    }

    /// A page of some machine in between. One that forbids the relay to pass is for the operator to mend.
    fn judge_foreign(&self) -> Judgement {
        match self.status {
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                Judgement::failed(Reason::RelayMisconfigured, true)
            }
            _ => Judgement::last(not_the_providers()),
        }
    }

    /// A timestamp in the future would make instances delete what they register later.
    fn judge_inactive(&self, reason: ApnsReason, since: UnixMillis, now: UnixMillis) -> Judgement {
        let gone_since = self.timestamp.map_or(since, |timestamp| timestamp.min(now));
        match reason {
            ApnsReason::Unregistered => Judgement::gone(Certainty::Certain, Reason::Unregistered, gone_since),
            ApnsReason::ExpiredToken => Judgement::gone(Certainty::Certain, Reason::ExpiredToken, gone_since),
            // An intermediary can say 410 too: without Apple's word for it nothing may be deleted.
            _ => Judgement::failed(Reason::UnconfirmedToken, true),
        }
    }

    fn judge_too_many(&self, reason: ApnsReason) -> Judgement {
        if reason == ApnsReason::TooManyProviderTokenUpdates {
            return Judgement::misconfigured();
        }
        Judgement::last(Outcome::Failed(Failure {
            reason: Reason::DeviceThrottled,
            retryable: true,
            retry_after: Some(self.retry_after.unwrap_or(DEVICE_HOLD)),
            hold: Hold::Token,
            health: Health::Answered,
        }))
    }

    fn judge_server_error(&self, reason: Option<ApnsReason>) -> Judgement {
        let outcome = Outcome::Failed(Failure {
            reason: Reason::ProviderUnavailable,
            retryable: true,
            retry_after: self.retry_after,
            hold: if self.retry_after.is_some() {
                Hold::Provider
            } else {
                Hold::Nothing
            },
            health: Health::Faulty,
        });
        let again = match (self.status, self.retry_after, reason) {
            // Asked to wait: waiting is longer than a push lives.
            (_, Some(_), _) => Again::No,
            (_, None, Some(ApnsReason::Shutdown)) => Again::OnAnotherConnection,
            (StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE, None, _) => Again::Once,
            (_, None, _) => Again::No,
        };
        Judgement { outcome, again }
    }
}

impl Judgement {
    fn last(outcome: Outcome) -> Self {
        Self {
            outcome,
            again: Again::No,
        }
    }

    fn gone(certainty: Certainty, reason: Reason, since: UnixMillis) -> Self {
        Self::last(Outcome::Gone {
            certainty,
            reason,
            since,
        })
    }

    fn failed(reason: Reason, retryable: bool) -> Self {
        Self::last(failed(reason, retryable, Health::Answered))
    }

    fn misconfigured() -> Self {
        Self::failed(Reason::RelayMisconfigured, false)
    }

    fn on_another_connection(self) -> Self {
        Self {
            again: Again::OnAnotherConnection,
            ..self
        }
    }
}

fn judge_bad_request(reason: ApnsReason, since: UnixMillis) -> Judgement {
    use ApnsReason as R;
    match reason {
        R::BadDeviceToken => Judgement::gone(Certainty::Conditional, Reason::BadToken, since),
        R::DeviceTokenNotForTopic => Judgement::gone(Certainty::Conditional, Reason::WrongApp, since),
        R::BadTopic
        | R::MissingTopic
        | R::TopicDisallowed
        | R::BadExpirationDate
        | R::BadMessageId
        | R::BadPriority
        | R::DuplicateHeaders
        | R::InvalidPushType
        | R::PayloadEmpty => Judgement::misconfigured(),
        R::IdleTimeout => Judgement::failed(Reason::ProviderUnavailable, true).on_another_connection(),
        R::BadCollapseId | R::MissingDeviceToken | R::PayloadTooLarge => rejected(),
        R::BadCertificate
        | R::BadCertificateEnvironment
        | R::ExpiredProviderToken
        | R::Forbidden
        | R::InvalidProviderToken
        | R::MissingProviderToken
        | R::UnrelatedKeyIdInToken
        | R::BadEnvironmentKeyIdInToken
        | R::BadPath
        | R::MethodNotAllowed
        | R::TooManyProviderTokenUpdates => Judgement::misconfigured(),
        R::ExpiredToken
        | R::Unregistered
        | R::TooManyRequests
        | R::InternalServerError
        | R::ServiceUnavailable
        | R::Shutdown
        | R::Unknown => rejected(),
    }
}

/// Whatever the reason, it is the relay that is refused. A key that doesn't fit the connection fits a new one.
fn judge_forbidden(reason: ApnsReason) -> Judgement {
    let judgement = Judgement::misconfigured();
    if reason == ApnsReason::UnrelatedKeyIdInToken {
        return judgement.on_another_connection();
    }
    judgement
}

fn rejected() -> Judgement {
    Judgement::failed(Reason::PayloadRejected, false)
}

#[cfg(test)]
mod tests;
