//! The documented rules of a raw notification. Pure.

use http::{HeaderMap, Method};

use crate::{behaviour::Behaviour, wns::verdict::refused};

/// Largest body.
const MAX_BODY_BYTES: usize = 5000;

/// The first rule that the request breaks, as WNS answers it.
pub(crate) fn judge(method: &Method, headers: &HeaderMap, body: &[u8]) -> Result<(), Behaviour> {
    if method != Method::POST {
        return Err(refused(405, "Invalid method; only POST is allowed"));
    }
    judge_form(headers)?;
    judge_options(headers)?;
    match body.len() {
        0 => Err(refused(400, "The notification has no content")),
        1..=MAX_BODY_BYTES => Ok(()),
        _ => Err(refused(
            413,
            "The notification payload exceeds the 5000 byte size limit",
        )),
    }
}

/// What WNS demands of every raw notification.
fn judge_form(headers: &HeaderMap) -> Result<(), Behaviour> {
    if headers.contains_key("transfer-encoding") || !headers.contains_key("content-length") {
        return Err(refused(
            400,
            "Content-Length is required, and chunked encoding is not supported",
        ));
    }
    if headers.contains_key("expect") {
        return Err(refused(400, "Expect is not supported"));
    }
    if text(headers, "x-wns-type") != Some("wns/raw") {
        return Err(refused(400, "X-WNS-Type must be wns/raw"));
    }
    if text(headers, "content-type") != Some("application/octet-stream") {
        return Err(refused(400, "Content-Type must be application/octet-stream"));
    }
    Ok(())
}

fn judge_options(headers: &HeaderMap) -> Result<(), Behaviour> {
    if !matches!(
        text(headers, "x-wns-cache-policy"),
        None | Some("cache" | "no-cache")
    ) {
        return Err(refused(400, "X-WNS-Cache-Policy must be cache or no-cache"));
    }
    if text(headers, "x-wns-ttl").is_some_and(|ttl| ttl.parse::<u64>().is_err()) {
        return Err(refused(400, "X-WNS-TTL must be a number of seconds"));
    }
    if !matches!(
        text(headers, "x-wns-priority"),
        None | Some("1" | "2" | "3" | "4")
    ) {
        return Err(refused(400, "X-WNS-PRIORITY must be 1 to 4"));
    }
    Ok(())
}

/// A value that is no text is taken as an unknown one.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const GOOD: [(&str, &str); 6] = [
        ("content-length", "1"),
        ("x-wns-type", "wns/raw"),
        ("content-type", "application/octet-stream"),
        ("x-wns-cache-policy", "cache"),
        ("x-wns-ttl", "60"),
        ("x-wns-priority", "1"),
    ];

    fn status(changes: &[(&str, Option<&str>)], body: &[u8]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        let good = GOOD.iter().map(|(name, value)| (*name, Some(*value)));
        for (name, value) in good.chain(changes.iter().copied()) {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            match value {
                Some(value) => _ = headers.insert(name, HeaderValue::from_str(value).unwrap()),
                None => _ = headers.remove(name),
            }
        }
        let crate::Ending::Answer(answer) = judge(&Method::POST, &headers, body).err()?.ending else {
            return None;
        };
        Some(answer.status)
    }

    #[test]
    fn a_good_notification_passes_up_to_5000_bytes() {
        assert_eq!(status(&[], b"x"), None);
        assert_eq!(status(&[], &[b'x'; 5000]), None);
        assert_eq!(status(&[], &[b'x'; 5001]), Some(413));
        assert_eq!(status(&[], b""), Some(400));
        let optional = [
            ("x-wns-ttl", None),
            ("x-wns-priority", None),
            ("x-wns-cache-policy", None),
        ];
        assert_eq!(status(&optional, b"x"), None);
    }

    #[test]
    fn each_bad_field_is_a_400() {
        for change in [
            ("content-length", None),
            ("transfer-encoding", Some("chunked")),
            ("expect", Some("100-continue")),
            ("x-wns-type", Some("wns/toast")),
            ("x-wns-type", None),
            ("content-type", Some("text/xml")),
            ("x-wns-cache-policy", Some("maybe")),
            ("x-wns-ttl", Some("-1")),
            ("x-wns-priority", Some("5")),
        ] {
            assert_eq!(status(&[change], b"x"), Some(400), "{change:?}");
        }
    }
}
