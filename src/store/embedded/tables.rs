//! The tables, and how values stand in them.
//!
//! Records and entries are JSON: a field can be added without a new schema version, and a support case can be read
//! with the eye. A newer relay that changes what a field means raises [`SCHEMA_VERSION`], and older ones refuse.

use std::ops::Bound;

use redb::{
    ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition, TableError, WriteTransaction,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sovereign_relay_actors::ports::Suspension;
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};

use crate::store::{Invite, InviteHash, Record, revocation::Entry};

/// Of the tables below.
pub(super) const SCHEMA_VERSION: u64 = 1;
/// Key of the schema version in [`META`].
pub(super) const SCHEMA: &str = "schema";

/// Numbers about the database itself.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Instance -> JSON of [`StoredRecord`].
pub(super) const RECORDS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("records");
/// Instance -> JSON of a revocation entry.
pub(super) const REVOCATIONS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("revocations");
/// Hash of an invite -> made at, expires at.
pub(super) const INVITES: TableDefinition<'_, &[u8; 32], (u64, u64)> = TableDefinition::new("invites");
/// Keyed hash of an address -> group, forgotten at.
pub(super) const GROUPS: TableDefinition<'_, u64, (u64, u64)> = TableDefinition::new("groups");
/// Fingerprint of a secret -> last seen configured at.
pub(super) const SECRETS: TableDefinition<'_, &[u8; 6], u64> = TableDefinition::new("secrets");
/// Keyed hash of the message, forgotten at, JSON of the answer.
type StoredOutcome = (&'static [u8; 16], u64, &'static [u8]);
/// Keyed hash of instance and idempotency key -> its outcome. Written at a stop.
pub(super) const OUTCOMES: TableDefinition<'_, &[u8; 16], StoredOutcome> = TableDefinition::new("outcomes");

/// Makes what is missing, so that readers find every table.
pub(super) fn create_all(transaction: &WriteTransaction) -> Result<(), TableError> {
    transaction.open_table(RECORDS)?;
    transaction.open_table(REVOCATIONS)?;
    transaction.open_table(INVITES)?;
    transaction.open_table(GROUPS)?;
    transaction.open_table(SECRETS)?;
    Ok(())
}

/// Whether keys may be out that this database knows of: it has a record or a revocation, or has seen a secret.
pub(super) fn is_in_use(snapshot: &ReadTransaction) -> Result<bool, redb::Error> {
    Ok(!snapshot.open_table(RECORDS)?.is_empty()?
        || !snapshot.open_table(REVOCATIONS)?.is_empty()?
        || !snapshot.open_table(SECRETS)?.is_empty()?)
}

/// One record, from a snapshot.
pub(super) fn read_record(
    snapshot: &ReadTransaction,
    instance: InstanceId,
) -> Result<Option<Record>, redb::Error> {
    let table = snapshot.open_table(RECORDS)?;
    let found = ReadableTable::get(&table, instance.as_bytes())?;
    found
        .map(|value| decode_record(instance, value.value()))
        .transpose()
}

/// A page of records after `after`.
pub(super) fn read_records(
    snapshot: &ReadTransaction,
    after: Option<InstanceId>,
    limit: usize,
) -> Result<Vec<Record>, redb::Error> {
    let table = snapshot.open_table(RECORDS)?;
    let start = after
        .as_ref()
        .map_or(Bound::Unbounded, |instance| Bound::Excluded(instance.as_bytes()));
    let mut page = Vec::new();
    for row in ReadableTable::range::<&[u8; 16]>(&table, (start, Bound::Unbounded))?.take(limit) {
        let (key, value) = row?;
        page.push(decode_record(
            InstanceId::from_bytes(*key.value()),
            value.value(),
        )?);
    }
    Ok(page)
}

/// The whole revocation list.
pub(super) fn read_revocations(snapshot: &ReadTransaction) -> Result<Vec<(InstanceId, Entry)>, redb::Error> {
    let mut entries = Vec::new();
    for row in snapshot.open_table(REVOCATIONS)?.iter()? {
        let (instance, entry) = row?;
        entries.push((InstanceId::from_bytes(*instance.value()), decode(entry.value())?));
    }
    Ok(entries)
}

/// The invites that can be used now, by expiry.
pub(super) fn read_invites(snapshot: &ReadTransaction, now: UnixMillis) -> Result<Vec<Invite>, redb::Error> {
    let mut invites = Vec::new();
    for row in snapshot.open_table(INVITES)?.iter()? {
        let (hash, times) = row?;
        let (created_at, expires_at) = times.value();
        let invite = Invite {
            hash: InviteHash(*hash.value()),
            created_at: UnixMillis(created_at),
            expires_at: UnixMillis(expires_at),
        };
        if now < invite.expires_at {
            invites.push(invite);
        }
    }
    invites.sort_by_key(|invite| (invite.expires_at, invite.hash));
    Ok(invites)
}

/// A [`Record`] as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contact: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enrolled_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u64>,
    #[serde(default)]
    sent: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_used_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    per_minute: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspension: Option<StoredSuspension>,
}

#[derive(Serialize, Deserialize)]
struct StoredSuspension {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    reason: String,
}

/// To bytes.
pub(super) fn encode_record(record: &Record) -> Result<Vec<u8>, redb::Error> {
    encode(&StoredRecord {
        name: record.name.as_ref().map(|name| name.expose().to_owned()),
        contact: record.contact.as_ref().map(|contact| contact.expose().to_owned()),
        enrolled_at: record.enrolled_at.map(|at| at.0),
        group: record.group,
        sent: record.sent,
        last_used_at: record.last_used_at.map(|at| at.0),
        per_minute: record.per_minute,
        turn: record.turn,
        suspension: record.suspension.as_ref().map(|suspension| StoredSuspension {
            until: suspension.until.map(|at| at.0),
            reason: suspension.reason.clone(),
        }),
    })
}

/// From bytes.
pub(super) fn decode_record(instance: InstanceId, bytes: &[u8]) -> Result<Record, redb::Error> {
    let stored: StoredRecord = decode(bytes)?;
    Ok(Record {
        instance,
        name: stored.name.map(Redacted::new),
        contact: stored.contact.map(Redacted::new),
        enrolled_at: stored.enrolled_at.map(UnixMillis),
        group: stored.group,
        sent: stored.sent,
        last_used_at: stored.last_used_at.map(UnixMillis),
        per_minute: stored.per_minute,
        turn: stored.turn,
        suspension: stored.suspension.map(|suspension| Suspension {
            until: suspension.until.map(UnixMillis),
            reason: suspension.reason,
        }),
    })
}

/// To JSON.
pub(super) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, redb::Error> {
    serde_json::to_vec(value).map_err(|error| redb::Error::Corrupted(error.to_string()))
}

/// From JSON. The library's sentence may quote content, so only the place is told.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, redb::Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        redb::Error::Corrupted(format!("a stored value is unreadable at byte {}", error.column()))
    })
}
