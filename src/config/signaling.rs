//! Signaling: whose pages may connect, how much instances may have, and the TURN server.

use sovereign_relay_actors::{instance::signal::TurnFor, session::rules::SessionRules};
use sovereign_relay_protocol::{limits as public_limits, redacted::Redacted};
use url::Url;

use super::{availability::Off, error::ConfigError, setting, source::Sources};
use crate::{defaults, store::sessions::SessionBounds, turn::TurnServers, ws::door::DoorBounds};

mod limits;

pub(super) use self::limits::cut;

/// Signaling.
#[derive(Clone, Debug)]
pub struct Signaling {
    /// Origins (RFC 6454) whose pages may connect, as browsers spell them; empty = any.
    pub allowed_origins: Vec<String>,
    /// Sessions that an instance makes in a minute.
    pub sessions_per_minute: u32,
    /// TURN credentials in a minute for the sessions of an instance.
    pub turn_per_minute: u32,
    /// What one session may carry.
    pub rules: SessionRules,
    /// How much instances may have at the same time.
    pub bounds: SessionBounds,
    /// How many connections there may be, by what they have shown.
    pub door: DoorBounds,
    /// The TURN server, or why there is none.
    pub turn: Result<TurnServers, Off>,
    /// Whose peers get its credentials.
    pub turn_for: TurnFor,
}

impl Signaling {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let rules = limits::rules(sources)?;
        Ok(Self {
            allowed_origins: sources
                .parse(&setting::ALLOWED_ORIGINS, parse_origins)?
                .unwrap_or_default(),
            sessions_per_minute: limits::count(sources, &setting::SESSIONS_PER_MINUTE)?
                .unwrap_or(public_limits::SESSIONS_PER_MINUTE),
            turn_per_minute: limits::count(sources, &setting::TURN_PER_MINUTE)?
                .unwrap_or(public_limits::TURN_PER_MINUTE),
            bounds: limits::bounds(sources, &rules.limits)?,
            rules,
            door: limits::door(sources)?,
            turn: servers(sources)?,
            turn_for: sources
                .parse(&setting::TURN_FOR, parse_turn_for)?
                .unwrap_or_default(),
        })
    }
}

fn servers(sources: &Sources<'_>) -> Result<Result<TurnServers, Off>, ConfigError> {
    let uris = sources.parse(&setting::TURN_URIS, parse_uris)?;
    let secret = sources.parse(&setting::TURN_SECRET, parse_turn_secrets)?;
    Ok(match (uris, secret) {
        (Some((stun, turn)), Some(secret)) => Ok(TurnServers { stun, turn, secret }),
        (uris, secret) => Err(Off::lacking(&[
            (&setting::TURN_URIS, uris.is_some()),
            (&setting::TURN_SECRET, secret.is_some()),
        ])),
    })
}

fn parse_turn_for(text: &str) -> Result<TurnFor, String> {
    match text.trim() {
        "none" => Ok(TurnFor::None),
        "allowed" => Ok(TurnFor::Allowed),
        "all" => Ok(TurnFor::All),
        _ => Err("must be none, allowed or all".to_owned()),
    }
}

/// As browsers spell an origin in its header, so that they can be compared as text.
fn parse_origins(text: &str) -> Result<Vec<String>, String> {
    const PROBLEM: &str = "must be web origins with commas, like https://app.example,https://other.example:8443; \
                           leave it unset for any";
    let parse = |part: &str| {
        let url = Url::parse(part).ok()?;
        let bare = matches!(url.scheme(), "https" | "http")
            && url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none();
        bare.then(|| url.origin().ascii_serialization())
    };
    parts(text)
        .map(|part| parse(part).ok_or_else(|| PROBLEM.to_owned()))
        .collect()
}

/// STUN and TURN URIs, apart.
fn parse_uris(text: &str) -> Result<(Vec<String>, Vec<String>), String> {
    if let Some(wrong) = parts(text).position(|part| !is_ice_uri(part)) {
        return Err(format!(
            "must be URIs with commas, like turn:turn.example:3478?transport=udp; number {} is none",
            wrong + 1
        ));
    }
    let (stun, turn): (Vec<_>, Vec<_>) = parts(text)
        .map(str::to_owned)
        .partition(|part| part.starts_with("stun"));
    if turn.is_empty() {
        return Err("must hold at least one turn: or turns: URI".to_owned());
    }
    Ok((stun, turn))
}

/// RFC 7064 and RFC 7065: `turn:host[:port][?transport=udp]`, no slashes.
fn is_ice_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let known = match scheme {
        "stun" | "stuns" => query.is_none(),
        "turn" | "turns" => query.is_none_or(|query| matches!(query, "transport=udp" | "transport=tcp")),
        _ => false,
    };
    known && is_host_and_port(place)
}

fn is_host_and_port(place: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
    let shaped = !place.is_empty() && place.bytes().all(plain);
    let parsed = shaped
        .then(|| Url::parse(&format!("http://{place}/")).ok())
        .flatten();
    parsed.is_some_and(|url| url.host().is_some() && url.path() == "/")
}

/// With which the secret of `deploy/turnserver.conf` begins: everybody knows it.
const PLACEHOLDER: &str = "CHANGE-ME";

/// One secret, or two during a rotation: the first signs. Both are taken so that one list can serve relay and TURN
/// server.
fn parse_turn_secrets(text: &str) -> Result<Redacted, String> {
    let secrets: Vec<&str> = parts(text).collect();
    if secrets.iter().any(|secret| secret.starts_with(PLACEHOLDER)) {
        return Err(
            "is the sample's placeholder: make a secret with `sovereign-relay keygen secret`".to_owned(),
        );
    }
    let long_enough = secrets
        .iter()
        .all(|secret| secret.len() >= defaults::SECRET_BYTES_MIN);
    match secrets.first() {
        Some(first) if secrets.len() <= 2 && long_enough => Ok(Redacted::new(*first)),
        Some(_) | None => Err(format!(
            "must be one secret of at least {} bytes, or two with a comma",
            defaults::SECRET_BYTES_MIN
        )),
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests;
