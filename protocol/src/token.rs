//! Shapes of device tokens, checked before a provider is called.
//!
//! A token that can't be one costs no provider call: APNs closes connections that carry many bad tokens, and
//! a channel URI is an address that the relay's own credential is sent to.

use url::{Host, Url};

use crate::{limits, platform::Platform, redacted::Redacted};

mod identity;

pub use identity::identity;

/// A device token of the right shape for its platform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetToken {
    /// Hexadecimal, as the app gave it.
    Apple(Redacted),
    /// FCM registration token or installation id.
    Fcm(Redacted),
    /// WNS channel URI.
    Channel(ChannelUri),
}

/// A WNS channel URI that passed the rules: https, a host under the allowed suffix, nothing hidden in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelUri {
    text: Redacted,
    host: String,
    port: u16,
}

/// Which hosts a channel URI may name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelRule {
    /// A host equal to this or ending in `.` and this, lower case: `notify.windows.com`.
    pub host_suffix: String,
    /// Also plain http, other ports and IP hosts: for simulators only.
    pub allow_test_endpoints: bool,
}

impl Default for ChannelRule {
    fn default() -> Self {
        Self {
            host_suffix: "notify.windows.com".to_owned(),
            allow_test_endpoints: false,
        }
    }
}

/// It can't be a token of its platform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedToken;

impl TargetToken {
    /// Checks the shape.
    pub fn parse(platform: Platform, token: &Redacted, rule: &ChannelRule) -> Result<Self, MalformedToken> {
        match platform {
            Platform::Ios | Platform::Macos => parse_apple(token).map(Self::Apple),
            Platform::Android => parse_fcm(token).map(Self::Fcm),
            Platform::Windows => ChannelUri::parse(token, rule).map(Self::Channel),
        }
    }
}

fn parse_apple(token: &Redacted) -> Result<Redacted, MalformedToken> {
    let text = token.expose();
    let shaped = (2..=limits::APPLE_TOKEN_CHARS).contains(&text.len())
        && text.len().is_multiple_of(2)
        && text.bytes().all(|b| b.is_ascii_hexdigit());
    shaped.then(|| token.clone()).ok_or(MalformedToken)
}

fn parse_fcm(token: &Redacted) -> Result<Redacted, MalformedToken> {
    let text = token.expose();
    let shaped =
        (1..=limits::FCM_TOKEN_CHARS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    shaped.then(|| token.clone()).ok_or(MalformedToken)
}

impl ChannelUri {
    /// Checks the rules. The URI is kept byte for byte: percent-encoding must not be altered.
    pub fn parse(token: &Redacted, rule: &ChannelRule) -> Result<Self, MalformedToken> {
        let text = token.expose();
        if text.len() > limits::CHANNEL_URI_CHARS || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(MalformedToken);
        }
        let url = Url::parse(text).map_err(|_| MalformedToken)?;
        let scheme_allowed = url.scheme() == "https" || (rule.allow_test_endpoints && url.scheme() == "http");
        let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if !scheme_allowed || !bare || !names_its_host_plainly(text, &url) {
            return Err(MalformedToken);
        }
        let host = allowed_host(&url, rule).ok_or(MalformedToken)?;
        let port = url.port_or_known_default().ok_or(MalformedToken)?;
        if port != 443 && !rule.allow_test_endpoints {
            return Err(MalformedToken);
        }
        Ok(Self {
            text: token.clone(),
            host,
            port,
        })
    }

    /// The URI, byte for byte, for the call.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    /// Lower-case host without a trailing dot.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// The URL library repairs what it reads: backslashes, missing slashes, encoded or full-width letters in the host,
/// dots and quotes in the path. Whatever it had to repair is not a URI that Windows handed out.
fn names_its_host_plainly(text: &str, url: &Url) -> bool {
    let Some((_, after_scheme)) = text.split_once("://") else {
        return false;
    };
    let authority = after_scheme.split(['/', '?']).next().unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    let without_port = authority.strip_suffix(":443").or_else(|| {
        let port = url.port()?;
        authority.strip_suffix(&format!(":{port}"))
    });
    let path = after_scheme
        .get(authority.len()..)
        .filter(|path| !path.is_empty())
        .unwrap_or("/");
    let kept = &url[url::Position::BeforePath..] == path;
    kept && without_port.unwrap_or(authority).eq_ignore_ascii_case(host)
}

fn allowed_host(url: &Url, rule: &ChannelRule) -> Option<String> {
    match url.host()? {
        Host::Domain(domain) => {
            let host = domain.strip_suffix('.').unwrap_or(domain).to_ascii_lowercase();
            let below = host
                .strip_suffix(&rule.host_suffix)
                .is_some_and(|head| head.is_empty() || head.ends_with('.'));
            let whole = host.split('.').all(|label| !label.is_empty());
            (below && whole).then_some(host)
        }
        Host::Ipv4(address) => rule.allow_test_endpoints.then(|| address.to_string()),
        Host::Ipv6(address) => rule.allow_test_endpoints.then(|| address.to_string()),
    }
}

#[cfg(test)]
mod tests;
