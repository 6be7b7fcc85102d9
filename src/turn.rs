//! Credentials of the operator's TURN server (RFC 8656) that run out by themselves, as coturn's `use-auth-secret` and the
//! draft behind it (draft-uberti-behave-turn-rest-00) want them: the username is `<expiry>:<user>`, the credential its
//! HMAC-SHA1 under a secret that relay and TURN server share.
//!
//! Called through `app/gate.rs` for `welcome` and `ice`, in sessions that were made with TURN, for slots of an instance
//! that may have it (`actors/src/instance/signal.rs`). The TURN server looks at the expiry when it allocates, not
//! after: how long an allocation lives is its own setting (`deploy/turnserver.conf`).
//!
//! A slot that comes back within 30 s is given the same again ([`recent`]), so that no peer can use up what the instance
//! has for its other sessions.
//!
//! Invariant: the user is a pseudonym of one slot of one session, so that
//! the TURN server learns nothing of the instance, and its quotas for a user hold for one peer.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use metrics::counter;
use sha1::Sha1;
use sovereign_relay_actors::{
    limiter::{Limiter, Rate, Room, WhenFull},
    now::Now,
    ports::Receipt,
};
use sovereign_relay_protocol::{
    id::InstanceId,
    limits::TURN_SECONDS,
    redacted::Redacted,
    signal::{
        frame::IceServer,
        id::{SessionId, Slot},
    },
    time::UnixMillis,
};

use self::recent::Recent;
use crate::{
    auth::Authority,
    limit::{LeasedLimits, leases::Account},
};

mod recent;

/// Instances whose vends are counted, some 50 bytes each. Beyond, one that is not among them waits: credentials are a
/// help, and an open budget would not be one.
const ROOM: Room = Room {
    keys: 100_000,
    when_full: WhenFull::Refuse(Duration::from_secs(60)),
};

/// The operator's servers, and the secret shared with them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnServers {
    /// RFC 7064: no credentials needed.
    pub stun: Vec<String>,
    /// RFC 7065.
    pub turn: Vec<String>,
    /// Signs. During a rotation the TURN server also takes the earlier one.
    pub secret: Redacted,
}

/// STUN and TURN servers, as a peer is given them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ice {
    /// In the browser's shape; empty where there is nothing to give.
    pub servers: Vec<IceServer>,
    /// When the credentials end, if there are any.
    pub expires_at: Option<UnixMillis>,
}

impl TurnServers {
    /// Credentials for `user` from now on.
    pub fn vend(&self, user: &str, now: UnixMillis) -> Ice {
        let expiry = now.seconds().saturating_add(TURN_SECONDS);
        let username = format!("{expiry}:{user}");
        let credential = credential(&self.secret, &username);
        let open = IceServer {
            urls: self.stun.clone(),
            username: None,
            credential: None,
        };
        let closed = IceServer {
            urls: self.turn.clone(),
            username: Some(username),
            credential: Some(credential),
        };
        let servers = [open, closed]
            .into_iter()
            .filter(|server| !server.urls.is_empty())
            .collect();
        Ice {
            servers,
            expires_at: Some(UnixMillis(expiry.saturating_mul(1000))),
        }
    }
}

fn credential(secret: &Redacted, username: &str) -> String {
    // HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(secret.expose().as_bytes()) else {
        return String::new();
    };
    mac.update(username.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

/// Gives out credentials.
pub struct Turn {
    servers: ArcSwapOption<TurnServers>,
    vends: Limiter<InstanceId>,
    per_minute: u32,
    leases: Option<LeasedLimits>,
    recent: Mutex<Recent>,
    authority: Arc<Authority>,
}

impl Turn {
    /// Without servers, nobody gets any. `per_minute`: how often for each instance, at all replicas together where they
    /// share `leases`.
    pub fn new(
        servers: Option<TurnServers>,
        per_minute: u32,
        leases: Option<LeasedLimits>,
        authority: Arc<Authority>,
    ) -> Self {
        Self {
            servers: ArcSwapOption::from_pointee(servers),
            vends: Limiter::shared(Rate::per_minute(per_minute), ROOM),
            per_minute,
            leases,
            recent: Mutex::default(),
            authority,
        }
    }

    /// Credentials for a slot, on the budget of the instance that it belongs to: those of its last 30 s, or new ones.
    /// `Err` is when there are some again.
    pub async fn vend(
        &self,
        instance: InstanceId,
        session: SessionId,
        slot: Slot,
        now: Now,
    ) -> Result<Ice, Duration> {
        let is_new = self.servers.load().is_some() && !self.recent().knows(session, slot, now);
        let paid = match is_new {
            true => self.pay(instance, now).await?,
            false => None,
        };
        self.give(instance, session, slot, now, paid)
    }

    /// One of what all replicas may give, where they share.
    async fn pay(&self, instance: InstanceId, now: Now) -> Result<Option<Receipt>, Duration> {
        let Some(leases) = &self.leases else {
            return Ok(None);
        };
        // A flood is refused here and asks nobody.
        self.vends.check(&instance, now.mono)?;
        let account = Account::Turn(instance);
        leases.spend(account, self.per_minute, now).await.map(Some)
    }

    /// `paid` goes back where the slot was given credentials meanwhile, by another dial of the same client.
    fn give(
        &self,
        instance: InstanceId,
        session: SessionId,
        slot: Slot,
        now: Now,
        mut paid: Option<Receipt>,
    ) -> Result<Ice, Duration> {
        let Some(servers) = &*self.servers.load() else {
            return Ok(Ice::default());
        };
        let take = || {
            let taken = self.take(instance, now);
            if taken.is_ok() {
                paid.take().into_iter().for_each(Receipt::keep);
            }
            taken
        };
        let moment = self.recent().moment(session, slot, now, take)?;
        let user = self.authority.derived().turn_user(session, slot);
        Ok(servers.vend(&user, moment))
    }

    fn take(&self, instance: InstanceId, now: Now) -> Result<(), Duration> {
        let taken = self.vends.take(&instance, now.mono);
        let outcome = if taken.is_ok() { "given" } else { "too_often" };
        counter!("relay_turn_vends_total", "outcome" => outcome).increment(1);
        taken
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over other servers, or another secret of theirs.
    pub fn reload(&self, servers: Option<TurnServers>) {
        self.servers.store(servers.map(Arc::new));
    }

    /// Forgets instances whose budget is whole again, and slots that would be given new credentials. The owner calls it
    /// on a timer.
    pub fn clean(&self, now: Now) {
        self.vends.clean(now.mono);
        self.recent().clean(now);
    }
}

#[cfg(test)]
mod tests;
