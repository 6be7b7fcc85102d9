//! Reads one message and judges it by FCM's rules.
//!
//! Pure. What FCM refuses is a [`Behaviour`] from [`crate::fcm::verdict`], so a rule's answer and a scripted one have
//! the same bytes.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    behaviour::Behaviour,
    fcm::verdict::{self, error, violation},
};

/// Largest data: keys and values together.
const MAX_DATA_BYTES: usize = 4096;
/// Four weeks.
const MAX_TTL_SECONDS: f64 = 2_419_200.0;

#[derive(Debug, Deserialize)]
struct Envelope {
    message: Message,
}

/// The part of a message that the relay may use. proto3 JSON takes both spellings of a name.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    pub(crate) token: Option<String>,
    #[serde(default)]
    pub(crate) fid: Option<String>,
    #[serde(default)]
    pub(crate) topic: Option<String>,
    #[serde(default)]
    pub(crate) condition: Option<String>,
    #[serde(default)]
    pub(crate) data: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) android: Android,
}

/// `message.android`
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Android {
    #[serde(default)]
    pub(crate) priority: Option<String>,
    #[serde(default)]
    pub(crate) ttl: Option<String>,
    #[serde(default, alias = "collapseKey")]
    pub(crate) collapse_key: Option<String>,
}

impl Message {
    /// The device, whichever way it is named.
    pub(crate) fn device(&self) -> &str {
        self.token.as_deref().or(self.fid.as_deref()).unwrap_or_default()
    }
}

/// The message, or FCM's answer to what is none.
pub(crate) fn parse(body: &[u8]) -> Result<Message, Behaviour> {
    serde_json::from_slice::<Envelope>(body)
        .map(|envelope| envelope.message)
        .map_err(|cause| invalid("message", &format!("Invalid JSON payload received. {cause}")))
}

/// The first rule that the message breaks.
pub(crate) fn judge(message: &Message) -> Result<(), Behaviour> {
    let targets = [&message.token, &message.fid, &message.topic, &message.condition];
    if targets.into_iter().flatten().count() != 1 {
        return Err(invalid(
            "message",
            "Exactly one of token, fid, topic or condition is required",
        ));
    }
    if message.device().is_empty() || !message.device().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(verdict::bad_token());
    }
    judge_data(&message.data)?;
    judge_android(&message.android)
}

fn judge_data(data: &BTreeMap<String, String>) -> Result<(), Behaviour> {
    if let Some(key) = data.keys().find(|key| is_reserved(key)) {
        return Err(invalid(
            "message.data",
            &format!("Invalid data payload key: {key}"),
        ));
    }
    let bytes: usize = data
        .iter()
        .map(|(key, value)| key.len().saturating_add(value.len()))
        .sum();
    if bytes > MAX_DATA_BYTES {
        Err(verdict::too_large())
    } else {
        Ok(())
    }
}

fn is_reserved(key: &str) -> bool {
    matches!(key, "from" | "message_type" | "gcm")
        || key.starts_with("google")
        || key.starts_with("gcm.notification.")
}

fn judge_android(android: &Android) -> Result<(), Behaviour> {
    if let Some(priority) = &android.priority
        && !matches!(priority.to_ascii_lowercase().as_str(), "normal" | "high")
    {
        return Err(invalid(
            "message.android.priority",
            "Invalid value for the priority",
        ));
    }
    match &android.ttl {
        Some(ttl) if !is_ttl(ttl) => Err(invalid("message.android.ttl", "Invalid TTL duration")),
        Some(_) | None => Ok(()),
    }
}

/// `3600s`, with up to nine decimals.
fn is_ttl(text: &str) -> bool {
    let Some(seconds) = text.strip_suffix('s') else {
        return false;
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    digits(whole)
        && digits(fraction)
        && fraction.len() <= 9
        && seconds
            .parse::<f64>()
            .is_ok_and(|seconds| seconds <= MAX_TTL_SECONDS)
}

fn invalid(field: &str, description: &str) -> Behaviour {
    error(
        400,
        "INVALID_ARGUMENT",
        description,
        vec![violation(field, description)],
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn verdict_on(message: &Value) -> Result<(), Behaviour> {
        parse(json!({ "message": message }).to_string().as_bytes()).and_then(|message| judge(&message))
    }

    fn names_field(verdict: Result<(), Behaviour>, field: &str) -> bool {
        let crate::Ending::Answer(answer) = verdict.unwrap_err().ending else {
            panic!("a chosen answer")
        };
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        body["error"]["details"][0]["fieldViolations"][0]["field"] == field
    }

    #[test]
    fn data_of_4096_bytes_passes_and_one_more_does_not() {
        let of = |bytes: usize| json!({ "token": "t", "data": { "key": "x".repeat(bytes - 3) } });
        assert_eq!(verdict_on(&of(4096)), Ok(()));
        assert_eq!(verdict_on(&of(4097)), Err(verdict::too_large()));
    }

    #[test]
    fn each_bad_field_is_named() {
        for (message, field) in [
            (json!({}), "message"),
            (json!({ "token": "t", "topic": "news" }), "message"),
            (json!({ "token": "t", "data": { "from": "x" } }), "message.data"),
            (
                json!({ "token": "t", "data": { "google.x": "x" } }),
                "message.data",
            ),
            (json!({ "token": "t", "data": { "n": 1 } }), "message"),
            (
                json!({ "token": "t", "android": { "priority": "urgent" } }),
                "message.android.priority",
            ),
            (
                json!({ "token": "t", "android": { "ttl": "60" } }),
                "message.android.ttl",
            ),
            (
                json!({ "token": "t", "android": { "ttl": "-1s" } }),
                "message.android.ttl",
            ),
            (
                json!({ "token": "t", "android": { "ttl": "2419201s" } }),
                "message.android.ttl",
            ),
        ] {
            assert!(names_field(verdict_on(&message), field), "{message}");
        }
        assert_eq!(
            verdict_on(&json!({ "token": "with space" })),
            Err(verdict::bad_token())
        );
    }

    #[test]
    fn a_message_of_the_relay_passes_in_both_spellings() {
        let message = json!({ "token": "t:x", "data": { "encryptedPayload": "e" },
            "android": { "priority": "HIGH", "ttl": "2419200s", "collapse_key": "c" } });
        assert_eq!(verdict_on(&message), Ok(()));
        let body = json!({ "message": { "fid": "f", "android": { "collapseKey": "c", "ttl": "3.5s" } } });
        let message = parse(body.to_string().as_bytes()).unwrap();
        assert_eq!(
            (message.device(), message.android.collapse_key.as_deref()),
            ("f", Some("c"))
        );
        assert_eq!(judge(&message), Ok(()));
    }
}
