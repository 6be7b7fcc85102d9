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
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    fn of(lines: &[&str]) -> Result<Option<String>, &'static str> {
        let values = lines.iter().map(|line| HeaderValue::from_str(line).unwrap());
        read(values)
    }

    fn read(values: impl IntoIterator<Item = HeaderValue>) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, value);
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

    /// A key that was read stands in the line, as its last word, behind the scheme; anything else is a 401.
    fn is_read_well(line: &[u8]) -> Result<(), TestCaseError> {
        let Ok(value) = HeaderValue::from_bytes(line) else {
            return Ok(());
        };
        match read([value]) {
            Ok(Some(key)) => {
                let words: Vec<_> = line
                    .split(|byte| *byte == b' ')
                    .filter(|word| !word.is_empty())
                    .collect();
                let text = line.trim_ascii();
                prop_assert!(text[..7].eq_ignore_ascii_case(b"bearer "));
                prop_assert!(text.ends_with(key.as_bytes()) && !key.is_empty());
                prop_assert!(words.len() == 2 && key.bytes().all(is_token68));
            }
            Ok(None) => prop_assert!(false, "a header that is there is absent"),
            Err(code) => prop_assert_eq!(code, "unauthorized"),
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn every_credential_is_read_as_it_stands(
            scheme in "[Bb][Ee][Aa][Rr][Ee][Rr]",
            gap in " {1,4}",
            credential in "[A-Za-z0-9._~+/=-]{1,200}",
        ) {
            prop_assert_eq!(of(&[&format!("{scheme}{gap}{credential}")]), Ok(Some(credential)));
        }

        #[test]
        fn arbitrary_bytes_are_a_credential_or_a_401(line in vec(any::<u8>(), 0..100)) {
            is_read_well(&line)?;
        }

        #[test]
        fn a_mutated_header_is_a_credential_or_a_401(changes in vec((any::<Index>(), any::<u8>()), 1..4)) {
            let mut line = b"Bearer abc.d-e_f".to_vec();
            for (at, byte) in changes {
                let at = at.index(line.len());
                line[at] = byte;
            }
            is_read_well(&line)?;
        }
    }
}
