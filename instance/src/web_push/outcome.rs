//! What came of a push, read from the answer's status and head alone; nothing that a push service writes in a body is
//! believed or kept. RFC 8030 (5, 7.3), RFC 8292 (4.2), RFC 9110 (10.2.3).
//!
//! Invariant: only 404 and 410 end a subscription. A service that does not take our signature, wants nothing more for
//! now, or is somebody else's proxy says nothing about the browser.

use std::time::{Duration, UNIX_EPOCH};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use sovereign_relay_protocol::time::UnixMillis;

use super::address::EndpointError;

/// A service that says "now" is not asked at once ...
const SHORTEST_RETRY_AFTER: Duration = Duration::from_secs(1);
/// ... and one that says "next year" is asked tomorrow, if the notification still lives.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// What came of it, and what to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The push service has it.
    Sent,
    /// The subscription is no more: remove it.
    Gone,
    /// Not now. Repeat the same bytes, not before `after` if the service named a time.
    Retry {
        /// The service's wish, within a second and a day.
        after: Option<Duration>,
        /// Why.
        cause: RetryCause,
    },
    /// It is this instance that is wrong, and every push to this service will fail alike: the operator must know. The
    /// subscription stays.
    Misconfigured(Misconfiguration),
    /// Not this push. The subscription stays.
    Failed(Failure),
}

/// Why a repeat makes sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetryCause {
    /// Too many pushes for the service.
    Throttled,
    /// The service has trouble of its own.
    Unavailable,
    /// No name, no connection or no TLS with it: it has not seen the push.
    NotReached,
    /// No answer in time: it may have the push.
    TimedOut,
    /// The connection ended without an answer: it may have the push.
    Lost,
}

/// What is wrong with this instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misconfiguration {
    /// The service does not take the VAPID token: another key than the browser subscribed to, a clock that is wrong, or
    /// a contact that it does not like.
    Unauthorized,
    /// No token could be signed.
    Unsigned,
}

/// Why this push can't be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The address breaks the rules.
    Endpoint(EndpointError),
    /// The address is a name without any public address.
    NotPublic,
    /// The service sends elsewhere, where we do not go.
    Redirected,
    /// Too long for the service.
    TooLarge,
    /// The service refuses it.
    Rejected,
}

impl Outcome {
    /// For the delivery log and labels: one of a closed set.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Gone => "subscription_gone",
            Self::Retry { cause, .. } => cause.as_str(),
            Self::Misconfigured(Misconfiguration::Unauthorized) => "vapid_refused",
            Self::Misconfigured(Misconfiguration::Unsigned) => "vapid_unsigned",
            Self::Failed(failure) => failure.as_str(),
        }
    }

    pub(super) fn retry(cause: RetryCause) -> Self {
        Self::Retry { after: None, cause }
    }

    /// Reads an answer's head.
    pub(super) fn of_answer(status: u16, headers: &HeaderMap, now: UnixMillis) -> Self {
        let retry = |cause| Self::Retry {
            after: retry_after(headers, now),
            cause,
        };
        match status {
            200..=299 => Self::Sent,
            300..=399 => Self::Failed(Failure::Redirected),
            401 | 403 => Self::Misconfigured(Misconfiguration::Unauthorized),
            404 | 410 => Self::Gone,
            // WNS, which is Edge's push service, says 406 for 429.
            406 | 429 => retry(RetryCause::Throttled),
            408 | 425 => retry(RetryCause::Unavailable),
            413 => Self::Failed(Failure::TooLarge),
            500..=599 => retry(RetryCause::Unavailable),
            _ => Self::Failed(Failure::Rejected),
        }
    }
}

impl RetryCause {
    fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::NotReached => "not_reached",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
        }
    }
}

impl Failure {
    fn as_str(self) -> &'static str {
        match self {
            Self::Endpoint(_) => "bad_endpoint",
            Self::NotPublic => "not_public",
            Self::Redirected => "redirected",
            Self::TooLarge => "too_large",
            Self::Rejected => "rejected",
        }
    }
}

/// Whole seconds or an HTTP date; `None` for what can't be read.
fn retry_after(headers: &HeaderMap, now: UnixMillis) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let hint = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than fit are many.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
        since_epoch.saturating_sub(Duration::from_millis(now.0))
    };
    Some(hint.clamp(SHORTEST_RETRY_AFTER, LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(784_111_777_000);

    fn read(status: u16, retry_after: Option<&str>) -> Outcome {
        let mut headers = HeaderMap::new();
        if let Some(text) = retry_after {
            headers.insert(RETRY_AFTER, text.parse().unwrap());
        }
        Outcome::of_answer(status, &headers, NOW)
    }

    fn seconds(retry_after: &str) -> Option<u64> {
        match read(429, Some(retry_after)) {
            Outcome::Retry { after, .. } => after.map(|after| after.as_secs()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_but_404_and_410_ends_a_subscription() {
        for status in 0..1000 {
            let is_gone = read(status, None) == Outcome::Gone;
            assert_eq!(is_gone, [404, 410].contains(&status), "{status}");
        }
    }

    #[test]
    fn every_status_has_its_outcome() {
        let retry = Outcome::retry;
        for (status, outcome) in [
            (200, Outcome::Sent),
            (201, Outcome::Sent),
            (202, Outcome::Sent),
            (204, Outcome::Sent),
            (301, Outcome::Failed(Failure::Redirected)),
            (307, Outcome::Failed(Failure::Redirected)),
            (400, Outcome::Failed(Failure::Rejected)),
            (401, Outcome::Misconfigured(Misconfiguration::Unauthorized)),
            (403, Outcome::Misconfigured(Misconfiguration::Unauthorized)),
            (406, retry(RetryCause::Throttled)),
            (407, Outcome::Failed(Failure::Rejected)),
            (413, Outcome::Failed(Failure::TooLarge)),
            (429, retry(RetryCause::Throttled)),
            (500, retry(RetryCause::Unavailable)),
            (502, retry(RetryCause::Unavailable)),
            (503, retry(RetryCause::Unavailable)),
        ] {
            assert_eq!(read(status, None), outcome, "{status}");
        }
    }

    #[test]
    fn a_service_may_say_when_in_seconds_or_as_a_date() {
        assert_eq!(seconds("37"), Some(37));
        assert_eq!(seconds("0"), Some(1));
        assert_eq!(seconds("99999999999999999999"), Some(86_400));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:50:14 GMT"), Some(37));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:00:00 GMT"), Some(1));
        for unreadable in ["", "soon", "-5", "+5", "1.5"] {
            assert_eq!(seconds(unreadable), None, "{unreadable}");
        }
        assert!(matches!(
            read(503, Some("9")),
            Outcome::Retry { after: Some(after), cause: RetryCause::Unavailable } if after.as_secs() == 9
        ));
    }
}
