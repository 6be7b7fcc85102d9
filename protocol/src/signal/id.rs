//! Names in a session: the session, its two slots, and a client's connection secret.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A session: 128 bits, random or an HMAC of the rendezvous, as 22 characters of base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId([u8; 16]);

impl SessionId {
    /// From its 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Parses the 22 characters; anything else, and a spelling that has bits left over, is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not a session id"))
    }
}

/// One of the two places in a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Slot {
    /// The first: the creator's, or the first instance's at a rendezvous.
    A,
    /// The other.
    B,
}

impl Slot {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// What the slot's peer does when both offer at the same time.
    pub const fn role(self) -> Role {
        match self {
            Self::A => Role::Impolite,
            Self::B => Role::Polite,
        }
    }
}

/// The role in perfect negotiation (W3C WebRTC, 10.7): the polite peer gives way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Ignores a colliding offer.
    Impolite,
    /// Rolls its own offer back.
    Polite,
}

/// A client's connection secret: 128 bits it made itself. The same one resumes, another is another page load.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId([u8; 16]);

impl ConnectionId {
    /// From its 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its 16 bytes, for hashing.
    pub const fn expose(&self) -> &[u8; 16] {
        &self.0
    }

    /// As on the wire: 32 hexadecimal digits.
    pub fn expose_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let shaped = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = shaped.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
        Some(Self(number.to_be_bytes()))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_session_id_has_one_spelling() {
        let id = SessionId::from_bytes([0xfb; 16]);
        assert_eq!(id.to_string().len(), 22);
        assert_eq!(SessionId::parse(&id.to_string()), Some(id));
        let padded = format!("{id}==");
        let standard = id.to_string().replace('-', "+").replace('_', "/");
        let left_over = format!("{}x", &id.to_string()[..21]);
        for wrong in ["", "short", &padded, &standard, &left_over, &"A".repeat(23)] {
            assert_eq!(SessionId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_connection_id_is_32_hexadecimal_digits_and_prints_nothing() {
        let id = ConnectionId::parse("00112233445566778899aabbccddeeff").unwrap();
        assert_eq!(ConnectionId::parse(&id.expose_text()), Some(id));
        assert_eq!(format!("{id:?}"), "REDACTED");
        for wrong in [
            "",
            "+0112233445566778899aabbccddeeff",
            &"g".repeat(32),
            &"0".repeat(31),
            &"0".repeat(33),
        ] {
            assert_eq!(ConnectionId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_roles_of_the_slots_are_opposite() {
        for slot in Slot::BOTH {
            assert_ne!(slot.role(), slot.other().role());
            assert_eq!(serde_json::to_value(slot).unwrap(), slot.as_str());
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_an_id_that_prints_as_it_came_or_none(text in ".{0,40}") {
            if let Some(id) = SessionId::parse(&text) {
                prop_assert_eq!(id.to_string(), text.clone());
            }
            if let Some(id) = ConnectionId::parse(&text) {
                prop_assert_eq!(id.expose_text(), text.to_lowercase());
            }
        }
    }
}
