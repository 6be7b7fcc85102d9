//! What a sealed payload holds: the notification that an app shows.
//!
//! Called by [`crate::Keys::open`]. The fields are those that deployed instances send: `title`, `body`, `url`, `tag`,
//! and `data` for the app itself. Null is the same as left out, and fields of later versions are ignored.
//!
//! Nothing in it is to be trusted more than the instance is: an app that follows `url` decides where it may lead.

use serde_json::{Map, Value};
use sovereign_relay_protocol::{
    limits,
    seal::{self, DeviceKey, OpenError as SealedError},
};
use thiserror::Error;

/// No provider carries a longer payload: of the three, WNS takes the most.
pub const SEALED_CHARS: usize = limits::WNS_BODY_BYTES;

/// A notification, opened.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// The first line.
    pub title: String,
    /// The text, which may be empty.
    pub body: String,
    /// Where a tap leads: an address, or a path of the instance.
    pub url: Option<String>,
    /// A later notification with the same tag takes this one's place.
    pub tag: Option<String>,
    /// Whatever the app and its instance agreed on.
    pub data: Option<Value>,
}

/// A payload could not be opened. Nothing of it is quoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    /// Longer than any push can be.
    #[error("the payload is longer than {SEALED_CHARS} characters, which no push can bring")]
    TooLarge,
    /// Not the form of a sealed payload: cut short, or changed on the way.
    #[error("the payload is damaged")]
    Damaged,
    /// Sealed for another key, as after a sign-out, or changed on the way: the two can't be told apart.
    #[error("the payload is not for this device's key")]
    NotForThisKey,
    /// It opened, but what is inside is not a notification.
    #[error("the payload holds no notification: {0}")]
    NotANotification(&'static str),
}

/// Opens a payload.
pub(crate) fn open(sealed: &str, key: &DeviceKey) -> Result<Notification, OpenError> {
    if sealed.len() > SEALED_CHARS {
        return Err(OpenError::TooLarge);
    }
    let text = seal::open(sealed, key).map_err(|error| match error {
        SealedError::NotBase64 | SealedError::TooShort | SealedError::NotAPoint => OpenError::Damaged,
        SealedError::NotAuthentic => OpenError::NotForThisKey,
        SealedError::NotUtf8 => OpenError::NotANotification("it is not text"),
    })?;
    parse(&text)
}

fn parse(text: &str) -> Result<Notification, OpenError> {
    let value = serde_json::from_str(text).map_err(|_| OpenError::NotANotification("it is not JSON"))?;
    let Value::Object(mut fields) = value else {
        return Err(OpenError::NotANotification("it is not an object"));
    };
    let title = take_text(&mut fields, "title", "the title is not text")?;
    Ok(Notification {
        title: title.ok_or(OpenError::NotANotification("it has no title"))?,
        body: take_text(&mut fields, "body", "the body is not text")?.unwrap_or_default(),
        url: take_text(&mut fields, "url", "the url is not text")?,
        tag: take_text(&mut fields, "tag", "the tag is not text")?,
        data: fields.remove("data").filter(|data| !data.is_null()),
    })
}

fn take_text(
    fields: &mut Map<String, Value>,
    name: &str,
    otherwise: &'static str,
) -> Result<Option<String>, OpenError> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(OpenError::NotANotification(otherwise))
        }
    }
}

#[cfg(test)]
mod tests;
