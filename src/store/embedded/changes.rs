//! The changes, each a function on a write transaction: what a store does, free of threads and waiting.

use redb::{ReadableTable, ReadableTableMetadata, Table, WriteTransaction};
use sovereign_relay_actors::ports::Suspension;
use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};

use super::tables::{GROUPS, INVITES, RECORDS, REVOCATIONS, decode, decode_record, encode, encode_record};
use crate::store::{
    Enrolled, GROUP_MILLIS, INVITES_OUTSTANDING, Invite, InviteHash, NewEnrollment, Record, Swap,
    revocation::Entry,
};

type Outcome<T> = Result<T, redb::Error>;
type Values<'t> = Table<'t, &'static [u8; 16], &'static [u8]>;

/// Uses up the invite, finds or opens the group, writes the record.
pub(super) fn enroll(transaction: &WriteTransaction, new: &NewEnrollment) -> Outcome<Enrolled> {
    if let Some(invite) = new.invite
        && !use_up(transaction, invite, new.at)?
    {
        return Ok(Enrolled::InviteRefused);
    }
    let group = group_of(transaction, new)?;
    let record = Record {
        name: new.name.clone(),
        contact: new.contact.clone(),
        enrolled_at: Some(new.at),
        group: Some(group),
        ..Record::bare(new.instance)
    };
    put(&mut transaction.open_table(RECORDS)?, &record)?;
    Ok(Enrolled::Made { group })
}

fn use_up(transaction: &WriteTransaction, invite: InviteHash, now: UnixMillis) -> Outcome<bool> {
    let mut invites = transaction.open_table(INVITES)?;
    let found = invites.remove(&invite.0)?.map(|times| times.value());
    Ok(found.is_some_and(|(_, expires_at)| now.0 < expires_at))
}

fn group_of(transaction: &WriteTransaction, new: &NewEnrollment) -> Outcome<u64> {
    let mut groups = transaction.open_table(GROUPS)?;
    let known = groups.get(new.address)?.map(|group| group.value());
    if let Some((group, until)) = known
        && new.at.0 < until
    {
        return Ok(group);
    }
    groups.insert(new.address, (new.fresh_group, new.at.plus_millis(GROUP_MILLIS).0))?;
    Ok(new.fresh_group)
}

/// Changes a record, or makes a bare one to change; a bare one that then says nothing is not kept.
pub(super) fn change(
    transaction: &WriteTransaction,
    instance: InstanceId,
    change: impl FnOnce(&mut Record),
) -> Outcome<()> {
    let mut records = transaction.open_table(RECORDS)?;
    let mut record = find(&records, instance)?.unwrap_or_else(|| Record::bare(instance));
    change(&mut record);
    if record == Record::bare(instance) {
        records.remove(instance.as_bytes())?;
        return Ok(());
    }
    put(&mut records, &record)
}

/// Counts a use. An instance without a record has nothing to keep alive.
pub(super) fn note_use(
    transaction: &WriteTransaction,
    instance: InstanceId,
    sent: u64,
    at: UnixMillis,
) -> Outcome<()> {
    let mut records = transaction.open_table(RECORDS)?;
    let Some(mut record) = find(&records, instance)? else {
        return Ok(());
    };
    record.sent = record.sent.saturating_add(sent);
    record.last_used_at = record.last_used_at.max(Some(at));
    put(&mut records, &record)
}

/// The abuse policy's suspension never shortens the operator's.
pub(super) fn suspend(record: &mut Record, suspension: Suspension) {
    let present = record.suspension.as_ref();
    let keeps = present.is_some_and(|present| present.outlasts(&suspension));
    if !keeps {
        record.suspension = Some(suspension);
    }
}

/// Joins entries into the list, and erases the records with them.
pub(super) fn join(
    transaction: &WriteTransaction,
    entries: &[(InstanceId, Entry)],
    erase: bool,
) -> Outcome<()> {
    let mut list = transaction.open_table(REVOCATIONS)?;
    let mut records = transaction.open_table(RECORDS)?;
    for (instance, entry) in entries {
        let joined = entry_of(&list, *instance)?.map_or_else(|| entry.clone(), |present| present.join(entry));
        list.insert(instance.as_bytes(), encode(&joined)?.as_slice())?;
        if erase {
            records.remove(instance.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes an entry if the present one is as expected.
pub(super) fn swap(
    transaction: &WriteTransaction,
    instance: InstanceId,
    expected: Option<&Entry>,
    new: &Entry,
) -> Outcome<Swap> {
    let mut list = transaction.open_table(REVOCATIONS)?;
    let present = entry_of(&list, instance)?;
    if present.as_ref() != expected {
        return Ok(Swap::Changed(present));
    }
    list.insert(instance.as_bytes(), encode(new)?.as_slice())?;
    Ok(Swap::Done)
}

/// Keeps an invite, if there is room.
pub(super) fn add_invite(transaction: &WriteTransaction, invite: &Invite) -> Outcome<bool> {
    let mut invites = transaction.open_table(INVITES)?;
    if invites.len()? >= INVITES_OUTSTANDING as u64 {
        return Ok(false);
    }
    invites.insert(&invite.hash.0, (invite.created_at.0, invite.expires_at.0))?;
    Ok(true)
}

/// Writes a record.
pub(super) fn put(records: &mut Values<'_>, record: &Record) -> Outcome<()> {
    records.insert(record.instance.as_bytes(), encode_record(record)?.as_slice())?;
    Ok(())
}

fn find(records: &Values<'_>, instance: InstanceId) -> Outcome<Option<Record>> {
    let found = records.get(instance.as_bytes())?;
    found
        .map(|value| decode_record(instance, value.value()))
        .transpose()
}

fn entry_of(list: &Values<'_>, instance: InstanceId) -> Outcome<Option<Entry>> {
    let found = list.get(instance.as_bytes())?;
    found.map(|value| decode(value.value())).transpose()
}
