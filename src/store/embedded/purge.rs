//! Forgetting what has lapsed, a bounded step at a time.
//!
//! Each step looks at the next [`ROWS_PER_STEP`] rows of each table and remembers where it stopped, so that a step
//! costs milliseconds however large the tables are. The first step after the store was opened takes all groups of
//! addresses: those that lapsed while the node was down are keyed hashes that were kept for longer than their day.

use std::{
    ops::Bound,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{ReadableTable, Table, WriteTransaction};
use sovereign_relay_protocol::{
    id::InstanceId,
    limits::{UNUSED_RECORD_DAYS, USED_RECORD_DAYS},
    time::UnixMillis,
};

use super::{
    changes::put,
    outcomes,
    tables::{GROUPS, INVITES, RECORDS, REVOCATIONS, SECRETS, decode, decode_record},
};
use crate::store::{
    Purged, Record,
    revocation::{Entry, Kid},
};

/// Rows of a table in one step: a million rows take three hours at a step a minute.
const ROWS_PER_STEP: usize = 5000;
/// Groups in one step. Their rows are small, and a hash should not outlive its day by much: a million take 20 minutes.
const GROUPS_PER_STEP: usize = 50_000;
/// An entry goes this long after the last of its secrets was seen configured: a secret that is missing for a day
/// by mistake must not cost the revocations made under it.
const RETIRED_SECRET_DAYS: u64 = 30;
const DAY_MILLIS: u64 = 24 * 3600 * 1000;

type Outcome<T> = Result<T, redb::Error>;
type Values<'t> = Table<'t, &'static [u8; 16], &'static [u8]>;

/// Where the last step stopped, for each table that is walked.
#[derive(Default)]
pub(super) struct Cursors {
    records: Cursor<[u8; 16]>,
    revocations: Cursor<[u8; 16]>,
    groups: Cursor<u64>,
    /// There was a step since the store was opened.
    begun: AtomicBool,
}

impl Cursors {
    fn groups_in_this_step(&self) -> usize {
        match self.begun.swap(true, Ordering::Relaxed) {
            true => GROUPS_PER_STEP,
            false => usize::MAX,
        }
    }
}

/// One step.
pub(super) fn step(
    transaction: &WriteTransaction,
    cursors: &Cursors,
    now: UnixMillis,
    configured: &[Kid],
) -> Outcome<Purged> {
    note_secrets(transaction, now, configured)?;
    outcomes::purge(transaction, now)?;
    Ok(Purged {
        records: purge_records(transaction, &cursors.records, now)?,
        invites: purge_invites(transaction, now)?,
        groups: purge_groups(transaction, cursors, now)?,
        revocations: purge_revocations(transaction, &cursors.revocations, now)?,
    })
}

fn note_secrets(transaction: &WriteTransaction, now: UnixMillis, configured: &[Kid]) -> Outcome<()> {
    let mut secrets = transaction.open_table(SECRETS)?;
    for kid in configured {
        secrets.insert(&kid.0, now.0)?;
    }
    Ok(())
}

fn purge_records(
    transaction: &WriteTransaction,
    cursor: &Cursor<[u8; 16]>,
    now: UnixMillis,
) -> Outcome<usize> {
    let mut table = transaction.open_table(RECORDS)?;
    let mut lapsed = 0;
    for (key, value) in next_values(&table, cursor)? {
        let Ok(record) = decode_record(InstanceId::from_bytes(key), &value) else {
            tracing::error!(instance = %InstanceId::from_bytes(key), "a record is unreadable and was left alone");
            continue;
        };
        match remainder(&record, now) {
            Some(left) if left == record => {}
            Some(left) => put(&mut table, &left)?,
            None => {
                table.remove(&key)?;
            }
        }
        lapsed += usize::from(is_lapsed(&record, now));
    }
    Ok(lapsed)
}

/// What is left of a record now: all of it while it lives, else the operator's limit, its word on TURN and a suspension that runs.
fn remainder(record: &Record, now: UnixMillis) -> Option<Record> {
    let mut left = record.clone();
    if record.enrolled_at.is_none() || is_lapsed(record, now) {
        left = Record::bare(record.instance);
        left.per_minute = record.per_minute;
        left.turn = record.turn;
        left.suspension = record
            .suspension
            .clone()
            .filter(|suspension| suspension.until.is_none_or(|end| now < end));
    }
    (left != Record::bare(record.instance)).then_some(left)
}

fn is_lapsed(record: &Record, now: UnixMillis) -> bool {
    let days = |days: u64| days * DAY_MILLIS;
    let end = match (record.enrolled_at, record.last_used_at) {
        (None, _) => return false,
        (Some(enrolled_at), None) => enrolled_at.plus_millis(days(UNUSED_RECORD_DAYS)),
        (Some(_), Some(last_used_at)) => last_used_at.plus_millis(days(USED_RECORD_DAYS)),
    };
    end <= now
}

fn purge_invites(transaction: &WriteTransaction, now: UnixMillis) -> Outcome<usize> {
    let mut invites = transaction.open_table(INVITES)?;
    let before = redb::ReadableTableMetadata::len(&invites)?;
    invites.retain(|_, (_, expires_at)| now.0 < expires_at)?;
    let after = redb::ReadableTableMetadata::len(&invites)?;
    Ok(usize::try_from(before.saturating_sub(after)).unwrap_or(usize::MAX))
}

fn purge_groups(transaction: &WriteTransaction, cursors: &Cursors, now: UnixMillis) -> Outcome<usize> {
    let (cursor, most) = (&cursors.groups, cursors.groups_in_this_step());
    let mut groups = transaction.open_table(GROUPS)?;
    let mut rows = Vec::new();
    let start = cursor.position().map_or(Bound::Unbounded, Bound::Excluded);
    for row in groups.range::<u64>((start, Bound::Unbounded))?.take(most) {
        let (key, value) = row?;
        rows.push((key.value(), value.value().1));
    }
    cursor.advance(rows.len() == most, rows.last().map(|(key, _)| *key));
    let ended: Vec<u64> = rows
        .into_iter()
        .filter(|(_, until)| *until <= now.0)
        .map(|(key, _)| key)
        .collect();
    for key in &ended {
        groups.remove(key)?;
    }
    Ok(ended.len())
}

fn purge_revocations(
    transaction: &WriteTransaction,
    cursor: &Cursor<[u8; 16]>,
    now: UnixMillis,
) -> Outcome<Vec<(InstanceId, Entry)>> {
    let mut list = transaction.open_table(REVOCATIONS)?;
    let mut secrets = transaction.open_table(SECRETS)?;
    let mut gone = Vec::new();
    for (key, value) in next_values(&list, cursor)? {
        let instance = InstanceId::from_bytes(key);
        let Ok(entry) = decode::<Entry>(&value) else {
            tracing::error!(%instance, "an entry of the revocation list is unreadable and was left alone");
            continue;
        };
        if all_retired(&mut secrets, &entry.kids, now)? {
            list.remove(&key)?;
            gone.push((instance, entry));
        }
    }
    Ok(gone)
}

/// A secret never seen before (its entry was imported) counts from now. An entry without any was made on a node
/// without a secret, and stays.
fn all_retired(
    secrets: &mut Table<'_, &'static [u8; 6], u64>,
    kids: &[Kid],
    now: UnixMillis,
) -> Outcome<bool> {
    let mut all = !kids.is_empty();
    for kid in kids {
        let seen = secrets.get(&kid.0)?.map(|at| at.value());
        if seen.is_none() {
            secrets.insert(&kid.0, now.0)?;
        }
        all &= seen.is_some_and(|at| at.saturating_add(RETIRED_SECRET_DAYS * DAY_MILLIS) <= now.0);
    }
    Ok(all)
}

fn next_values(table: &Values<'_>, cursor: &Cursor<[u8; 16]>) -> Outcome<Vec<([u8; 16], Vec<u8>)>> {
    let mut rows = Vec::new();
    let position = cursor.position();
    let start = position.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    for row in table
        .range::<&[u8; 16]>((start, Bound::Unbounded))?
        .take(ROWS_PER_STEP)
    {
        let (key, value) = row?;
        rows.push((*key.value(), value.value().to_vec()));
    }
    cursor.advance(rows.len() == ROWS_PER_STEP, rows.last().map(|(key, _)| *key));
    Ok(rows)
}

/// The last row looked at; `None` = begin at the start.
struct Cursor<K>(Mutex<Option<K>>);

impl<K: Copy> Cursor<K> {
    fn position(&self) -> Option<K> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step that was not filled has reached the end.
    fn advance(&self, is_filled: bool, last: Option<K>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = last.filter(|_| is_filled);
    }
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}
