//! `Authorization: Bearer <credential>` (RFC 6750, 2.1; RFC 9110, 11.4).

use actix_web::http::header::{self, HeaderMap};
use sovereign_relay_protocol::redacted::Redacted;

use crate::http::error::ApiError;

/// The credential in the header; `None` without the header. A header that is there and can't be read is a 401,
/// never taken for absent: the caller meant to identify itself.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<Redacted>, ApiError> {
    let mut lines = headers.get_all(header::AUTHORIZATION);
    let Some(line) = lines.next() else { return Ok(None) };
    let alone = lines.next().is_none();
    let credential = line.to_str().ok().and_then(parse).filter(|_| alone);
    credential
        .map(Some)
        .ok_or_else(|| ApiError::unauthorized("the Authorization header must be: Bearer <key>"))
}

fn parse(line: &str) -> Option<Redacted> {
    let (scheme, rest) = line.trim().split_once(' ')?;
    let credential = rest.trim_start_matches(' ');
    let well_formed = !credential.is_empty() && credential.bytes().all(is_token68);
    (scheme.eq_ignore_ascii_case("bearer") && well_formed).then(|| Redacted::new(credential))
}

fn is_token68(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn of(lines: &[&str]) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(line).unwrap());
        }
        match bearer(&headers) {
            Ok(key) => Ok(key.map(|key| key.expose().to_owned())),
            Err(error) => Err(error.code().as_str()),
        }
    }

    #[test]
    fn the_scheme_is_read_in_any_case() {
        for line in ["Bearer abc.d-e_f", "bearer abc.d-e_f", "BEARER   abc.d-e_f"] {
            assert_eq!(of(&[line]), Ok(Some("abc.d-e_f".to_owned())), "{line}");
        }
    }

    #[test]
    fn no_header_is_no_key() {
        assert_eq!(of(&[]), Ok(None));
    }

    #[test]
    fn a_malformed_header_is_a_401_and_not_an_absent_key() {
        for line in [
            "",
            "Bearer",
            "Bearer ",
            "Basic YTpi",
            "abc",
            "Bearer a b",
            "Bearer a,b",
            "Bearer\tabc",
        ] {
            assert_eq!(of(&[line]), Err("unauthorized"), "{line:?}");
        }
    }

    #[test]
    fn two_headers_are_a_401() {
        assert_eq!(of(&["Bearer a", "Bearer a"]), Err("unauthorized"));
    }
}
