//! The one door to instance keys: verifies them, hands them out, replaces them, takes them back.
//!
//! Called by the extractors (every request), by the enrollment routes, and, for what the operator does, by the
//! admin routes (`operator.rs`). Keys are checked by `keys.rs` and the list of `revocations.rs`, both in memory.
//!
//! Invariant: whatever makes a key invalid is durable before it is in memory, and in memory before it is
//! acknowledged; whatever hands a key out is durable before the key is.

use std::{net::IpAddr, sync::Arc};

use sovereign_relay_actors::{
    now::Now,
    ports::{Entropy, StoreError},
};
use sovereign_relay_protocol::{
    enroll::{EnrollAnswer, EnrollRequest, RotateAnswer, RotateRequest},
    id::InstanceId,
    limits::ROTATION_GRACE_SECONDS,
    redacted::Redacted,
};

use super::{
    derived::{DerivedKeys, invite_hash},
    error::{EnrollError, KeyError, RotateError, WithdrawError},
    keys::{KeyRing, Secrets},
    revocations::{Ask, Check, Revocations, Rotation, decide},
    tickets::Tickets,
};
use crate::{
    config::EnrollmentMode,
    store::{
        Enrolled, InviteHash, NewEnrollment, Store, Swap,
        revocation::{Cause, Entry, Gone, Kid, State},
    },
};

/// Tries of a rotation that others' rotations of the same instance get in the way of.
const ROTATION_TRIES: usize = 8;

/// The holder of a valid key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Who.
    pub instance: InstanceId,
    /// `None`: a key of the earlier relay, which had no generations.
    pub generation: Option<u32>,
}

impl Caller {
    fn number(self) -> u32 {
        self.generation.unwrap_or(0)
    }
}

/// An enrollment as the HTTP layer hands it in.
#[derive(Clone, Debug)]
pub struct Enrollment {
    /// The body.
    pub request: EnrollRequest,
    /// `Authorization: Bearer <invite>`, if any.
    pub invite: Option<Redacted>,
    /// The client's address.
    pub address: IpAddr,
}

/// What an [`Authority`] is made of.
pub struct Parts {
    /// Records and the revocation list.
    pub store: Arc<dyn Store>,
    /// `None`: no secret is configured; keys and enrollments answer `not_configured`.
    pub secrets: Option<Secrets>,
    /// Who may enroll.
    pub mode: EnrollmentMode,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
}

/// Verifies keys, hands them out, replaces them, takes them back. One for the process, in an `Arc`.
pub struct Authority {
    pub(super) store: Arc<dyn Store>,
    pub(super) revocations: Arc<Revocations>,
    pub(super) entropy: Arc<dyn Entropy>,
    keys: Option<KeyRing>,
    derived: DerivedKeys,
    tickets: Tickets,
    mode: EnrollmentMode,
}

impl Authority {
    /// Loads the revocation list: no key is verified before it is in memory.
    pub async fn open(parts: Parts) -> Result<Self, StoreError> {
        let keys = parts.secrets.as_ref().map(KeyRing::new);
        let derived = DerivedKeys::new(parts.secrets.as_ref(), parts.entropy.as_ref());
        let tickets = Tickets::new(parts.secrets.as_ref(), parts.entropy.as_ref());
        let revocations = Arc::new(Revocations::new(parts.store.revocations().await?));
        Ok(Self {
            store: parts.store,
            revocations,
            entropy: parts.entropy,
            keys,
            derived,
            tickets,
            mode: parts.mode,
        })
    }

    /// Who may enroll.
    pub fn mode(&self) -> EnrollmentMode {
        self.mode
    }

    /// Verifies a key, without I/O.
    pub fn verify(&self, key: &Redacted, now: Now) -> Result<Caller, KeyError> {
        let caller = self.signed(key)?;
        self.still_holds(caller, now)?;
        Ok(caller)
    }

    /// Verifies a key for [`Authority::rotate`], which a key past its grace may still call to be given its
    /// successor again. For nothing else.
    pub fn verify_for_rotation(&self, key: &Redacted, now: Now) -> Result<Caller, KeyError> {
        let caller = self.signed(key)?;
        let entry = self.revocations.get(caller.instance);
        let ask = Ask {
            generation: caller.number(),
            grace_seconds: ROTATION_GRACE_SECONDS,
            now: now.unix,
            kids: &[],
        };
        match decide(entry.as_ref(), &ask) {
            Rotation::Fresh(_) | Rotation::Again(_) | Rotation::NotNewest => Ok(caller),
            Rotation::Revoked => Err(KeyError::Revoked),
        }
    }

