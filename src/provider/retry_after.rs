//! `Retry-After`: whole seconds or an HTTP date (RFC 9110, 10.2.3), within the bounds that the lanes keep.

use std::time::{Duration, UNIX_EPOCH};

use http::header::{HeaderMap, RETRY_AFTER};
use sovereign_relay_actors::lane::{LONGEST_RETRY_AFTER, SHORTEST_RETRY_AFTER};
use sovereign_relay_protocol::time::UnixMillis;

/// The hint of an answer, if it has one that can be read.
pub(crate) fn retry_after(headers: &HeaderMap, now: UnixMillis) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let hint = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than fit are many.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let date = httpdate::parse_http_date(text)
            .ok()?
            .duration_since(UNIX_EPOCH)
            .ok()?;
        date.saturating_sub(Duration::from_millis(now.0))
    };
    Some(hint.clamp(SHORTEST_RETRY_AFTER, LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    fn read(text: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, text.parse().unwrap());
        retry_after(&headers, UnixMillis(784_111_777_000)).map(|hint| hint.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_read_and_clamped() {
        assert_eq!(read("37"), Some(37));
        assert_eq!(read("0"), Some(1));
        assert_eq!(read("999999999"), Some(3600));
        assert_eq!(read("99999999999999999999"), Some(3600));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:14 GMT"), Some(37));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(1));
    }

    #[test]
    fn what_cannot_be_read_is_no_hint() {
        for text in ["", "soon", "-5", "+5", "1.5"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), UnixMillis(0)), None);
    }

    /// Whatever a provider writes, what is read of it is within the bounds.
    fn is_within_bounds(text: &[u8], now: u64) -> Result<(), TestCaseError> {
        let Ok(value) = text.try_into() else { return Ok(()) };
        let headers = HeaderMap::from_iter([(RETRY_AFTER, value)]);
        let hint = retry_after(&headers, UnixMillis(now)).unwrap_or(SHORTEST_RETRY_AFTER);
        prop_assert!(
            (SHORTEST_RETRY_AFTER..=LONGEST_RETRY_AFTER).contains(&hint),
            "{:?}",
            hint
        );
        Ok(())
    }

    proptest! {
        #[test]
        fn any_number_of_seconds_is_read_and_clamped(digits in "[0-9]{1,40}") {
            let seconds: u64 = digits.parse().unwrap_or(u64::MAX);
            prop_assert_eq!(read(&digits), Some(seconds.clamp(1, 3600)));
        }

        #[test]
        fn any_date_is_read_and_clamped(seconds in 0u64..253_402_300_800) {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
            prop_assert_eq!(read(&date), Some(seconds.saturating_sub(784_111_777).clamp(1, 3600)));
        }

        #[test]
        fn arbitrary_bytes_are_no_hint_or_one_within_the_bounds(text in vec(any::<u8>(), 0..60), now in any::<u64>()) {
            is_within_bounds(&text, now)?;
        }

        #[test]
        fn a_mutated_date_is_no_hint_or_one_within_the_bounds(
            changes in vec((any::<Index>(), any::<u8>()), 1..4),
            now in any::<u64>(),
        ) {
            let mut text = b"Sun, 06 Nov 1994 08:50:14 GMT".to_vec();
            for (at, byte) in changes {
                let at = at.index(text.len());
                text[at] = byte;
            }
            is_within_bounds(&text, now)?;
        }
    }
}
