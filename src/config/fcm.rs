//! FCM credentials: Google's service account, as its console hands it out.
//! <https://firebase.google.com/docs/cloud-messaging/send/v1-api>

use serde::Deserialize;
use sovereign_relay_protocol::redacted::Redacted;
use url::Url;

use super::{
    availability::Off,
    endpoint::{EndpointRule, HTTPS_ONLY},
    error::ConfigError,
    setting,
    source::Sources,
    value,
};
use crate::defaults;

/// Everything about Android.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fcm {
    /// The account, or what is lacking.
    pub account: Result<ServiceAccount, Off>,
    /// Scheme, host and port of FCM.
    pub endpoint: Url,
}

/// The fields of a service account that the relay uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceAccount {
    /// Project of the app.
    pub project_id: String,
    /// `iss` of the assertion.
    pub client_email: String,
    /// PKCS#8 PEM of an RSA key.
    pub private_key: Redacted,
    /// `kid` of the assertion.
    pub private_key_id: Option<String>,
    /// Where assertions become access tokens; also their audience.
    pub token_uri: Url,
}

impl Fcm {
    pub(crate) fn load(sources: &Sources<'_>, allow_test: bool) -> Result<Self, ConfigError> {
        let rule = EndpointRule {
            ports: HTTPS_ONLY,
            bare: true,
            allow_test,
        };
        let account = sources.parse(&setting::FCM_SERVICE_ACCOUNT_JSON, |text| {
            parse_account(text, allow_test)
        })?;
        Ok(Self {
            account: account.ok_or_else(|| Off::lacking(&[(&setting::FCM_SERVICE_ACCOUNT_JSON, false)])),
            endpoint: sources.endpoint(&setting::FCM_ENDPOINT, defaults::FCM_ENDPOINT, rule)?,
        })
    }
}

#[derive(Deserialize)]
struct AccountFile {
    project_id: Option<String>,
    client_email: Option<String>,
    private_key: Option<Redacted>,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

fn parse_account(text: &str, allow_test: bool) -> Result<ServiceAccount, String> {
    let file: AccountFile = serde_json::from_str(text)
        .map_err(|_| "must be the JSON text of a Google service account".to_owned())?;
    let private_key = field("private_key", file.private_key)?;
    jsonwebtoken::EncodingKey::from_rsa_pem(private_key.expose().as_bytes())
        .map_err(|_| "private_key must be the PEM text of an RSA key".to_owned())?;
    let project_id = value::identifier(&field("project_id", file.project_id)?)
        .map_err(|problem| format!("project_id {problem}"))?;
    Ok(ServiceAccount {
        project_id,
        client_email: field("client_email", file.client_email)?,
        private_key,
        private_key_id: file.private_key_id.filter(|id| !id.is_empty()),
        token_uri: parse_token_uri(file.token_uri.as_deref(), allow_test)?,
    })
}

fn field<T>(name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("must hold `{name}`"))
}

fn parse_token_uri(text: Option<&str>, allow_test: bool) -> Result<Url, String> {
    let rule = EndpointRule {
        ports: HTTPS_ONLY,
        bare: false,
        allow_test,
    };
    let text = text
        .filter(|text| !text.is_empty())
        .unwrap_or(defaults::GOOGLE_TOKEN_URI);
    rule.parse(text).map_err(|problem| format!("token_uri {problem}"))
}