    /// Enrolls an instance.
    pub async fn enroll(&self, enrollment: Enrollment, now: Now) -> Result<EnrollAnswer, EnrollError> {
        let invite = match self.mode {
            EnrollmentMode::Open => None,
            EnrollmentMode::Invite => Some(presented(enrollment.invite.as_ref())?),
            EnrollmentMode::Closed => return Err(EnrollError::Closed),
        };
        let keys = self.keys.as_ref().ok_or(EnrollError::NotConfigured)?;
        let instance = InstanceId::from_random(self.random());
        let key = keys.sign(instance, 0, now.unix.seconds())?;
        let new = NewEnrollment {
            instance,
            name: enrollment.request.name,
            contact: enrollment.request.contact,
            at: now.unix,
            address: self.derived.address_hash(enrollment.address).host,
            fresh_group: u64::from_be_bytes(self.random()),
            invite,
        };
        match self.store.enroll(new).await? {
            Enrolled::InviteRefused => Err(EnrollError::InviteRefused),
            Enrolled::Made { .. } => {
                metrics::counter!("relay_enrollments_total").increment(1);
                tracing::info!(%instance, "enrolled");
                Ok(EnrollAnswer {
                    instance_id: instance,
                    instance_key: key.expose().to_owned(),
                })
            }
        }
    }

    /// Replaces an instance's key, or gives the one that replaced it again while that was not used.
    pub async fn rotate(
        &self,
        key: &Redacted,
        request: RotateRequest,
        now: Now,
    ) -> Result<RotateAnswer, RotateError> {
        let keys = self.keys.as_ref().ok_or(KeyError::NotConfigured)?;
        let caller = self.signed(key)?;
        if !self.revocations.has_room_for(caller.instance) {
            return Err(RotateError::ListFull);
        }
        let grace_seconds = request.grace_seconds.unwrap_or(ROTATION_GRACE_SECONDS);
        let ask = Ask {
            generation: caller.number(),
            grace_seconds,
            now: now.unix,
            kids: keys.kids(),
        };
        let entry = self.rotated(caller.instance, &ask).await?;
        let State::Rotated(rotated) = &entry.state else {
            return Err(KeyError::Revoked.into());
        };
        let new_key = keys.sign(caller.instance, rotated.newest, rotated.issued_at)?;
        Ok(RotateAnswer {
            instance_id: caller.instance,
            instance_key: new_key.expose().to_owned(),
            previous_valid_until: rotated.previous_valid_until(),
        })
    }

    /// The instance leaves: its keys are revoked, its record is erased. Tell the registry to refresh it.
    pub async fn withdraw(&self, caller: Caller, now: Now) -> Result<(), WithdrawError> {
        if !self.revocations.has_room_for(caller.instance) {
            return Err(WithdrawError::ListFull);
        }
        self.end(caller.instance, Cause::Withdrawn, now, true).await?;
        tracing::info!(instance = %caller.instance, "withdrawn");
        Ok(())
    }

    /// Whether there is an enrollment secret; without one `/readyz` says so.
    pub fn is_configured(&self) -> bool {
        self.keys.is_some()
    }

    /// The keys derived from the enrollment secret (from a random one where there is none).
    pub fn derived(&self) -> &DerivedKeys {
        &self.derived
    }

    /// Signs and verifies tickets.
    pub fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    /// Whether an instance was revoked or has withdrawn: for tickets, which no rotation of its keys touches.
    pub fn is_gone(&self, instance: InstanceId) -> bool {
        self.revocations
            .get(instance)
            .is_some_and(|entry| matches!(entry.state, State::Gone(_)))
    }

    /// Whether a key that was verified holds still: for work that goes on after its request began.
    pub fn still_holds(&self, caller: Caller, now: Now) -> Result<(), KeyError> {
        match self.revocations.check(caller.instance, caller.number(), now.unix) {
            Check::Valid => Ok(()),
            Check::Revoked => Err(KeyError::Revoked),
        }
    }

    /// Returns when a new key was used for the first time: call [`Authority::save_first_uses`].
    pub async fn first_use(&self) {
        self.revocations.first_use().await;
    }

    /// Writes which new keys were used: from then on no replica and no later start hands them out again. What can't be
    /// written waits for the next call.
    pub async fn save_first_uses(&self) {
        let used = self.revocations.take_unsaved();
        if used.is_empty() {
            return;
        }
        if let Err(error) = self.store.join_revocations(used.clone(), false).await {
            tracing::warn!(%error, "could not save that new keys were used, trying again within a minute");
            self.revocations.put_back(used);
        }
    }

