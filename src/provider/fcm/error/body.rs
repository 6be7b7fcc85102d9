//! The body of an error in Google's envelope: `google.rpc.Status` with typed details.
//!
//! What can't be read counts as absent, except where that would turn another error into one about the token.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use sovereign_relay_protocol::redacted::Redacted;

const FCM_ERROR: &str = "type.googleapis.com/google.firebase.fcm.v1.FcmError";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
const QUOTA_FAILURE: &str = "type.googleapis.com/google.rpc.QuotaFailure";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// What FCM says of a token that is none.
pub(super) const BAD_TOKEN_MESSAGE: &str = "The registration token is not a valid FCM registration token";
/// The field that such an answer may name.
const TOKEN_FIELD: &str = "message.token";
/// How the rate of one device is called, in a quota's subject, description, metric or id.
const DEVICE: &str = "device";

#[derive(Deserialize)]
struct Body {
    error: ErrorObject,
}

/// The `error` of an answer.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ErrorObject {
    message: Value,
    details: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FcmError {
    error_code: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BadRequest {
    #[serde(default)]
    field_violations: Vec<FieldViolation>,
}

#[derive(Deserialize)]
struct FieldViolation {
    field: String,
}

impl ErrorObject {
    /// Nothing if the body is none of Google's.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        // As text first: the JSON parser passes over broken text in fields that nobody reads.
        let text = std::str::from_utf8(body).ok()?;
        let body: Body = serde_json::from_str(text).ok()?;
        Some(body.error)
    }

    /// `errorCode` of the one `FcmError`. Two that differ say nothing.
    pub(super) fn fcm_code(&self) -> Option<String> {
        let mut codes = self
            .details_of(FCM_ERROR)
            .filter_map(read::<FcmError>)
            .map(|detail| detail.error_code);
        let first = codes.next()?;
        codes.all(|code| code == first).then_some(first)
    }

    /// The two shapes of a bad token: every field named is the token's, or none is named and the sentence is this.
    pub(super) fn is_about_the_token(&self) -> bool {
        let requests: Option<Vec<BadRequest>> = self.details_of(BAD_REQUEST).map(read).collect();
        let Some(requests) = requests else { return false };
        let mut fields = requests
            .iter()
            .flat_map(|request| &request.field_violations)
            .map(|violation| violation.field.as_str());
        match fields.next() {
            Some(first) => first == TOKEN_FIELD && fields.all(|field| field == TOKEN_FIELD),
            None => self.message.as_str() == Some(BAD_TOKEN_MESSAGE),
        }
    }

    /// Whether a quota is the device's: Google documents the sentence "Device message rate exceeded" and a
    /// `QuotaFailure`, whose fields have changed over the years, so each text in it counts.
    pub(super) fn names_the_device(&self, token: &Redacted) -> bool {
        let details = self.details_of(QUOTA_FAILURE).chain(self.details_of(ERROR_INFO));
        self.message.as_str().is_some_and(mentions_device)
            || details.into_iter().any(|detail| {
                any_text(detail, &|text| {
                    mentions_device(text) || text.contains(token.expose())
                })
            })
    }

    fn details_of(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        self.details
            .iter()
            .filter(move |detail| detail.get("@type").and_then(Value::as_str) == Some(kind))
    }
}

fn read<T: DeserializeOwned>(detail: &Value) -> Option<T> {
    T::deserialize(detail).ok()
}

/// Whether any string in `value` is one `that` holds for; as deep as the JSON parser lets it be.
fn any_text(value: &Value, that: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => that(text),
        Value::Array(values) => values.iter().any(|value| any_text(value, that)),
        Value::Object(fields) => fields.values().any(|value| any_text(value, that)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// One device: `device`, `DEVICE_MESSAGE_RATE`, `PerDevicePerMinute`, but not the plural, which is everybody's.
fn mentions_device(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.match_indices(DEVICE).any(|(at, found)| {
        !text
            .get(at + found.len()..)
            .is_some_and(|rest| rest.starts_with('s'))
    })
}
