//! How a record stands in its two hashes.

use std::{collections::HashMap, str::FromStr};

use sovereign_relay_actors::ports::{Standing, StoreError, Suspension};
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};

use crate::store::Record;

/// Field of the operator's limit.
pub(super) const PER_MINUTE: &str = "per_minute";
/// Field of the operator's word on TURN.
pub(super) const TURN: &str = "turn";

/// From the hashes of the enrollment and of the word.
pub(super) fn record(
    instance: InstanceId,
    hashes: Vec<HashMap<String, String>>,
) -> Result<Record, StoreError> {
    let row = Row(hashes.into_iter().flatten().collect());
    let suspension = match (row.0.get("until"), row.text("reason")) {
        (Some(until), Some(reason)) if until.is_empty() => Some(Suspension { until: None, reason }),
        (Some(_), Some(reason)) => Some(Suspension {
            until: row.time("until")?,
            reason,
        }),
        (Some(_) | None, _) => None,
    };
    Ok(Record {
        instance,
        name: row.text("name").map(Redacted::new),
        contact: row.text("contact").map(Redacted::new),
        enrolled_at: row.time("enrolled_at")?,
        group: row.parse("group")?,
        sent: row.parse("sent")?.unwrap_or_default(),
        last_used_at: row.time("last_used_at")?,
        per_minute: row.parse(PER_MINUTE)?,
        turn: row.parse(TURN)?,
        suspension,
    })
}

/// Whether there is anything in the second hash.
pub(super) fn says_something(record: &Record) -> bool {
    record.per_minute.is_some() || record.turn.is_some() || record.suspension.is_some()
}

/// The second hash, as fields and values.
pub(super) fn word(record: &Record) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    fields.extend(record.per_minute.map(|limit| (PER_MINUTE, limit.to_string())));
    fields.extend(record.turn.map(|turn| (TURN, turn.to_string())));
    if let Some(suspension) = &record.suspension {
        let until = suspension.until.map(|until| until.0.to_string());
        fields.push(("until", until.unwrap_or_default()));
        fields.push(("reason", suspension.reason.clone()));
    }
    fields
}

/// What an actor needs of it.
pub(super) fn standing(record: Record) -> Standing {
    Standing {
        enrolled_at: record.enrolled_at,
        group: record.group,
        sent: record.sent,
        per_minute: record.per_minute,
        turn: record.turn,
        suspension: record.suspension,
    }
}

struct Row(HashMap<String, String>);

impl Row {
    fn text(&self, field: &str) -> Option<String> {
        self.0.get(field).cloned()
    }

    fn time(&self, field: &'static str) -> Result<Option<UnixMillis>, StoreError> {
        Ok(self.parse(field)?.map(UnixMillis))
    }

    /// The value may be content, so only the field is named.
    fn parse<T: FromStr>(&self, field: &'static str) -> Result<Option<T>, StoreError> {
        let unreadable = |_| StoreError(format!("a record's {field} is unreadable"));
        self.0
            .get(field)
            .map(|text| text.parse().map_err(unreadable))
            .transpose()
    }
}
