//! What one environment of APNs is made of, checked before anything is opened.

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::HeaderValue;
use sovereign_relay_protocol::{
    envelope::AlertTitles,
    platform::{Environment, Platform},
};
use thiserror::Error;

use super::{
    Credentials,
    keep_alive::KeepAliveTiming,
    request::App,
    slots::Bounds,
    token::{ApnsKey, KeyError, TokenSource},
};
use crate::provider::transport::Endpoint;

/// Apple's hosts listen here, and on 2197.
const APNS_PORT: u16 = 443;
/// Longest bundle id: Apple allows 155 characters.
const TOPIC_CHARS: usize = 155;

/// One environment.
#[derive(Clone, Debug)]
pub struct ApnsConfig {
    /// Which of Apple's two.
    pub environment: Environment,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Absent: both Apple platforms are off in this environment.
    pub key: Option<ApnsKey>,
    /// Bundle ids.
    pub topics: Topics,
    /// Alert titles.
    pub titles: AlertTitles,
    /// Connections and their times.
    pub tuning: Tuning,
}

/// The apps' bundle ids; a platform without one is off.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Topics {
    /// Of the iOS app.
    pub ios: Option<String>,
    /// Of the macOS app.
    pub macos: Option<String>,
}

/// Connections and their times. The defaults are for Apple; simulators are given shorter ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Connections open at the same time, at most. Four carry some thousand pushes under way, beyond what one
    /// process sends, and outlive the loss of one.
    pub connections: usize,
    /// Name resolution, TCP, proxy and TLS of one connection together; half a push's deadline, so that a second
    /// dial has its chance.
    pub dial_within: Duration,
    /// First pause after a failed dial; doubles.
    pub backoff_first: Duration,
    /// Longest pause: how late the first push after a recovery may be.
    pub backoff_longest: Duration,
    /// How long a busy connection may be quiet before it is asked for a PONG: ten times a usual answer. With the time
    /// for the PONG, a dead connection is noticed within half a push's deadline.
    pub quiet_when_busy: Duration,
    /// How long an idle one may be. Apple accepts a PING an hour; a minute keeps middleboxes from forgetting it.
    pub quiet_when_idle: Duration,
    /// How long a PONG may take before the connection is given up.
    pub pong_within: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            connections: 4,
            dial_within: Duration::from_secs(5),
            backoff_first: Duration::from_millis(100),
            backoff_longest: Duration::from_secs(2),
            quiet_when_busy: Duration::from_secs(1),
            quiet_when_idle: Duration::from_secs(60),
            pong_within: Duration::from_secs(3),
        }
    }
}

impl Tuning {
    pub(super) fn keep_alive(&self) -> KeepAliveTiming {
        KeepAliveTiming {
            look_every: self.quiet_when_busy,
            idle_for: self.quiet_when_idle,
            pong_within: self.pong_within,
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            connections: self.connections.max(1),
            backoff_first: self.backoff_first,
            backoff_longest: self.backoff_longest,
        }
    }
}

/// The configuration can't be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ApnsConfigError {
    /// The signing key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A bundle id.
    #[error("the APNs topic of {platform} must be a bundle id: 1 to 155 letters, digits, dots and hyphens")]
    Topic {
        /// Whose.
        platform: &'static str,
    },
    /// The endpoint.
    #[error("the APNs endpoint is not a valid host and port")]
    Endpoint,
    /// A reload that names another environment or endpoint.
    #[error("a reload can't change the APNs environment or endpoint: restart the relay")]
    Fixed,
}

impl ApnsConfig {
    /// Apple's endpoint of `environment`, without credentials.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            endpoint: default_endpoint(environment),
            key: None,
            topics: Topics::default(),
            titles: AlertTitles::default(),
            tuning: Tuning::default(),
        }
    }

    /// Topics are checked without a key too: what is wrong should be said before the key arrives.
    pub(super) fn credentials(&self) -> Result<Option<Credentials>, ApnsConfigError> {
        let apps = [
            (Platform::Ios, &self.topics.ios),
            (Platform::Macos, &self.topics.macos),
        ]
        .into_iter()
        .filter_map(|(platform, topic)| Some((platform, self.app(platform, topic.as_deref()?))))
        .map(|(platform, app)| Ok((platform, app?)))
        .collect::<Result<HashMap<_, _>, ApnsConfigError>>()?;
        let Some(key) = &self.key else { return Ok(None) };
        Ok(Some(Credentials {
            tokens: TokenSource::new(key)?,
            apps,
        }))
    }

    fn app(&self, platform: Platform, topic: &str) -> Result<App, ApnsConfigError> {
        let wrong = ApnsConfigError::Topic {
            platform: platform.as_str(),
        };
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        if !(1..=TOPIC_CHARS).contains(&topic.len()) || !topic.bytes().all(allowed) {
            return Err(wrong);
        }
        let scope = Arc::from(format!("apns/{}/{topic}", self.environment.as_str()));
        let title = self.titles.of(platform).to_owned();
        Ok(App {
            topic: HeaderValue::from_str(topic).map_err(|_| wrong)?,
            title,
            scope,
        })
    }
}

/// Apple's own host of an environment.
pub fn default_endpoint(environment: Environment) -> Endpoint {
    let host = match environment {
        Environment::Production => "api.push.apple.com",
        Environment::Sandbox => "api.sandbox.push.apple.com",
    };
    Endpoint {
        host: host.to_owned(),
        port: APNS_PORT,
        tls: true,
    }
}

#[cfg(test)]
mod tests;
