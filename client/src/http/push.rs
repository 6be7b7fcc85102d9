//! Pushes on the wire, and what became of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sovereign_relay_protocol::{
    id::{CollapseId, IdempotencyKey},
    platform::{Environment, Platform, Priority},
    push::{PushMessage, PushResult, Reason},
    time::UnixMillis,
};

use super::error::{Refusal, WireRefusal};

/// What became of a push.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PushOutcome {
    /// The provider took it.
    Sent {
        /// The provider's name of the message.
        message_id: Option<String>,
    },
    /// The device is gone.
    InvalidToken {
        /// Why; `None` for a reason of a later version.
        reason: Option<Reason>,
        /// Delete only a registration older than this: the same token may have been registered again since.
        since: UnixMillis,
    },
    /// Anything else.
    Failed {
        /// Why; `None` for a reason of a later version.
        reason: Option<Reason>,
        /// Whether the same push may succeed later.
        retryable: bool,
        /// When at the earliest, where the relay says so.
        retry_after: Option<Duration>,
    },
}

/// A push as it is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushOut<'a> {
    device_token: &'a str,
    platform: Platform,
    encrypted_payload: &'a str,
    priority: Priority,
    ttl_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Environment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
}

/// A batch as it is sent.
#[derive(Serialize)]
pub(super) struct BatchOut<'a> {
    messages: Vec<PushOut<'a>>,
}

/// An answer as it comes. Reasons may be of a later version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnswerIn {
    result: PushResult,
    #[serde(default)]
    reason: Value,
    #[serde(default)]
    retryable: Option<bool>,
    #[serde(default)]
    retry_after_seconds: Option<u64>,
    #[serde(default)]
    invalid_since: Option<UnixMillis>,
    #[serde(default)]
    message_id: Option<String>,
}

/// The answer to a batch.
#[derive(Deserialize)]
pub(super) struct BatchIn {
    /// Each read by itself: one of a later version, or a damaged one, is no reason to ask for the others again.
    results: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PlaceIn {
    Answer(AnswerIn),
    Refused(WireRefusal),
}

impl<'a> PushOut<'a> {
    pub(super) fn new(message: &'a PushMessage) -> Self {
        Self {
            device_token: message.device_token.expose(),
            platform: message.platform,
            encrypted_payload: message.encrypted_payload.expose(),
            priority: message.priority,
            ttl_seconds: message.ttl_seconds,
            collapse_id: message.collapse_id.as_ref().map(CollapseId::expose),
            environment: message.environment,
            idempotency_key: message.idempotency_key.as_ref().map(IdempotencyKey::expose),
        }
    }
}

impl<'a> BatchOut<'a> {
    pub(super) fn new(messages: &'a [PushMessage]) -> Self {
        Self {
            messages: messages.iter().map(PushOut::new).collect(),
        }
    }
}

impl AnswerIn {
    /// `None` when the answer calls a device gone without saying since when: nothing could safely be deleted.
    pub(super) fn outcome(self) -> Option<PushOutcome> {
        let reason = serde_json::from_value(self.reason).ok();
        Some(match self.result {
            PushResult::Sent => PushOutcome::Sent {
                message_id: self.message_id,
            },
            PushResult::InvalidToken => PushOutcome::InvalidToken {
                reason,
                since: self.invalid_since?,
            },
            PushResult::Failed => PushOutcome::Failed {
                reason,
                retryable: self.retryable.unwrap_or(false),
                retry_after: self.retry_after_seconds.map(Duration::from_secs),
            },
        })
    }
}

impl BatchIn {
    /// `None` when there are not as many answers as messages: one would be taken for another's.
    pub(super) fn outcomes(self, messages: usize) -> Option<Vec<Result<PushOutcome, Refusal>>> {
        if self.results.len() != messages {
            return None;
        }
        Some(self.results.into_iter().map(PlaceIn::read).collect())
    }
}

/// The relay has dealt with the message, and how can't be read: nothing that a repeat would change.
const UNREADABLE: PushOutcome = PushOutcome::Failed {
    reason: None,
    retryable: false,
    retry_after: None,
};

impl PlaceIn {
    fn read(place: Value) -> Result<PushOutcome, Refusal> {
        let place = serde_json::from_value::<Self>(place).ok();
        place.and_then(Self::outcome).unwrap_or(Ok(UNREADABLE))
    }

