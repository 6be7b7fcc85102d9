//! Times on the wire: RFC 3339 in UTC.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Milliseconds since the Unix epoch. Serialized as an RFC 3339 UTC string.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// Whole seconds since the epoch, rounded down.
    pub fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// This moment plus `millis`, stopping at the end of time.
    pub fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// RFC 3339 in UTC. A time after the year 9999 is printed as its last second.
    pub fn to_rfc3339(self) -> String {
        const YEAR_9999_ENDS: u64 = 253_402_300_799_999;
        let nanos = i128::from(self.0.min(YEAR_9999_ENDS)) * 1_000_000;
        OffsetDateTime::from_unix_timestamp_nanos(nanos)
            .ok()
            .and_then(|at| at.format(&Rfc3339).ok())
            .unwrap_or_else(|| "9999-12-31T23:59:59Z".to_owned())
    }

    /// Parses RFC 3339; `None` for anything else and for times before the epoch.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        // Rounded down, so that the last moment before the epoch is not taken for its first.
        u64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000))
            .ok()
            .map(Self)
    }
}

impl Serialize for UnixMillis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for UnixMillis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_rfc3339(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 time"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};
    use time::UtcOffset;

    use super::*;

    const YEAR_9999_ENDS: u64 = 253_402_300_799_999;

    /// What was read is written so that it reads the same again.
    fn is_read_well(text: &str) -> Result<(), TestCaseError> {
        if let Some(read) = UnixMillis::from_rfc3339(text) {
            let read = UnixMillis(read.0.min(YEAR_9999_ENDS));
            prop_assert_eq!(
                UnixMillis::from_rfc3339(&read.to_rfc3339()),
                Some(read),
                "{}",
                text
            );
        }
        Ok(())
    }

    #[test]
    fn times_are_rfc_3339_in_utc() {
        assert_eq!(UnixMillis(0).to_rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(
            UnixMillis(1_700_000_000_123).to_rfc3339(),
            "2023-11-14T22:13:20.123Z"
        );
        assert_eq!(UnixMillis(u64::MAX).to_rfc3339(), "9999-12-31T23:59:59.999Z");
        assert_eq!(
            UnixMillis::from_rfc3339("2023-11-14T23:13:20.123+01:00"),
            Some(UnixMillis(1_700_000_000_123))
        );
        assert_eq!(UnixMillis::from_rfc3339("1969-12-31T23:59:59Z"), None);
        assert_eq!(UnixMillis::from_rfc3339("1969-12-31T23:59:59.9999Z"), None);
        assert_eq!(UnixMillis::from_rfc3339("yesterday"), None);
    }

    proptest! {
        #[test]
        fn every_time_survives_the_wire(millis in 0u64..YEAR_9999_ENDS) {
            prop_assert_eq!(UnixMillis::from_rfc3339(&UnixMillis(millis).to_rfc3339()), Some(UnixMillis(millis)));
        }

        #[test]
        fn a_moment_is_the_same_in_every_offset(millis in 0u64..4_102_444_800_000, minutes in -1439i32..=1439) {
            let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).unwrap();
            let there = at.to_offset(UtcOffset::from_whole_seconds(minutes * 60).unwrap());
            prop_assume!(there.year() >= 0);
            let text = there.format(&Rfc3339).unwrap();
            prop_assert_eq!(UnixMillis::from_rfc3339(&text), Some(UnixMillis(millis)), "{}", text);
        }

        #[test]
        fn a_time_before_the_epoch_is_none(nanos in 1i64..=i64::MAX) {
            let at = OffsetDateTime::from_unix_timestamp_nanos(-i128::from(nanos)).unwrap();
            prop_assert_eq!(UnixMillis::from_rfc3339(&at.format(&Rfc3339).unwrap()), None);
        }

        #[test]
        fn arbitrary_text_is_read_well_or_not_at_all(text in any::<String>()) {
            is_read_well(&text)?;
        }

        #[test]
        fn a_mutated_time_is_read_well_or_not_at_all(
            millis in 0u64..=YEAR_9999_ENDS,
            changes in vec((any::<Index>(), "[0-9TZ:.+ -]"), 1..4),
        ) {
            let mut text = UnixMillis(millis).to_rfc3339();
            for (at, change) in changes {
                let at = at.index(text.len());
                text.replace_range(at..=at, &change);
            }
            is_read_well(&text)?;
        }
    }
}
