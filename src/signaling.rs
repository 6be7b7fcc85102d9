//! Sessions as the API makes, shows and ends them: ids, tickets, and who is told.
//!
//! ```text
//! create -> permits (budget, suspension, TURN) -> id (random, or HMAC of the rendezvous) -> store -> tickets
//!                                                    several secrets: of them, the one under which a session lives
//! end    -> store -> connections of this replica, closed before the answer
//! ```
//!
//! Called by `http/sessions.rs` and by the routes that revoke an instance. Invariant: what was ended is gone from the
//! store before its connections are, and its connections write nothing more before the caller is told, even if that
//! caller hangs up.

use std::{sync::Arc, time::Duration};

use metrics::counter;
use sovereign_relay_actors::{
    instance::signal::{Admitted, SessionRefusal, TurnFor},
    ports::{Entropy, StoreError},
    session::{
        port::{Creation, Incarnation, NewSession, Place, SessionStore, Settings},
        registry::Sessions,
    },
};
use sovereign_relay_protocol::{
    capabilities::Durability,
    id::InstanceId,
    redacted::Redacted,
    signal::{
        close::CloseCode,
        id::{SessionId, Slot},
        session::{SessionRequest, SessionView, Tickets},
    },
    time::UnixMillis,
};
use url::Url;

use crate::{
    auth::{Authority, TicketClaims, tickets::SignError},
    limit::Permits,
};

/// The signaling half. One for the process.
pub struct Signaling {
    /// Where sessions are kept.
    pub store: Arc<dyn SessionStore>,
    /// What an acknowledgement survives.
    pub durability: Durability,
    /// The connections of this replica.
    pub sessions: Sessions,
    /// What instances may do.
    pub permits: Arc<dyn Permits>,
    /// Whose peers get TURN credentials.
    pub turn_for: TurnFor,
    /// Keys.
    pub authority: Arc<Authority>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The URL that instances know the relay by; without one it is taken from each request.
    pub public_url: Option<Url>,
}

/// A session that an instance has a place in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Made now, or found at its rendezvous.
    pub is_new: bool,
    /// Which.
    pub id: SessionId,
    /// When it ends.
    pub expires_at: UnixMillis,
    /// The instance's own.
    pub tickets: Tickets,
}