    fn outcome(self) -> Option<Result<PushOutcome, Refusal>> {
        match self {
            Self::Answer(answer) => answer.outcome().map(Ok),
            Self::Refused(wire) => Some(Err(Refusal::new(wire, None, None))),
        }
    }
}

#[cfg(test)]
mod tests {
    use sovereign_relay_protocol::{
        batch::{Batch, BatchAnswer, BatchResult},
        error::ErrorCode,
        push::{PushAnswer, PushBody},
        redacted::Redacted,
    };

    use super::*;

    fn message() -> PushMessage {
        PushMessage::new(Platform::Ios, Redacted::new("aabb"), Redacted::new("sealed"))
    }

    fn read(answer: &PushAnswer) -> Option<PushOutcome> {
        let json = serde_json::to_vec(answer).unwrap();
        serde_json::from_slice::<AnswerIn>(&json).unwrap().outcome()
    }

    #[test]
    fn what_is_sent_is_what_the_relay_parses() {
        let full = PushMessage {
            priority: Priority::Normal,
            ttl_seconds: 0,
            collapse_id: CollapseId::parse("c"),
            environment: Some(Environment::Sandbox),
            idempotency_key: IdempotencyKey::parse("k"),
            ..message()
        };
        for message in [message(), full] {
            let json = serde_json::to_vec(&PushOut::new(&message)).unwrap();
            assert_eq!(PushBody::parse(&json).unwrap().message, message);
            let json = serde_json::to_vec(&BatchOut::new(std::slice::from_ref(&message))).unwrap();
            let parsed = Batch::parse(&json).unwrap().messages.remove(0).unwrap();
            assert_eq!(parsed.message, message);
        }
    }

    #[test]
    fn outcomes_are_those_that_the_relay_means() {
        let since = UnixMillis(1_700_000_000_000);
        let sent = read(&PushAnswer::sent(Some("id".to_owned())));
        assert_eq!(
            sent,
            Some(PushOutcome::Sent {
                message_id: Some("id".to_owned())
            })
        );
        let reason = Some(Reason::Unregistered);
        let gone = read(&PushAnswer::invalid_token(Reason::Unregistered, since));
        assert_eq!(gone, Some(PushOutcome::InvalidToken { reason, since }));
        let failed = read(&PushAnswer::failed(Reason::ProviderThrottled, true, Some(9)));
        let expected = PushOutcome::Failed {
            reason: Some(Reason::ProviderThrottled),
            retryable: true,
            retry_after: Some(Duration::from_secs(9)),
        };
        assert_eq!(failed, Some(expected));
    }

    #[test]
    fn a_later_reason_is_no_obstacle_and_a_gone_device_without_a_date_is_no_outcome() {
        let later: AnswerIn = serde_json::from_str(r#"{"result":"failed","reason":"later"}"#).unwrap();
        let expected = PushOutcome::Failed {
            reason: None,
            retryable: false,
            retry_after: None,
        };
        assert_eq!(later.outcome(), Some(expected));
        let gone: AnswerIn = serde_json::from_str(r#"{"result":"invalid_token"}"#).unwrap();
        assert_eq!(gone.outcome(), None);
    }

    #[test]
    fn each_place_of_a_batch_has_its_own_answer() {
        let answer = BatchAnswer {
            results: vec![
                BatchResult::Answer(PushAnswer::sent(None)),
                BatchResult::Refused {
                    error: ErrorCode::RateLimited,
                    message: "slower".to_owned(),
                    retry_after_seconds: Some(3),
                },
            ],
        };
        let json = serde_json::to_vec(&answer).unwrap();
        let parse = || serde_json::from_slice::<BatchIn>(&json).unwrap();
        let outcomes = parse().outcomes(2).unwrap();
        assert_eq!(outcomes[0], Ok(PushOutcome::Sent { message_id: None }));
        let refusal = outcomes[1].as_ref().unwrap_err();
        assert_eq!(
            (refusal.code, refusal.status),
            (Some(ErrorCode::RateLimited), 429)
        );
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(3)));
        assert_eq!(
            parse().outcomes(3),
            None,
            "a missing answer would be taken for another's"
        );
    }

    #[test]
    fn a_place_that_cannot_be_read_spoils_no_other() {
        let json = r#"{"results":[{"result":"sent"},{"result":"invalid_token"},{"result":"later"},7,null]}"#;
        let outcomes = serde_json::from_str::<BatchIn>(json)
            .unwrap()
            .outcomes(5)
            .unwrap();
        assert_eq!(outcomes[0], Ok(PushOutcome::Sent { message_id: None }));
        assert!(outcomes[1..].iter().all(|outcome| *outcome == Ok(UNREADABLE)));
    }
}
