//! The relays of this instance: which one a registration gets, and a key that works at each.
//!
//! Called by the registration routes ([`Relays::current`]), the fan-out and the signaling helper ([`Relays::call`]) and
//! the admin ([`Relays::status`], [`Relays::rotate`], [`Relays::resume`]).
//!
//! ```text
//! call(url): row of push_relays -> state::Enrollment::need -> the key | enroll | wait | stop
//!            unauthorized or revoked -> the row -> once more with what it then says
//! ```
//!
//! Keys are in the store alone and are read for each use, so that all processes on one database use the same one. A
//! change is written only where the row is still as it was read: of two that enroll at once, one key is kept.

mod error;
mod record;
pub(crate) mod state;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sovereign_relay_client::{
    http::{
        Instance, InstanceKey, Relay, Rotation,
        error::{CallError, Refusal, SetupError},
    },
    protocol::{enroll::EnrollRequest, error::ErrorCode, redacted::Redacted},
    trust::Trust,
};
use tracing::{error, info, warn};

pub use self::error::{RelayCallError, RelayUnavailable, RotateError};
use self::{
    error::not_enrolled,
    state::{Credential, Enrollment, Need},
};
use crate::{
    clock::Clock,
    config::RelayChoice,
    entropy::random_bytes,
    store::{RelayRow, RelayState, Store, StoreError},
};

/// Relays whose connections are kept. An operator changes the relay a few times in the life of an instance.
const KEPT_RELAYS: usize = 64;
/// Keys that are tried for one call: the one at hand, the one before a rotation, a new one. Then it waits.
const KEYS: usize = 3;
/// Looks at the row before giving up for the moment: each one but the last was outrun by another process.
const LOOKS: usize = 4;

/// Times that a rotation is asked for while its answers are lost: the relay gives the same key again.
const ROTATIONS: usize = 3;

/// What this instance tells a relay when it enrolls.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// What it calls itself.
    pub name: Option<Redacted>,
    /// Its operator's mail address.
    pub contact: Option<Redacted>,
    /// For a relay that enrolls by invitation only.
    pub invite: Option<Redacted>,
}

/// All relays that this instance uses or has used.
pub struct Relays {
    store: Store,
    choice: Mutex<RelayChoice>,
    trust: Trust,
    identity: Identity,
    clock: Clock,
    kept: Mutex<HashMap<String, Arc<Kept>>>,
}

/// A relay's connections, and the right to enroll there.
struct Kept {
    relay: Relay,
    enrolling: tokio::sync::Mutex<()>,
}

/// A relay and the key to use.
struct Keyed {
    instance: Instance,
    key: InstanceKey,
    unproven: bool,
}

/// How this instance stands with a relay, for the admin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayStatus {
    /// The relay's address.
    pub relay_url: String,
    /// Whether new registrations get it.
    pub current: bool,
    /// Who this instance is there.
    pub instance_id: Option<String>,
    /// How it stands.
    pub state: RelayState,
    /// When the key was given, in Unix seconds.
    pub enrolled_at: Option<u64>,
    /// When the next enrollment may be, in Unix seconds; 0 where none is needed.
    pub next_attempt_at: u64,
    /// One sentence.
    pub note: String,
}

impl Relays {
    /// All relays, with `choice` for new registrations.
    pub fn new(store: Store, choice: RelayChoice, trust: Trust, identity: Identity) -> Self {
        Self {
            store,
            choice: Mutex::new(choice),
            trust,
            identity,
            clock: Clock::system(),
            kept: Mutex::default(),
        }
    }

    /// With another clock than the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The relay that new registrations get; `None` when it is off.
    pub fn current(&self) -> Option<String> {
        self.choice().url().map(str::to_owned)
    }

    /// Another one from now on, or none. What is under way ends as it began.
    pub fn choose(&self, choice: RelayChoice) {
        let mut current = self.choice();
        if *current != choice {
            info!(relay = %choice, "another relay is chosen");
            *current = choice;
        }
    }

