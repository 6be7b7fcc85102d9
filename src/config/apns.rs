//! APNs credentials, topics and endpoints.
//!
//! One key serves both environments unless the sandbox has its own: keys made since 2025 may be limited to one.
//! <https://developer.apple.com/documentation/usernotifications/establishing-a-token-based-connection-to-apns>

use p256::{SecretKey, pkcs8::DecodePrivateKey as _};
use sovereign_relay_protocol::{envelope::AlertTitles, platform::Environment, redacted::Redacted};
use url::Url;

use super::{
    availability::Off,
    endpoint::{APNS_PORTS, EndpointRule},
    error::ConfigError,
    setting::{self, Setting},
    source::Sources,
    value,
};
use crate::defaults;

/// Everything about Apple.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Apns {
    /// Key for production, or what it lacks.
    pub production_key: Result<ApnsCredential, Off>,
    /// Key for the sandbox, or what it lacks.
    pub sandbox_key: Result<ApnsCredential, Off>,
    /// Bundle id of the iOS app.
    pub ios_topic: Option<String>,
    /// Bundle id of the macOS app.
    pub macos_topic: Option<String>,
    /// Where pushes go that name no environment.
    pub default_environment: Environment,
    /// Scheme, host and port of production.
    pub production_endpoint: Url,
    /// Scheme, host and port of the sandbox.
    pub sandbox_endpoint: Url,
    /// What devices show while nothing has opened the payload.
    pub titles: AlertTitles,
}

/// A signing key of Apple and whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApnsCredential {
    /// PKCS#8 PEM of a P-256 key.
    pub key_pem: Redacted,
    /// `kid` of the provider token.
    pub key_id: String,
    /// `iss` of the provider token.
    pub team_id: String,
}

impl Apns {
    /// Whether one environment's key and topics are the same.
    pub(crate) fn has_credentials_of(&self, other: &Self, environment: Environment) -> bool {
        self.key(environment) == other.key(environment)
            && self.ios_topic == other.ios_topic
            && self.macos_topic == other.macos_topic
    }

    /// Takes over what a reload may change: keys and topics. Endpoints and titles stay.
    pub(crate) fn take_credentials(&mut self, new: &Self) {
        self.production_key.clone_from(&new.production_key);
        self.sandbox_key.clone_from(&new.sandbox_key);
        self.ios_topic.clone_from(&new.ios_topic);
        self.macos_topic.clone_from(&new.macos_topic);
    }

    pub(crate) fn load(sources: &Sources<'_>, allow_test: bool) -> Result<Self, ConfigError> {
        let team_id = sources.parse(&setting::APNS_TEAM_ID, parse_id)?;
        let key = sources.parse(&setting::APNS_KEY, parse_key)?;
        let key_id = sources.parse(&setting::APNS_KEY_ID, parse_id)?;
        let sandbox_key = sources.parse(&setting::APNS_SANDBOX_KEY, parse_key)?;
        let sandbox_key_id = sources.parse(&setting::APNS_SANDBOX_KEY_ID, parse_id)?;
        let own_sandbox_key = sandbox_key.is_some() || sandbox_key_id.is_some();
        let production = credential(KEY_NAMES, key, key_id, &team_id);
        let sandbox = match own_sandbox_key {
            true => credential(SANDBOX_KEY_NAMES, sandbox_key, sandbox_key_id, &team_id),
            false => production.clone(),
        };
        let rule = EndpointRule {
            ports: APNS_PORTS,
            bare: true,
            allow_test,
        };
        let use_sandbox = sources
            .parse(&setting::APNS_USE_SANDBOX, value::switch)?
            .unwrap_or_default();
        Ok(Self {
            production_key: production,
            sandbox_key: sandbox,
            ios_topic: sources.parse(&setting::APNS_BUNDLE_ID, value::identifier)?,
            macos_topic: sources.parse(&setting::APNS_BUNDLE_ID_MACOS, value::identifier)?,
            default_environment: if use_sandbox {
                Environment::Sandbox
            } else {
                Environment::Production
            },
            production_endpoint: sources.endpoint(&setting::APNS_ENDPOINT, defaults::APNS_ENDPOINT, rule)?,
            sandbox_endpoint: sources.endpoint(
                &setting::APNS_SANDBOX_ENDPOINT,
                defaults::APNS_SANDBOX_ENDPOINT,
                rule,
            )?,
            titles: load_titles(sources)?,
        })
    }

