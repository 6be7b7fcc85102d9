//! What the operator chooses.
//!
//! `off` is a decision and not the lack of one: a setting that is missing means the default relay, and only the word
//! itself turns the relay off.

mod limits;

use std::{fmt, str::FromStr};

use thiserror::Error;
use url::{Host, Url};

pub use self::limits::Limits;

/// Used when nothing is set.
pub const DEFAULT_RELAY: &str = "https://relay.sovereign.openfs.io";

/// Which relay devices are registered with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RelayChoice {
    /// [`DEFAULT_RELAY`].
    #[default]
    Default,
    /// None: no device is registered, nothing is sent to a relay, and no signaling session is made.
    Off,
    /// Another relay: its address without a slash at the end.
    Url(String),
}

/// A setting that names no relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum InvalidRelayChoice {
    /// Neither `off` nor an address.
    #[error("the relay must be `off` or an address such as {DEFAULT_RELAY}")]
    Malformed,
    /// The instance's key would travel in the clear.
    #[error("the relay's address must begin with https://; http:// is for this machine only")]
    Plaintext,
    /// An address that carries more than a place.
    #[error("the relay's address must have no user name, query or fragment")]
    Extra,
}

impl RelayChoice {
    /// From a setting that may be missing. Blank counts as missing, as deployment tools pass on what is not set.
    pub fn from_setting(setting: Option<&str>) -> Result<Self, InvalidRelayChoice> {
        match setting.map(str::trim) {
            None | Some("") => Ok(Self::Default),
            Some(text) => text.parse(),
        }
    }

    /// The relay's address; `None` when it is off.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Default => Some(DEFAULT_RELAY),
            Self::Off => None,
            Self::Url(url) => Some(url),
        }
    }
}

impl FromStr for RelayChoice {
    type Err = InvalidRelayChoice;

    fn from_str(text: &str) -> Result<Self, InvalidRelayChoice> {
        if text.trim().eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        let url = Url::parse(text.trim()).map_err(|_| InvalidRelayChoice::Malformed)?;
        check(&url)?;
        let url = url.as_str().trim_end_matches('/');
        Ok(match url {
            DEFAULT_RELAY => Self::Default,
            other => Self::Url(other.to_owned()),
        })
    }
}

impl fmt::Display for RelayChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url().unwrap_or("off"))
    }
}

fn check(url: &Url) -> Result<(), InvalidRelayChoice> {
    let host = url.host().ok_or(InvalidRelayChoice::Malformed)?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&host) => {}
        "http" => return Err(InvalidRelayChoice::Plaintext),
        _ => return Err(InvalidRelayChoice::Malformed),
    }
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user || url.query().is_some() || url.fragment().is_some() {
        return Err(InvalidRelayChoice::Extra);
    }
    Ok(())
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn off_is_not_the_same_as_unset() {
        assert_eq!(RelayChoice::from_setting(None), Ok(RelayChoice::Default));
        assert_eq!(RelayChoice::from_setting(Some("  ")), Ok(RelayChoice::Default));
        for off in ["off", "OFF", " Off\n"] {
            assert_eq!(RelayChoice::from_setting(Some(off)), Ok(RelayChoice::Off));
        }
        assert_eq!(RelayChoice::Off.url(), None);
        assert_eq!(RelayChoice::Default.url(), Some(DEFAULT_RELAY));
    }

    #[test]
    fn one_relay_has_one_spelling() {
        for (text, url) in [
            ("https://Relay.Example/", "https://relay.example"),
            ("https://relay.example:443", "https://relay.example"),
            (
                "https://relay.example/behind/it//",
                "https://relay.example/behind/it",
            ),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
            ("http://localhost", "http://localhost"),
        ] {
            assert_eq!(text.parse(), Ok(RelayChoice::Url(url.to_owned())), "{text}");
        }
        let default = format!("{DEFAULT_RELAY}/");
        assert_eq!(default.parse(), Ok(RelayChoice::Default));
    }

    #[test]
    fn what_names_no_relay_is_refused_with_its_reason() {
        use InvalidRelayChoice::{Extra, Malformed, Plaintext};
        for (text, reason) in [
            ("on", Malformed),
            ("none", Malformed),
            ("relay.example", Malformed),
            ("ftp://relay.example", Malformed),
            ("https://", Malformed),
            ("wss://relay.example", Malformed),
            ("http://relay.example", Plaintext),
            ("http://127.0.0.1.example", Plaintext),
            ("https://key@relay.example", Extra),
            ("https://:key@relay.example", Extra),
            ("https://relay.example/?key", Extra),
            ("https://relay.example/#key", Extra),
        ] {
            assert_eq!(text.parse::<RelayChoice>(), Err(reason), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_parsed_to_the_same(text in "(off|OFF|http|https|)[:/a-z0-9.@#?\\[\\]%\\- ]{0,40}") {
            if let Ok(choice) = RelayChoice::from_setting(Some(&text)) {
                prop_assert_eq!(RelayChoice::from_setting(Some(&choice.to_string())), Ok(choice));
            }
        }

        #[test]
        fn nothing_but_the_word_turns_it_off(text in "\\PC{0,60}") {
            if RelayChoice::from_setting(Some(&text)) == Ok(RelayChoice::Off) {
                prop_assert!(text.trim().eq_ignore_ascii_case("off"));
            }
        }

        #[test]
        fn an_address_in_the_clear_is_on_this_machine(host in "[a-z0-9.]{1,20}") {
            if let Ok(RelayChoice::Url(url)) = format!("http://{host}").parse() {
                let host = Url::parse(&url).unwrap();
                let host = host.host_str().unwrap();
                prop_assert!(host == "localhost" || host.starts_with("127."));
            }
        }
    }
}
