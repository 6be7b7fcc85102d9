//! What the operator does to instances, for the admin routes. The registry is told by the caller
//! (`Registry::refresh`) after each change to an instance.
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sovereign_relay_actors::{
    now::Now,
    ports::{StoreError, Suspension},
};
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};

use super::authority::Authority;
use crate::store::revocation::Cause;

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
    /// The number shared by enrollments of one address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u64>,
    /// Pushes `sent`.
    pub sent: u64,
    /// Absent: never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<UnixMillis>,
    /// Operator's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
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

/// Why an operator's wish was not carried out.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OperatorError {
    /// 409-ish: as many invites are outstanding as may be.
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
    pub async fn revoke(&self, _instance: InstanceId, _now: Now) -> Result<(), OperatorError> {
        unimplemented!()
    }

    /// Suspends an instance.
    pub async fn suspend(&self, _instance: InstanceId, _suspension: Suspension) -> Result<(), OperatorError> {
        unimplemented!()
    }

    /// Ends a suspension.
    pub async fn resume(&self, _instance: InstanceId) -> Result<(), OperatorError> {
        unimplemented!()
    }

    /// Sets the pushes a minute; `None` = default.
    pub async fn set_limit(
        &self,
        _instance: InstanceId,
        _per_minute: Option<u32>,
    ) -> Result<(), OperatorError> {
        unimplemented!()
    }

    /// A page of records in the order of ids, after `after`; at most [`crate::store::RECORDS_PAGE`].
    pub async fn list(
        &self,
        _after: Option<InstanceId>,
        _limit: usize,
    ) -> Result<Vec<InstanceView>, OperatorError> {
        unimplemented!()
    }

    /// One instance; `None` when neither a record nor an entry of the revocation list names it.
    pub async fn show(&self, _instance: InstanceId) -> Result<Option<InstanceView>, OperatorError> {
        unimplemented!()
    }

    /// Makes an invite. It is shown once, here.
    pub async fn create_invite(
        &self,
        _ttl: Duration,
        _now: Now,
    ) -> Result<(Redacted, InviteView), OperatorError> {
        unimplemented!()
    }

    /// The outstanding invites.
    pub async fn list_invites(&self, _now: Now) -> Result<Vec<InviteView>, OperatorError> {
        unimplemented!()
    }

    /// The revocation list as JSON.
    pub fn export_revocations(&self) -> Vec<u8> {
        unimplemented!()
    }

    /// Joins an export into the list; says how many entries it had.
    pub async fn import_revocations(&self, _json: &[u8]) -> Result<usize, ImportError> {
        unimplemented!()
    }
}
