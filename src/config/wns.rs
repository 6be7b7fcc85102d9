//! WNS credentials: a Package SID for UWP apps, or an Entra application for Windows App SDK apps. The two are not
//! interchangeable: a channel belongs to one kind of app.
//! <https://learn.microsoft.com/windows/apps/windows-app-sdk/notifications/push-notifications/push-quickstart>

use sovereign_relay_protocol::{redacted::Redacted, token::ChannelRule};
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

/// Everything about Windows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wns {
    /// The credential, or what is lacking.
    pub credential: Result<WnsCredential, Off>,
    /// Where the credential becomes an access token.
    pub token_endpoint: Url,
    /// Hosts a channel URI may name.
    pub channel_rule: ChannelRule,
}

/// What proves the relay to Microsoft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WnsCredential {
    /// Which kind of app.
    pub identity: WnsIdentity,
    /// The client secret.
    pub client_secret: Redacted,
}

/// Which kind of app, and its name at Microsoft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WnsIdentity {
    /// UWP, through `login.live.com`.
    PackageSid(String),
    /// Windows App SDK, through Entra.
    Entra {
        /// Directory.
        tenant_id: String,
        /// Application.
        client_id: String,
    },
}

impl Wns {
    /// Takes over what a reload may change. The token endpoint belongs to the kind of credential.
    pub(crate) fn take_credentials(&mut self, new: &Self) {
        self.credential.clone_from(&new.credential);
        self.token_endpoint.clone_from(&new.token_endpoint);
    }

    pub(crate) fn load(sources: &Sources<'_>, allow_test: bool) -> Result<Self, ConfigError> {
        let credential = load_credential(sources)?;
        let rule = EndpointRule {
            ports: HTTPS_ONLY,
            bare: false,
            allow_test,
        };
        let microsofts = token_endpoint(credential.as_ref().ok().map(|credential| &credential.identity));
        Ok(Self {
            token_endpoint: sources.endpoint(&setting::WNS_TOKEN_ENDPOINT, &microsofts, rule)?,
            credential,
            channel_rule: load_channel_rule(sources, allow_test)?,
        })
    }
}

fn load_credential(sources: &Sources<'_>) -> Result<Result<WnsCredential, Off>, ConfigError> {
    let package_sid = sources.parse(&setting::WNS_PACKAGE_SID, parse_package_sid)?;
    let tenant_id = sources.parse(&setting::WNS_TENANT_ID, value::identifier)?;
    let client_id = sources.parse(&setting::WNS_CLIENT_ID, value::identifier)?;
    let client_secret = sources.parse(&setting::WNS_CLIENT_SECRET, |text| Ok(Redacted::new(text)))?;
    let entra = tenant_id.as_ref().map(|_| setting::WNS_TENANT_ID);
    let entra = entra.or(client_id.as_ref().map(|_| setting::WNS_CLIENT_ID));
    match (package_sid, entra) {
        (Some(_), Some(entra)) => Err(ConfigError::Conflict {
            first: setting::WNS_PACKAGE_SID.name.to_owned(),
            second: entra.name.to_owned(),
            problem: "a UWP app has the former, a Windows App SDK app the latter; set those of yours",
        }),
        (package_sid, None) => Ok(legacy_credential(package_sid, client_secret)),
        (None, Some(_)) => Ok(entra_credential(tenant_id, client_id, client_secret)),
    }
}

/// Where nothing says which of the two kinds of app it is.
const ENTRA: &str = "of a Windows App SDK app: WNS_TENANT_ID, WNS_CLIENT_ID, WNS_CLIENT_SECRET";

fn legacy_credential(sid: Option<String>, secret: Option<Redacted>) -> Result<WnsCredential, Off> {
    match (sid, secret) {
        (Some(sid), Some(client_secret)) => Ok(WnsCredential {
            identity: WnsIdentity::PackageSid(sid),
            client_secret,
        }),
        (sid, secret) => {
            let off = Off::lacking(&[
                (&setting::WNS_PACKAGE_SID, sid.is_some()),
                (&setting::WNS_CLIENT_SECRET, secret.is_some()),
            ]);
            Err(if sid.is_some() { off } else { off.or(ENTRA) })
        }
    }
}

fn entra_credential(
    tenant: Option<String>,
    client: Option<String>,
    secret: Option<Redacted>,
) -> Result<WnsCredential, Off> {
    match (tenant, client, secret) {
        (Some(tenant_id), Some(client_id), Some(client_secret)) => Ok(WnsCredential {
            identity: WnsIdentity::Entra { tenant_id, client_id },
            client_secret,
        }),
        (tenant, client, secret) => Err(Off::lacking(&[
            (&setting::WNS_TENANT_ID, tenant.is_some()),
            (&setting::WNS_CLIENT_ID, client.is_some()),
            (&setting::WNS_CLIENT_SECRET, secret.is_some()),
        ])),
    }
}

fn parse_package_sid(text: &str) -> Result<String, String> {
    let sid = text.trim();
    let shaped = sid.strip_prefix("ms-app://").is_some_and(|rest| {
        !rest.is_empty() && rest.len() <= 255 && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    });
    shaped
        .then(|| sid.to_owned())
        .ok_or_else(|| "must look like ms-app://S-1-15-2-...".to_owned())
}

fn token_endpoint(identity: Option<&WnsIdentity>) -> String {
    match identity {
        Some(WnsIdentity::Entra { tenant_id, .. }) => {
            format!("{}/{tenant_id}/oauth2/v2.0/token", defaults::ENTRA_AUTHORITY)
        }
        Some(WnsIdentity::PackageSid(_)) | None => defaults::WNS_LEGACY_TOKEN_ENDPOINT.to_owned(),
    }
}

fn load_channel_rule(sources: &Sources<'_>, allow_test: bool) -> Result<ChannelRule, ConfigError> {
    let suffix = sources.parse(&setting::WNS_CHANNEL_HOST_SUFFIX, |text| {
        parse_suffix(text, allow_test)
    })?;
    Ok(ChannelRule {
        host_suffix: suffix.unwrap_or_else(|| defaults::WNS_CHANNEL_HOST_SUFFIX.to_owned()),
        allow_test_endpoints: allow_test,
    })
}

/// A suffix of one label, like `com`, would send the relay's credential to anybody.
fn parse_suffix(text: &str, allow_test: bool) -> Result<String, String> {
    let suffix = text
        .trim()
        .trim_start_matches('.')
        .trim_end_matches('.')
        .to_ascii_lowercase();
    let labels: Vec<_> = suffix.split('.').collect();
    let shaped = labels.iter().all(|label| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    });
    if !shaped {
        return Err("must be a host name like notify.windows.com".to_owned());
    }
    if labels.len() < 2 && !allow_test {
        return Err("must have two labels or more: anybody could own a host below one".to_owned());
    }
    Ok(suffix)
}
