//! What sessions need of the place that keeps them, whether that is this process or a server that replicas share. One
//! contract suite for all of them: `src/store/sessions/contract.rs`.
//!
//! A slot's connection has an epoch: whoever bound last has the highest, and what an earlier one still asks is
//! [`Gone::Fenced`]. What a store over a network must hold, too:
//!
//! - Each operation is atomic and its time is the store's own: no other operation of the session falls in between.
//! - An epoch is higher than any before it of the same session id, in earlier lives of the session as well.
//! - `Ok` means done: it would survive whatever the store promises to survive. [`Gone::Unavailable`] means that it may
//!   have been done: the caller asks again, and `bind`, `append`, `trim` and `unbind` asked twice do no harm.
//! - An operation whose future is dropped may still be done. Callers never rely on the opposite.
//! - Bytes are counted by [`counted_bytes`], exactly for one mailbox. Sums over sessions may lag by a second's traffic.

use std::time::Duration;

use futures_util::future::BoxFuture;
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        frame::{MESSAGE_ENVELOPE_BYTES, Opaque, PeerPresence},
        id::{SessionId, Slot},
        session::{EndToEnd, SessionView},
    },
    time::UnixMillis,
};
use thiserror::Error;

use crate::ports::StoreError;

/// What a message counts beyond its content, wherever waiting bytes are counted. An empty one is not free either: it
/// takes about this much memory, an [`Entry`] and its text's own allocation. It is also what the longest `msg` frame
/// adds, so that whatever fits a frame fits an empty mailbox that is no smaller.
pub const ENTRY_BYTES: usize = MESSAGE_ENVELOPE_BYTES;

/// Keyed hash of a client's connection secret: what is kept in its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectionHash(pub u128);

/// One life of a session. A rendezvous can give the same id to another session later; its tickets differ by this.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incarnation(pub u64);

/// What a session was made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Whether messages must look sealed.
    pub e2e: EndToEnd,
    /// Whether its peers are given TURN credentials, where their instance may have them.
    pub turn: bool,
}

/// A session that an instance asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewSession {
    /// Random, or an HMAC of the rendezvous.
    pub id: SessionId,
    /// Random. Ignored where the session is there already.
    pub incarnation: Incarnation,
    /// Who asks.
    pub instance: InstanceId,
    /// Whether the second slot is left for another instance that knows the same rendezvous.
    pub is_rendezvous: bool,
    /// How it should be.
    pub settings: Settings,
    /// How long it should live.
    pub life: Duration,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Creation {
    /// Made now.
    Made(Place),
    /// Was there, and the instance has a slot in it.
    Joined(Place),
    /// Two other instances have met there. 409 `session_full`.
    Full,
    /// Was there with another `e2e`. 409 `settings_conflict`.
    Conflict,
    /// The instance has as many live sessions as it may. 429 `rate_limited`.
    TooMany,
    /// All mailboxes together hold as much as they may. 503 `overloaded`.
    Overloaded,
}

/// An instance's place in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Which life of the session.
    pub incarnation: Incarnation,
    /// When it ends.
    pub expires_at: UnixMillis,
    /// Its slot; `None` = both.
    pub slot: Option<Slot>,
}

/// A connection that asks for a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bind {
    /// Of the ticket.
    pub slot: Slot,
    /// Of the ticket.
    pub incarnation: Incarnation,
    /// The client's secret, hashed.
    pub connection: ConnectionHash,
    /// Grows with each dial of one secret.
    pub attempt: u64,
    /// Highest `seq` that the client processed.
    pub last: u64,
}

/// A slot as its new connection finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Fences earlier connections.
    pub epoch: u64,
    /// Page loads so far.
    pub generation: u32,
    /// Whether this is a new one.
    pub is_new_load: bool,
    /// The `n` expected next.
    pub next: u64,
    /// Highest `seq` trimmed.
    pub base: u64,
    /// The peer.
    pub peer: Presence,
    /// How the session was made.
    pub settings: Settings,
    /// The instance that the slot belongs to.
    pub instance: InstanceId,
    /// When the session ends.
    pub expires_at: UnixMillis,
    /// The same on the store's clock.
    pub expires_in: Duration,
}

/// A peer's presence, and when it changes by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Presence {
    /// What a client is told.
    pub told: PeerPresence,
    /// When to look again; `None` = it changes only by what the peer does.
    pub changes_in: Option<Duration>,
}

