//! What a token endpoint answers.

use std::time::Duration;

use serde::Deserialize;
use sovereign_relay_protocol::redacted::Redacted;

/// When the answer names no lifetime (RFC 6749 only recommends it).
const UNNAMED_LIFETIME: Duration = Duration::from_secs(300);
/// A token with less is over before it is used, and the next would be too: a stream of requests. Its safety margin.
const SHORTEST_LIFETIME: Duration = Duration::from_secs(5);
/// A lifetime beyond this is not believed.
const LONGEST_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// `unsupported_grant_type` has 22 letters, and a log line room for some more.
const LONGEST_CODE: usize = 40;

/// A token and how long it lives.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(super) token: Redacted,
    pub(super) lifetime: Duration,
}

#[derive(Deserialize)]
struct Body {
    access_token: Redacted,
    expires_in: Option<Seconds>,
}

/// Google and WNS's older endpoint give a number, Entra a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

/// Reads a 200; `None` when it is no token, or one that is over at once: asking again and again would not help.
pub(crate) fn parse(body: &[u8]) -> Option<Issued> {
    let body: Body = serde_json::from_slice(body).ok()?;
    let sendable =
        !body.access_token.is_empty() && body.access_token.expose().bytes().all(|b| b.is_ascii_graphic());
    let lifetime = match body.expires_in {
        None => UNNAMED_LIFETIME,
        Some(Seconds::Number(seconds)) => lifetime(seconds)?,
        Some(Seconds::Text(text)) => lifetime(text.trim().parse().ok()?)?,
    };
    sendable.then_some(Issued {
        token: body.access_token,
        lifetime,
    })
}

fn lifetime(seconds: f64) -> Option<Duration> {
    let believed = Duration::try_from_secs_f64(seconds.clamp(0.0, LONGEST_LIFETIME.as_secs_f64())).ok()?;
    (believed >= SHORTEST_LIFETIME).then_some(believed)
}

/// The `error` of a refusal: RFC 6749's codes are short words, and anything else is none.
pub(super) fn error_code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let Refusal { error } = serde_json::from_slice(body).ok()?;
    let is_word = (1..=LONGEST_CODE).contains(&error.len())
        && error
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_word.then_some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetime_of(json: &str) -> Option<u64> {
        parse(json.as_bytes()).map(|issued| issued.lifetime.as_secs())
    }

    #[test]
    fn the_lifetime_may_be_a_number_a_string_or_absent() {
        assert_eq!(
            lifetime_of(r#"{"access_token":"t","expires_in":3600,"token_type":"bearer"}"#),
            Some(3600)
        );
        assert_eq!(
            lifetime_of(r#"{"access_token":"t","expires_in":"86399","ext_expires_in":"86399"}"#),
            Some(86_399)
        );
        assert_eq!(lifetime_of(r#"{"access_token":"t"}"#), Some(300));
        assert_eq!(
            lifetime_of(r#"{"access_token":"t","expires_in":3599.9}"#),
            Some(3599)
        );
    }

    #[test]
    fn an_absurd_lifetime_is_a_day() {
        for absurd in [
            "86401",
            "18446744073709551615",
            "1e300",
            r#""99999999999999999999""#,
        ] {
            let body = format!(r#"{{"access_token":"t","expires_in":{absurd}}}"#);
            assert_eq!(lifetime_of(&body), Some(86_400), "{absurd}");
        }
    }

    #[test]
    fn what_is_no_token_is_none() {
        let wrong = [
            "",
            "<html>",
            "{}",
            r#"{"access_token":""}"#,
            r#"{"access_token":"a\nb"}"#,
            r#"{"access_token":7}"#,
            r#"{"access_token":"t","expires_in":"soon"}"#,
            r#"{"access_token":"t","expires_in":-1}"#,
            r#"{"access_token":"t","expires_in":0}"#,
            r#"{"access_token":"t","expires_in":"0"}"#,
            r#"{"access_token":"t","expires_in":4}"#,
            r#"{"access_token":"t","expires_in":"NaN"}"#,
            r#"{"access_token":"t","expires_in":-1e300}"#,
        ];
        for text in wrong {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn only_short_words_are_error_codes() {
        assert_eq!(
            error_code(br#"{"error":"invalid_grant","error_description":"secret"}"#).as_deref(),
            Some("invalid_grant")
        );
        for none in [
            &br#"{"error":"Some Secret"}"#[..],
            br#"{"error":""}"#,
            br#"{"error":{"code":403}}"#,
            b"<html>",
            b"",
        ] {
            assert_eq!(error_code(none), None);
        }
    }
}
