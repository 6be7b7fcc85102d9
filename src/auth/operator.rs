//! What the operator does to instances, for the admin routes. The registry is told by the caller
//! (`Registry::refresh`) after each change to an instance.
//!
//! The export of the revocation list is one JSON object:
//!
//! ```json
//! {"format": "sovereign-relay-revocations", "version": 1, "entries": [
//!   {"instanceId": "0b0e...", "kids": ["q83vASNF"], "gone": {"at": "2027-01-02T03:04:05Z", "cause": "revoked"}},
//!   {"instanceId": "1c1f...", "kids": ["q83vASNF"], "rotated": {"newest": 2, "issuedAt": 1798859045, "used": true,
//!     "grace": [{"generation": 1, "until": "2027-01-03T03:04:05Z"}]}}]}
//! ```
//!
//! Importing joins it into the list, so it can be repeated and can only revoke, never allow.

use std::{fmt::Write as _, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use serde::{Deserialize, Serialize};
use sovereign_relay_actors::{
    now::Now,
    ports::{StoreError, Suspension},
};
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};

use super::{authority::Authority, derived::invite_hash};
use crate::store::{
    Invite, Record,
    revocation::{Cause, Entry, State},
};

/// `format` of an export.
const EXPORT_FORMAT: &str = "sovereign-relay-revocations";
/// `version` of an export.
const EXPORT_VERSION: u32 = 1;
/// Entries of an import written in one step.
const IMPORT_STEP: usize = 1000;
/// Bytes of an invite's hash that make its id.
const INVITE_ID_BYTES: usize = 6;

/// What the operator is shown of an instance. It holds a name and a contact: for the admin answer, never a log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceView {
    /// Who.
    pub instance_id: InstanceId,
    /// What it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its operator's mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Absent: no enrollment is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled_at: Option<UnixMillis>,
    /// Pushes `sent`.
    pub sent: u64,
    /// Absent: never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<UnixMillis>,
    /// Operator's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
    /// Operator's word on TURN credentials; absent: none was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<bool>,
    /// Suspended now, or was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<SuspensionView>,
    /// Its keys are no longer accepted, by whose wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Cause>,
    /// Generation of its newest key, where it was ever rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
}

/// A suspension, shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspensionView {
    /// Absent: until the operator ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// Why.
    pub reason: String,
}

/// An outstanding invite, shown. The invite itself is known to nobody but who it was given to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InviteView {
    /// Start of its hash, to tell invites apart.
    pub id: String,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it lapses.
    pub expires_at: UnixMillis,
}

/// What an import brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// Entries that it had.
    pub entries: usize,
    /// Instances that were not revoked before.
    pub ended: Vec<InstanceId>,
}

