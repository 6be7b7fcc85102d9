//! The device tokens that APNs knows.
//!
//! Both environments share one list, since a token of the other environment is `BadDeviceToken` here. A well-shaped
//! token that nobody made is taken as alive, unless `strict` says otherwise.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{apns::options::ApnsEnvironment, entropy::random_hex, sync::lock};

/// Bytes of a token; today's devices have 32, and Apple says not to rely on it.
const TOKEN_BYTES: usize = 32;

/// Tokens made or forgotten here, and where they belong. Bounded by what a test makes.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceList {
    tokens: Arc<Mutex<HashMap<String, Option<ApnsEnvironment>>>>,
}

/// One environment's view of the list.
#[derive(Debug)]
pub(crate) struct Devices {
    list: DeviceList,
    environment: ApnsEnvironment,
    strict: bool,
}

impl Devices {
    pub(crate) fn new(list: DeviceList, environment: ApnsEnvironment, strict: bool) -> Self {
        Self {
            list,
            environment,
            strict,
        }
    }

    pub(crate) fn new_token(&self) -> String {
        let token = random_hex::<TOKEN_BYTES>();
        lock(&self.list.tokens).insert(token.clone(), Some(self.environment));
        token
    }

    pub(crate) fn forget(&self, token: &str) {
        lock(&self.list.tokens).insert(token.to_ascii_lowercase(), None);
    }

    /// Whether APNs of this environment issued the token.
    pub(crate) fn knows(&self, token: &str) -> bool {
        let is_hex = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !token.len().is_multiple_of(2) {
            return false;
        }
        match lock(&self.list.tokens).get(&token.to_ascii_lowercase()) {
            Some(home) => *home == Some(self.environment),
            None => !self.strict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(strict: bool) -> (Devices, Devices) {
        let list = DeviceList::default();
        let of = |environment| Devices::new(list.clone(), environment, strict);
        (of(ApnsEnvironment::Production), of(ApnsEnvironment::Sandbox))
    }

    #[test]
    fn a_token_is_known_in_its_own_environment_only() {
        let (production, sandbox) = devices(false);
        let token = production.new_token();
        assert!(production.knows(&token) && production.knows(&token.to_uppercase()));
        assert!(!sandbox.knows(&token));
        production.forget(&token);
        assert!(!production.knows(&token));
    }

    #[test]
    fn an_unknown_token_is_alive_unless_strict_and_never_when_malformed() {
        assert!(devices(false).0.knows("00ff"));
        assert!(!devices(true).0.knows("00ff"));
        for malformed in ["", "0", "00f", "zz", "00ff/"] {
            assert!(!devices(false).0.knows(malformed), "{malformed}");
        }
    }
}