    /// The key of an environment.
    pub fn key(&self, environment: Environment) -> &Result<ApnsCredential, Off> {
        match environment {
            Environment::Production => &self.production_key,
            Environment::Sandbox => &self.sandbox_key,
        }
    }

    /// The environment that alone has a key and is not the default one: pushes have to name it.
    pub fn only_by_name(&self) -> Option<Environment> {
        match (self.default_environment, &self.production_key, &self.sandbox_key) {
            (Environment::Production, Err(_), Ok(_)) => Some(Environment::Sandbox),
            (Environment::Sandbox, Ok(_), Err(_)) => Some(Environment::Production),
            (Environment::Production | Environment::Sandbox, Ok(_) | Err(_), Ok(_) | Err(_)) => None,
        }
    }

    /// The endpoint of an environment.
    pub fn endpoint(&self, environment: Environment) -> &Url {
        match environment {
            Environment::Production => &self.production_endpoint,
            Environment::Sandbox => &self.sandbox_endpoint,
        }
    }
}

/// Of a key, and of a team: Apple's have ten characters.
const ID_CHARACTERS: usize = 10;

const KEY_NAMES: [&Setting; 2] = [&setting::APNS_KEY, &setting::APNS_KEY_ID];
const SANDBOX_KEY_NAMES: [&Setting; 2] = [&setting::APNS_SANDBOX_KEY, &setting::APNS_SANDBOX_KEY_ID];

fn credential(
    [key_name, id_name]: [&Setting; 2],
    key: Option<Redacted>,
    key_id: Option<String>,
    team_id: &Option<String>,
) -> Result<ApnsCredential, Off> {
    match (key, key_id, team_id) {
        (Some(key_pem), Some(key_id), Some(team_id)) => Ok(ApnsCredential {
            key_pem,
            key_id,
            team_id: team_id.clone(),
        }),
        (key, key_id, team_id) => Err(Off::lacking(&[
            (key_name, key.is_some()),
            (id_name, key_id.is_some()),
            (&setting::APNS_TEAM_ID, team_id.is_some()),
        ])),
    }
}

/// Apple answers a wrong one only when the first push comes, so that what can't be one stops the start.
fn parse_id(text: &str) -> Result<String, String> {
    let id = text.trim();
    let shaped = id.len() == ID_CHARACTERS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    shaped.then(|| id.to_owned()).ok_or_else(|| {
        format!("must be the {ID_CHARACTERS} letters and digits that Apple's developer site shows")
    })
}

/// A key that can sign, so that a mangled one stops the start and not the first push. An environment file can't
/// hold line breaks, so `\n` written out is taken for one.
fn parse_key(text: &str) -> Result<Redacted, String> {
    let pem = Redacted::new(if text.contains('\n') {
        text.to_owned()
    } else {
        text.replace("\\n", "\n")
    });
    SecretKey::from_pkcs8_pem(pem.expose().trim())
        .map(|_| pem)
        .map_err(|_| "must be the PEM text of an Apple .p8 key (-----BEGIN PRIVATE KEY-----)".to_owned())
}

fn load_titles(sources: &Sources<'_>) -> Result<AlertTitles, ConfigError> {
    let built_in = AlertTitles::default();
    let title = || value::label(defaults::ALERT_TITLE_CHARS);
    Ok(AlertTitles {
        ios: sources
            .parse(&setting::ALERT_TITLE_IOS, title())?
            .unwrap_or(built_in.ios),
        macos: sources
            .parse(&setting::ALERT_TITLE_MACOS, title())?
            .unwrap_or(built_in.macos),
    })
}
