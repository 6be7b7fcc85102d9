//! Entries of the revocation list: what is said of an instance's keys beyond their signature.
//!
//! An instance without an entry has nothing withdrawn: each key with a right signature is valid. An entry only
//! ever grows stricter: [`Entry::join`] is the least upper bound of two, so lists from a backup, another replica or
//! an import can be put together in any order, any number of times.
//!
//! ```text
//! (no entry) --rotate--> Rotated(newest 1) --rotate--> Rotated(newest 2) --revoke, withdraw--> Gone
//! ```

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sovereign_relay_protocol::time::UnixMillis;

/// Most rotated-away generations that may be in their grace at once. An instance that rotates more often than
/// that within its graces loses the oldest one early; rotating itself is never refused.
pub const GENERATIONS_IN_GRACE: usize = 8;

/// Short fingerprint of an enrollment secret: `kid` in the header of the keys it signs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kid(pub [u8; 6]);

impl Kid {
    /// Parses the text form, 8 characters of base64url.
    pub fn parse(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }
}

impl fmt::Display for Kid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Kid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Kid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Kid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a key fingerprint"))
    }
}

/// One instance's entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The secrets that may have signed keys of this instance: all that were configured when the entry was made.
    /// Sorted, each once. The entry goes when none of them is configured any more.
    pub kids: Vec<Kid>,
    /// What is said.
    #[serde(flatten)]
    pub state: State,
}

/// What an entry says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The newest key, and how long earlier ones work.
    Rotated(Rotated),
    /// No key of the instance works any more.
    Gone(Gone),
}

/// The end of an instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gone {
    /// When.
    pub at: UnixMillis,
    /// By whom.
    pub cause: Cause,
}

/// Who ended it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// The operator.
    Revoked,
    /// The instance itself.
    Withdrawn,
}

/// An instance's keys after a rotation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotated {
    /// The newest generation.
    pub newest: u32,
    /// `iat` of the newest key, in seconds: with it the same key can be made again.
    pub issued_at: u64,
    /// Whether the newest key was used yet. Until then the one before may ask for it again.
    pub used: bool,
    /// Earlier generations in their grace, oldest first; ends never decrease. Whatever is neither here nor at
    /// least `newest` is revoked.
    pub grace: Vec<Grace>,
}

/// A rotated-away generation that still works for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grace {
    /// Which.
    pub generation: u32,
    /// Until then.
    pub until: UnixMillis,
}

impl Entry {
    /// The strictest of both: a key is valid under it exactly when it is valid under each.
    pub fn join(&self, other: &Self) -> Self {
        let mut kids: Vec<Kid> = self.kids.iter().chain(&other.kids).copied().collect();
        kids.sort_unstable();
        kids.dedup();
        let state = match (&self.state, &other.state) {
            (State::Gone(a), State::Gone(b)) => State::Gone(*a.min(b)),
            (State::Gone(gone), State::Rotated(_)) | (State::Rotated(_), State::Gone(gone)) => {
                State::Gone(*gone)
            }
            (State::Rotated(a), State::Rotated(b)) => State::Rotated(a.join(b)),
        };
        Self { kids, state }
    }

    /// Whether it could have been written by a relay: for what comes from outside.
    pub fn is_well_formed(&self) -> bool {
        let kids_sorted = self.kids.is_sorted_by(|a, b| a < b);
        let rotated = match &self.state {
            State::Gone(_) => return kids_sorted,
            State::Rotated(rotated) => rotated,
        };
        kids_sorted
            && rotated.grace.len() <= GENERATIONS_IN_GRACE
            && rotated
                .grace
                .is_sorted_by(|a, b| a.generation < b.generation && a.until <= b.until)
            && rotated
                .grace
                .iter()
                .all(|grace| grace.generation < rotated.newest)
    }

    /// Whether a key of this generation is valid.
    pub fn allows(&self, generation: u32, now: UnixMillis) -> bool {
        match &self.state {
            State::Gone(_) => false,
            State::Rotated(rotated) => rotated.allows(generation, now),
        }
    }
}

impl Rotated {
    /// When the generation before the newest ends, or ended.
    pub fn previous_valid_until(&self) -> UnixMillis {
        let previous = self
            .grace
            .last()
            .filter(|grace| grace.generation.checked_add(1) == Some(self.newest));
        previous.map_or(UnixMillis(self.issued_at.saturating_mul(1000)), |grace| {
            grace.until
        })
    }

    fn allows(&self, generation: u32, now: UnixMillis) -> bool {
        self.end_of(generation).is_none_or(|end| now < end)
    }

    /// When a generation ends: `None` = not yet known, the beginning of time = it has.
    fn end_of(&self, generation: u32) -> Option<UnixMillis> {
        if generation >= self.newest {
            return None;
        }
        let grace = self.grace.iter().find(|grace| grace.generation == generation);
        Some(grace.map_or(UnixMillis(0), |grace| grace.until))
    }

    fn join(&self, other: &Self) -> Self {
        let (high, low) = if self.newest >= other.newest {
            (self, other)
        } else {
            (other, self)
        };
        let grace = high
            .grace
            .iter()
            .filter_map(|grace| low.shorten(*grace))
            .collect();
        if high.newest > low.newest {
            return Self {
                grace,
                ..high.clone()
            };
        }
        Self {
            newest: high.newest,
            issued_at: high.issued_at.min(low.issued_at),
            used: high.used || low.used,
            grace,
        }
    }

    /// What this one leaves of another's grace.
    fn shorten(&self, grace: Grace) -> Option<Grace> {
        match self.end_of(grace.generation) {
            None => Some(grace),
            Some(UnixMillis(0)) => None,
            Some(end) => Some(Grace {
                until: grace.until.min(end),
                ..grace
            }),
        }
    }
}

#[cfg(test)]
mod tests;
