//! Bearer tokens as Google and Microsoft issue them: opaque, expiring, counted. Used by FCM and WNS.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{entropy::random_hex, script::Script, sync::lock};

/// Tokens remembered; a relay asks for about one an hour. When full the expired ones go, then all.
const MAX_TOKENS: usize = 10_000;

/// Issues tokens and knows which are good.
pub(crate) struct TokenBook {
    /// What requests to the token endpoint that keep the rules are met with.
    pub(crate) script: Script,
    requests: AtomicU64,
    lifetime_seconds: AtomicU64,
    expiries_millis: Mutex<HashMap<String, i64>>,
}

/// A token just issued.
pub(crate) struct IssuedToken {
    pub(crate) text: String,
    pub(crate) expires_in_seconds: u64,
}

impl TokenBook {
    pub(crate) fn new(lifetime_seconds: u64) -> Self {
        Self {
            script: Script::default(),
            requests: AtomicU64::new(0),
            lifetime_seconds: AtomicU64::new(lifetime_seconds),
            expiries_millis: Mutex::new(HashMap::new()),
        }
    }

    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn set_lifetime_seconds(&self, seconds: u64) {
        self.lifetime_seconds.store(seconds, Ordering::Relaxed);
    }

    pub(crate) fn issue(&self, now_millis: i64) -> IssuedToken {
        let text = random_hex::<32>();
        let expires_in_seconds = self.lifetime_seconds.load(Ordering::Relaxed);
        let lifetime_millis = i64::try_from(expires_in_seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        let mut expiries = lock(&self.expiries_millis);
        if expiries.len() >= MAX_TOKENS {
            expiries.retain(|_, expiry| *expiry > now_millis);
        }
        if expiries.len() >= MAX_TOKENS {
            expiries.clear();
        }
        expiries.insert(text.clone(), now_millis.saturating_add(lifetime_millis));
        IssuedToken {
            text,
            expires_in_seconds,
        }
    }

    /// Whether an `authorization` field holds a token that is good now.
    pub(crate) fn accepts(&self, authorization: Option<&str>, now_millis: i64) -> bool {
        let Some((scheme, text)) = authorization.and_then(|value| value.split_once(' ')) else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer")
            && lock(&self.expiries_millis)
                .get(text)
                .is_some_and(|expiry| *expiry > now_millis)
    }

    /// Makes all tokens issued so far worthless.
    pub(crate) fn expire_all(&self) {
        lock(&self.expiries_millis).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_until_its_lifetime_is_over_or_all_are_expired() {
        let book = TokenBook::new(60);
        let token = book.issue(1_000);
        let field = format!("Bearer {}", token.text);
        assert_eq!(token.expires_in_seconds, 60);
        assert!(book.accepts(Some(&field), 60_999));
        assert!(!book.accepts(Some(&field), 61_000));
        assert!(!book.accepts(Some("Bearer other"), 1_000) && !book.accepts(None, 1_000));
        book.expire_all();
        assert!(!book.accepts(Some(&field), 1_000));
    }
}