    /// One bounded step of upkeep: what was not saved yet, and what has lapsed. Once a minute.
    pub async fn maintain(&self, now: Now) {
        self.save_first_uses().await;
        match self.store.purge(now.unix, self.kids().to_vec()).await {
            Ok(purged) => {
                self.revocations.forget(&purged.revocations);
                let (records, invites, groups) = (purged.records, purged.invites, purged.groups);
                let revocations = purged.revocations.len();
                tracing::debug!(records, invites, groups, revocations, "forgot what has lapsed");
            }
            Err(error) => tracing::warn!(%error, "could not forget what has lapsed"),
        }
        metrics::gauge!("relay_revocations").set(f64::from(
            u32::try_from(self.revocations.len()).unwrap_or(u32::MAX),
        ));
    }

    /// Ends an instance: in the store, then in memory.
    pub(super) async fn end(
        &self,
        instance: InstanceId,
        cause: Cause,
        now: Now,
        erase: bool,
    ) -> Result<(), StoreError> {
        let entry = Entry {
            kids: self.kids().to_vec(),
            state: State::Gone(Gone { at: now.unix, cause }),
        };
        self.take_in(vec![(instance, entry)], erase).await
    }

    /// Joins entries into the store and then into memory.
    pub(super) async fn take_in(
        &self,
        entries: Vec<(InstanceId, Entry)>,
        erase: bool,
    ) -> Result<(), StoreError> {
        let (store, revocations) = (self.store.clone(), self.revocations.clone());
        to_the_end(async move {
            store.join_revocations(entries.clone(), erase).await?;
            entries
                .iter()
                .for_each(|(instance, entry)| revocations.join(*instance, entry));
            Ok(())
        })
        .await
    }

    pub(super) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }

    pub(super) fn kids(&self) -> &[Kid] {
        self.keys.as_ref().map_or(&[], KeyRing::kids)
    }

    fn signed(&self, key: &Redacted) -> Result<Caller, KeyError> {
        let keys = self.keys.as_ref().ok_or(KeyError::NotConfigured)?;
        let caller = keys.verify(key).ok_or(KeyError::Unauthorized)?;
        if self.store.is_unreadable(caller.instance) {
            return Err(KeyError::Unreadable);
        }
        Ok(caller)
    }

    /// The entry after the rotation, written. Another's change in between is taken in and decided on anew.
    async fn rotated(&self, instance: InstanceId, ask: &Ask<'_>) -> Result<Entry, RotateError> {
        let mut expected = self.revocations.get(instance);
        for _ in 0..ROTATION_TRIES {
            let new = match decide(self.revocations.get(instance).as_ref(), ask) {
                Rotation::Fresh(entry) | Rotation::Again(entry) => entry,
                Rotation::NotNewest => return Err(RotateError::NotNewest),
                Rotation::Revoked => return Err(KeyError::Revoked.into()),
            };
            match self.swap(instance, expected, new.clone()).await? {
                Swap::Done => return Ok(new),
                Swap::Changed(present) => expected = present,
            }
        }
        Err(StoreError("the revocation entry keeps changing".to_owned()).into())
    }

    /// Swaps an entry in the store; what is there afterwards is taken into memory.
    async fn swap(
        &self,
        instance: InstanceId,
        expected: Option<Entry>,
        new: Entry,
    ) -> Result<Swap, StoreError> {
        let (store, revocations) = (self.store.clone(), self.revocations.clone());
        to_the_end(async move {
            let swap = store.swap_revocation(instance, expected, new.clone()).await?;
            match &swap {
                Swap::Done => revocations.join(instance, &new),
                Swap::Changed(present) => present.iter().for_each(|entry| revocations.join(instance, entry)),
            }
            Ok(swap)
        })
        .await
    }
}

/// Runs `work` to its end even if the caller hangs up meanwhile: memory must follow what the store has done. The
/// task needs no other owner, since it ends with the store's answer, at the latest when the store closes.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::spawn(work)
        .await
        .map_err(|error| StoreError(error.to_string()))?
}

fn presented(invite: Option<&Redacted>) -> Result<InviteHash, EnrollError> {
    invite.map(invite_hash).ok_or(EnrollError::InviteRefused)
}

#[cfg(test)]
pub(crate) mod tests;