/// Why an operation found nothing to work on.
#[derive(Clone, Debug, Error)]
pub enum Gone {
    /// The session is over, or never was. 4404 at a bind, 4410 on a live connection.
    #[error("no such session")]
    NoSession,
    /// A newer connection has the slot. 4409.
    #[error("a newer connection has the slot")]
    Fenced,
    /// The store has lost something that it said before, as a copy may that took over. 4500: the client's resume tells
    /// whether it can go on.
    #[error("the store has lost what it said before")]
    Behind,
    /// Nobody knows whether it was done.
    #[error(transparent)]
    Unavailable(#[from] StoreError),
}

/// Why a connection doesn't get its slot.
#[derive(Clone, Debug, Error)]
pub enum BindRefusal {
    /// See [`Gone`].
    #[error(transparent)]
    Gone(#[from] Gone),
    /// A retired secret, or an attempt that doesn't grow. 4409.
    #[error("replaced by a newer connection")]
    Replaced,
    /// The client saw more than this session ever sent. 4404.
    #[error("the client knows another session")]
    BeyondSent,
    /// Too many page loads. 4429.
    #[error("too many page loads")]
    TooManyLoads,
    /// Too many resumes. 1013.
    #[error("too many resumes")]
    TooManyResumes,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Appended {
    /// Stored.
    Stored,
    /// Stored before.
    Duplicate,
    /// Its predecessor is missing. 4500.
    OutOfStep,
    /// No room for now.
    MailboxFull,
    /// The session has carried as many as it may. 4413.
    SessionTotal,
}

/// What became of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trimmed {
    /// Done, or done before.
    Trimmed,
    /// Nothing that high was ever sent. 4404.
    BeyondSent,
}

/// How a connection leaves its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// Its socket is gone; it may come back.
    Lost,
    /// It said goodbye.
    Bye,
}

/// What was read of a mailbox.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Page {
    /// In order.
    pub entries: Vec<Entry>,
    /// Whether nothing more waited when it was read.
    pub is_last: bool,
}

/// What waits in a mailbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Gapless for each receiver.
    pub seq: u64,
    /// The sender's generation.
    pub generation: u32,
    /// What it is.
    pub item: Item,
}

/// What an entry is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// A message.
    Message(Opaque),
    /// The sender has a new generation.
    NewLoad,
}

/// What a store that replicas share tells this one: what others did there. Each is only a hint to look at the store, so
/// that one too many does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// Something may wait for a slot.
    Mail(SessionId, Slot),
    /// The peer of a slot came or went, with what that left in the mailbox.
    Peer(SessionId, Slot),
    /// A connection elsewhere has the slot, by an epoch.
    Replaced(SessionId, Slot, u64),
    /// Anything may have happened anywhere: news were missed.
    Missed,
}

/// What a message counts towards the bytes that may wait: in its mailbox, of its instance, in all.
pub fn counted_bytes(content: &Opaque) -> usize {
    content.len().saturating_add(ENTRY_BYTES)
}

/// Keeps sessions.
pub trait SessionStore: Send + Sync + 'static {
    /// Makes a session, or finds the one at a rendezvous.
    fn create(&self, new: NewSession) -> BoxFuture<'static, Result<Creation, StoreError>>;

    /// Whether a session of this id lives, whoever's it is.
    fn lives(&self, id: SessionId) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// A session as one of its instances may see it.
    fn view(
        &self,
        id: SessionId,
        instance: InstanceId,
    ) -> BoxFuture<'static, Result<Option<SessionView>, StoreError>>;

    /// Ends a session for one of its instances; `false` where there is none. Everything of it is gone.
    fn remove(&self, id: SessionId, instance: InstanceId) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// Gives a slot to a connection. The one that had it is fenced from now on.
    fn bind(&self, id: SessionId, bind: Bind) -> BoxFuture<'static, Result<Bound, BindRefusal>>;

    /// Stores message `n` of a slot for the other one. Stored means: acknowledged may be said.
    fn append(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        n: u64,
        content: Opaque,
    ) -> BoxFuture<'static, Result<Appended, Gone>>;

    /// Forgets what waits for a slot, up to `seq`.
    fn trim(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        seq: u64,
    ) -> BoxFuture<'static, Result<Trimmed, Gone>>;

    /// What waits for a slot after `after`: in order, at least one entry if there is one, and as many more as fit
    /// into about `bytes`, counted likewise. [`Gone::Behind`] where nothing as high as `after` was ever read, or a message
    /// of this connection that was stored is not known.
    fn read(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Page, Gone>>;

    /// Whether the peer of `slot` is there.
    fn peer(&self, id: SessionId, slot: Slot) -> BoxFuture<'static, Result<Presence, Gone>>;

    /// A connection leaves, if the slot is still its own. When both have said goodbye the session ends soon.
    fn unbind(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        departure: Departure,
    ) -> BoxFuture<'static, Result<(), Gone>>;
}