/// Why there is no session, or none for this instance.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The instance may not.
    #[error(transparent)]
    Refused(#[from] SessionRefusal),
    /// 409.
    #[error("two other instances have met at this rendezvous")]
    Full,
    /// 409.
    #[error("the session at this rendezvous was made with another e2e")]
    Conflict,
    /// 429.
    #[error("this instance has as many live sessions as it may; end some, or let them expire")]
    TooMany,
    /// 503.
    #[error("too many messages wait at this relay for new sessions to be made")]
    Overloaded,
    /// 503.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// 500.
    #[error(transparent)]
    Ticket(#[from] SignError),
}

impl Signaling {
    /// Makes a session, or finds the one at a rendezvous.
    pub async fn create(&self, instance: InstanceId, request: SessionRequest) -> Result<Opened, CreateError> {
        let opened = self.open(instance, request).await;
        counter!("relay_session_requests_total", "outcome" => outcome(&opened)).increment(1);
        opened
    }

    /// A session as one of its instances may see it.
    pub async fn view(&self, id: SessionId, instance: InstanceId) -> Result<Option<SessionView>, StoreError> {
        self.store.view(id, instance).await
    }

    /// Ends a session for one of its instances; `false`: it has none of that id.
    pub async fn end(&self, id: SessionId, instance: InstanceId) -> Result<bool, StoreError> {
        let (store, sessions) = (self.store.clone(), self.sessions.clone());
        to_the_end(async move {
            let was_there = store.remove(id, instance).await?;
            if was_there {
                sessions.end(id, CloseCode::SessionOver, None).await;
            }
            Ok(was_there)
        })
        .await
        .unwrap_or_else(|| Err(StoreError("ending a session panicked".to_owned())))
    }

    /// Closes the connections of an instance that was revoked; its tickets are refused already.
    pub async fn end_instance(&self, instance: InstanceId) {
        let sessions = self.sessions.clone();
        to_the_end(async move { sessions.end_instance(instance).await }).await;
    }

    async fn open(&self, instance: InstanceId, request: SessionRequest) -> Result<Opened, CreateError> {
        let admitted = self.permits.admit_session(instance, self.turn_for).await?;
        let id = match &request.rendezvous {
            Some(rendezvous) => self.meeting_point(rendezvous).await?,
            None => SessionId::from_bytes(self.random()),
        };
        let new = NewSession {
            id,
            incarnation: Incarnation(u64::from_be_bytes(self.random())),
            instance,
            is_rendezvous: request.rendezvous.is_some(),
            settings: Settings {
                e2e: request.e2e,
                turn: request.turn,
            },
            life: Duration::from_secs(request.ttl_seconds.into()),
        };
        let (is_new, place) = match self.store.create(new).await? {
            Creation::Made(place) => (true, place),
            Creation::Joined(place) => (false, place),
            Creation::Full => return Err(CreateError::Full),
            Creation::Conflict => return Err(CreateError::Conflict),
            Creation::TooMany => return Err(CreateError::TooMany),
            Creation::Overloaded => return Err(CreateError::Overloaded),
        };
        Ok(Opened {
            is_new,
            id,
            expires_at: place.expires_at,
            tickets: self.tickets(id, instance, place, admitted)?,
        })
    }

    /// The session that lives at a rendezvous, under whichever secret's id a replica made it; else the current one's. A
    /// session that ends just then is made anew under the same id, and found by whoever has that secret, too.
    async fn meeting_point(&self, rendezvous: &Redacted) -> Result<SessionId, StoreError> {
        let keys = self.authority.derived();
        for id in keys.session_ids_to_look_at(rendezvous) {
            if self.store.lives(id).await? {
                return Ok(id);
            }
        }
        Ok(keys.session_id(rendezvous))
    }

    /// Of the instance's own slot, or of both where both are its own.
    /// Whether it may have TURN credentials stands in its tickets and not in the session, which two may share.
    fn tickets(
        &self,
        session: SessionId,
        instance: InstanceId,
        place: Place,
        admitted: Admitted,
    ) -> Result<Tickets, SignError> {
        let ticket = |slot: Slot| {
            let claims = TicketClaims {
                session,
                incarnation: place.incarnation,
                slot,
                expires_at: place.expires_at,
                instance,
                may_turn: admitted.turn,
            };
            let own = place.slot.is_none_or(|own| own == slot);
            own.then(|| self.authority.tickets().sign(&claims)).transpose()
        };
        Ok(Tickets {
            a: ticket(Slot::A)?,
            b: ticket(Slot::B)?,
        })
    }

    fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }
}

/// Runs `work` to its end even if the caller hangs up meanwhile. The task needs no other owner: each write of a
/// connection that it waits for has a time limit.
async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    tokio::spawn(work).await.ok()
}

fn outcome(opened: &Result<Opened, CreateError>) -> &'static str {
    match opened {
        Ok(Opened { is_new: true, .. }) => "made",
        Ok(Opened { is_new: false, .. }) => "joined",
        Err(CreateError::Refused(SessionRefusal::Suspended { .. })) => "suspended",
        Err(CreateError::Refused(SessionRefusal::TooOften { .. })) => "too_often",
        Err(CreateError::Refused(SessionRefusal::Draining)) => "draining",
        Err(CreateError::Full) => "full",
        Err(CreateError::Conflict) => "conflict",
        Err(CreateError::TooMany) => "too_many",
        Err(CreateError::Overloaded) => "overloaded",
        Err(CreateError::Refused(SessionRefusal::Unavailable) | CreateError::Store(_)) => "unavailable",
        Err(CreateError::Ticket(_)) => "failed",
    }
}

#[cfg(test)]
mod tests;