/// Why an operator's wish was not carried out.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OperatorError {
    /// As many invites are outstanding as may be.
    #[error("too many invites are outstanding; let some expire")]
    TooManyInvites,
    /// 503.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an import was refused. Nothing or a part was joined in; importing again is safe.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ImportError {
    /// 400: not an export, or of a newer format.
    #[error("not a revocation export this relay can read: {0}")]
    Malformed(String),
    /// 503.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Authority {
    /// Revokes all keys of an instance, known or not. Durable when it returns.
    pub async fn revoke(&self, instance: InstanceId, now: Now) -> Result<(), OperatorError> {
        self.end(instance, Cause::Revoked, now, false).await?;
        tracing::info!(%instance, "revoked");
        Ok(())
    }

    /// Suspends an instance.
    pub async fn suspend(&self, instance: InstanceId, suspension: Suspension) -> Result<(), OperatorError> {
        Ok(self.store.set_suspension(instance, Some(suspension)).await?)
    }

    /// Ends a suspension.
    pub async fn resume(&self, instance: InstanceId) -> Result<(), OperatorError> {
        Ok(self.store.set_suspension(instance, None).await?)
    }

    /// Sets the pushes a minute; `None` = default.
    pub async fn set_limit(
        &self,
        instance: InstanceId,
        per_minute: Option<u32>,
    ) -> Result<(), OperatorError> {
        Ok(self.store.set_limit(instance, per_minute).await?)
    }

    /// Says whether peers in an instance's sessions may be given TURN credentials; `None` takes the word back.
    pub async fn set_turn(&self, instance: InstanceId, turn: Option<bool>) -> Result<(), OperatorError> {
        Ok(self.store.set_turn(instance, turn).await?)
    }

    /// A page of records in the order of ids, after `after`; at most [`crate::store::RECORDS_PAGE`].
    pub async fn list(
        &self,
        after: Option<InstanceId>,
        limit: usize,
    ) -> Result<Vec<InstanceView>, OperatorError> {
        let records = self.store.records(after, limit).await?;
        let views = records.into_iter().map(|record| {
            let entry = self.revocations.get(record.instance);
            view(record, entry.as_ref())
        });
        Ok(views.collect())
    }

    /// One instance; `None` when neither a record nor an entry of the revocation list names it.
    pub async fn show(&self, instance: InstanceId) -> Result<Option<InstanceView>, OperatorError> {
        let entry = self.revocations.get(instance);
        let record = self.store.record(instance).await?;
        if record.is_none() && entry.is_none() {
            return Ok(None);
        }
        Ok(Some(view(
            record.unwrap_or_else(|| Record::bare(instance)),
            entry.as_ref(),
        )))
    }

    /// Makes an invite. It is shown once, here.
    pub async fn create_invite(
        &self,
        ttl: Duration,
        now: Now,
    ) -> Result<(Redacted, InviteView), OperatorError> {
        let text = Redacted::new(URL_SAFE_NO_PAD.encode(self.random::<32>()));
        let expires_at = now.plus(ttl).unix;
        let invite = Invite {
            hash: invite_hash(&text),
            created_at: now.unix,
            expires_at,
        };
        if !self.store.add_invite(invite).await? {
            return Err(OperatorError::TooManyInvites);
        }
        Ok((text, invite_view(&invite)))
    }

    /// The outstanding invites.
    pub async fn list_invites(&self, now: Now) -> Result<Vec<InviteView>, OperatorError> {
        Ok(self
            .store
            .invites(now.unix)
            .await?
            .iter()
            .map(invite_view)
            .collect())
    }

    /// The revocation list as JSON.
    pub fn export_revocations(&self) -> Vec<u8> {
        let mut entries = self.revocations.all();
        entries.sort_unstable_by_key(|(instance, _)| *instance);
        let entries = entries
            .into_iter()
            .map(|(instance_id, entry)| Exported { instance_id, entry })
            .collect();
        let export = Export {
            format: EXPORT_FORMAT.to_owned(),
            version: EXPORT_VERSION,
            entries,
        };
        // Nothing in it can fail to be written as JSON.
        serde_json::to_vec(&export).unwrap_or_default()
    }

    /// Joins an export into the list.
    pub async fn import_revocations(&self, json: &[u8]) -> Result<Imported, ImportError> {
        let entries = parse_export(json).map_err(ImportError::Malformed)?;
        let is_new_end = |(instance, entry): &&(InstanceId, Entry)| {
            matches!(entry.state, State::Gone(_)) && !self.is_gone(*instance)
        };
        let ended = entries
            .iter()
            .filter(is_new_end)
            .map(|(instance, _)| *instance)
            .collect();
        for step in entries.chunks(IMPORT_STEP) {
            self.take_in(step.to_vec(), false).await?;
        }
        tracing::info!(entries = entries.len(), "revocations imported");
        Ok(Imported {
            entries: entries.len(),
            ended,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Export {
    format: String,
    version: u32,
    entries: Vec<Exported>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exported {
    instance_id: InstanceId,
    #[serde(flatten)]
    entry: Entry,
}

fn parse_export(json: &[u8]) -> Result<Vec<(InstanceId, Entry)>, String> {
    let export: Export = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    if export.format != EXPORT_FORMAT {
        return Err(format!("format is not {EXPORT_FORMAT}"));
    }
    if export.version != EXPORT_VERSION {
        return Err(format!("version {} is not known", export.version));
    }
    let checked = |Exported { instance_id, entry }: Exported| {
        let wrong = || format!("the entry of {instance_id} makes no sense");
        entry
            .is_well_formed()
            .then_some((instance_id, entry))
            .ok_or_else(wrong)
    };
    export.entries.into_iter().map(checked).collect()
}

fn view(record: Record, entry: Option<&Entry>) -> InstanceView {
    let (ended, generation) = match entry.map(|entry| &entry.state) {
        None => (None, None),
        Some(State::Gone(gone)) => (Some(gone.cause), None),
        Some(State::Rotated(rotated)) => (None, Some(rotated.newest)),
    };
    InstanceView {
        instance_id: record.instance,
        name: record.name.map(|name| name.expose().to_owned()),
        contact: record.contact.map(|contact| contact.expose().to_owned()),
        enrolled_at: record.enrolled_at,
        sent: record.sent,
        last_used_at: record.last_used_at,
        per_minute: record.per_minute,
        turn: record.turn,
        suspension: record
            .suspension
            .map(|Suspension { until, reason }| SuspensionView { until, reason }),
        ended,
        generation,
    }
}

fn invite_view(invite: &Invite) -> InviteView {
    let id = invite
        .hash
        .0
        .iter()
        .take(INVITE_ID_BYTES)
        .fold(String::new(), |mut id, byte| {
            // Writing to a string can't fail.
            let _ = write!(id, "{byte:02x}");
            id
        });
    InviteView {
        id,
        created_at: invite.created_at,
        expires_at: invite.expires_at,
    }
}

#[cfg(test)]
mod tests;