    /// Which certificates relays are believed by.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Calls the relay at `url` with a key, enrolling first where that is needed and allowed. Where the key is refused,
    /// the call is made once more with what there is instead.
    pub async fn call<T, F>(&self, url: &str, call: impl Fn(Instance) -> F) -> Result<T, RelayCallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        for _ in 0..KEYS {
            let keyed = self.keyed(url).await?;
            match call(keyed.instance.clone()).await {
                Ok(answer) => {
                    Self::note(self.worked(url, &keyed).await);
                    return Ok(answer);
                }
                Err(CallError::Refused(refusal)) if is_of_the_key(&refusal) => {
                    self.refused(url, &keyed, &refusal)
                        .await
                        .map_err(RelayUnavailable::from)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let until = self.clock.seconds() + 1;
        Err(RelayUnavailable::BackingOff { until }.into())
    }

    /// Asks for a new key. It is used from then on, and the old one kept until it has worked. After an error ask again
    /// within a day: see [`RotateError`].
    pub async fn rotate(&self, url: &str) -> Result<(), RotateError> {
        let (old, rotation) = self
            .call(url, |instance| async move {
                let rotation = rotation(&instance).await?;
                Ok((instance, rotation))
            })
            .await?;
        let new = Credential {
            instance_id: rotation.instance_id,
            key: rotation.instance_key,
        };
        for _ in 0..LOOKS {
            let (row, state) = self.read(url).await?;
            let next = state.rotated(old.key(), new.clone());
            // Of two that rotate at once, both are given the same key.
            if state.uses(&new.key) || self.change(url, row.as_ref(), &state, &next, "").await? {
                info!(relay = url, "key rotated");
                return Ok(());
            }
        }
        Err(RotateError::Outrun)
    }

    /// The admin wants to be enrolled again: after a revocation, or without waiting.
    pub async fn resume(&self, url: &str) -> Result<(), StoreError> {
        let (row, state) = self.read(url).await?;
        self.change(url, row.as_ref(), &state, &state.resumed(), "")
            .await
            .map(|_| ())
    }

    /// How things stand with each relay.
    pub async fn status(&self) -> Result<Vec<RelayStatus>, StoreError> {
        let rows = self.store.relays().await?;
        let current = self.current();
        let status = |row: RelayRow| RelayStatus {
            current: current.as_ref() == Some(&row.relay_url),
            relay_url: row.relay_url,
            instance_id: row.instance_id,
            state: row.state,
            enrolled_at: row.enrolled_at,
            next_attempt_at: row.next_attempt_at,
            note: row.note,
        };
        Ok(rows.into_iter().map(status).collect())
    }

    /// A key to use, or why there is none.
    async fn keyed(&self, url: &str) -> Result<Keyed, RelayUnavailable> {
        if *self.choice() == RelayChoice::Off {
            return Err(RelayUnavailable::Off);
        }
        let kept = self.kept(url)?;
        for _ in 0..LOOKS {
            let (_, state) = self.read(url).await?;
            match state.need(self.clock.seconds()) {
                Need::Use(Credential { key, .. }) => {
                    return Ok(Keyed {
                        instance: kept.relay.instance(key.clone()),
                        key,
                        unproven: state.is_unproven(),
                    });
                }
                Need::Wait { until } => return Err(RelayUnavailable::BackingOff { until }),
                Need::Stop => return Err(RelayUnavailable::Revoked),
                Need::Enroll => self.enroll(url, &kept).await?,
            }
        }
        let until = self.clock.seconds() + 1;
        Err(RelayUnavailable::BackingOff { until })
    }

    async fn worked(&self, url: &str, keyed: &Keyed) -> Result<(), StoreError> {
        if !keyed.unproven {
            return Ok(());
        }
        let (row, state) = self.read(url).await?;
        self.change(url, row.as_ref(), &state, &state.worked(&keyed.key), "")
            .await
            .map(|_| ())
    }

    async fn refused(&self, url: &str, keyed: &Keyed, refusal: &Refusal) -> Result<(), StoreError> {
        let (row, state) = self.read(url).await?;
        if refusal.code == Some(ErrorCode::Revoked) {
            let note = "the relay has revoked this instance: nothing is sent until an admin resumes it";
            let next = state.revoked(&keyed.key);
            if self.change(url, row.as_ref(), &state, &next, note).await? {
                error!(
                    relay = url,
                    "the relay has revoked this instance, pushes wait for an admin"
                );
            }
        } else {
            let note = "the relay does not know this instance's key";
            let next = state.unauthorized(&keyed.key, self.clock.seconds(), draw());
            if self.change(url, row.as_ref(), &state, &next, note).await? {
                warn!(relay = url, "the relay does not know this instance's key");
            }
        }
        Ok(())
    }

    /// What is kept is behind by one answer if the database fails; the next answer says the same again.
    fn note(noted: Result<(), StoreError>) {
        if let Err(error) = noted {
            warn!(%error, "the standing with a relay could not be kept");
        }
    }

    async fn enroll(&self, url: &str, kept: &Kept) -> Result<(), StoreError> {
        let _one_at_a_time = kept.enrolling.lock().await;
        let (row, state) = self.read(url).await?;
        let now = self.clock.seconds();
        if state.need(now) != Need::Enroll {
            return Ok(());
        }
        let claimed = state.claimed(now);
        if !self
            .change(url, row.as_ref(), &state, &claimed, "enrolling")
            .await?
        {
            return Ok(());
        }
        let (next, note) = self.enrolled(url, kept, &claimed).await;
        let row = record::row(url, row.as_ref(), &claimed, "", now);
        self.change(url, Some(&row), &claimed, &next, note)
            .await
            .map(|_| ())
    }

    async fn enrolled(&self, url: &str, kept: &Kept, claimed: &Enrollment) -> (Enrollment, &'static str) {
        let request = EnrollRequest {
            name: self.identity.name.clone(),
            contact: self.identity.contact.clone(),
        };
        match kept.relay.enroll(&request, self.identity.invite.as_ref()).await {
            Ok(enrollment) => {
                info!(relay = url, instance = %enrollment.instance_id, "enrolled");
                let credential = Credential {
                    instance_id: enrollment.instance_id,
                    key: enrollment.instance_key,
                };
                (claimed.enrolled(credential), "")
            }
            Err(error) => {
                warn!(relay = url, %error, "the relay did not enroll this instance");
                let retry_after = error.retry_after().as_ref().map(Duration::as_secs);
                let failed = claimed.failed(self.clock.seconds(), retry_after, draw());
                (failed, not_enrolled(&error))
            }
        }
    }

    async fn read(&self, url: &str) -> Result<(Option<RelayRow>, Enrollment), StoreError> {
        let row = self.store.relay(url).await?;
        let state = record::enrollment(row.as_ref());
        Ok((row, state))
    }

    /// Writes `next` unless another process has changed what was read, or there is no change.
    async fn change(
        &self,
        url: &str,
        read: Option<&RelayRow>,
        state: &Enrollment,
        next: &Enrollment,
        note: &str,
    ) -> Result<bool, StoreError> {
        if state == next {
            return Ok(false);
        }
        let row = record::row(url, read, next, note, self.clock.seconds());
        self.store.replace_relay(&row, read).await
    }

    fn choice(&self) -> MutexGuard<'_, RelayChoice> {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self, url: &str) -> Result<Arc<Kept>, SetupError> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = all.get(url) {
            return Ok(Arc::clone(kept));
        }
        let kept = Arc::new(Kept {
            relay: Relay::new(url, &self.trust)?,
            enrolling: tokio::sync::Mutex::default(),
        });
        if all.len() >= KEPT_RELAYS {
            // What is in use has its own handle; the rest connects anew.
            all.clear();
        }
        all.insert(url.to_owned(), Arc::clone(&kept));
        Ok(kept)
    }
}

/// The relay's new key may be under way when a connection is lost, and the old one ends in a day.
async fn rotation(instance: &Instance) -> Result<Rotation, CallError> {
    for _ in 1..ROTATIONS {
        match instance.rotate(None).await {
            Err(CallError::NoAnswer(error)) => warn!(%error, "a rotation was not answered"),
            answered => return answered,
        }
    }
    instance.rotate(None).await
}

fn is_of_the_key(refusal: &Refusal) -> bool {
    matches!(refusal.code, Some(ErrorCode::Unauthorized | ErrorCode::Revoked))
}

fn draw() -> u64 {
    u64::from_le_bytes(random_bytes())
}
