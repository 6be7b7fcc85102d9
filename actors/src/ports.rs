//! What the decisions need from outside, as traits. The root crate has the adapters, tests have doubles.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use sovereign_relay_protocol::{
    envelope::CollapseTag,
    id::InstanceId,
    platform::{Environment, Platform, Priority},
    push::Reason,
    redacted::Redacted,
    time::UnixMillis,
    token::{ChannelRule, TargetToken},
};
use tokio::sync::watch;
use uuid::Uuid;

use crate::{now::Now, push::TurnKey, wait::Wait};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// This moment.
    fn now(&self) -> Now;
}

/// Gives random bytes.
pub trait Entropy: Send + Sync + 'static {
    /// Fills `bytes` with cryptographically secure randomness.
    fn fill(&self, bytes: &mut [u8]);
}

/// A keyed hash of a device token: what limits, memories and fuses keep instead of the token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TokenHash(pub u128);

/// The verdict scope: guard and fuses judge within one of these and never across.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scope {
    /// Provider, environment, and topic or project: `apns/production/fs.sovereign.mobile`. Used as a metric label.
    pub name: Arc<str>,
    /// Grows with each reload of the credentials, which starts guard and fuses anew. Never the same for two sets of
    /// them and never back to an earlier one: what a call was sent under is told by it.
    pub generation: u64,
}

/// One push on its way to a provider.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Whose turn it has: a provider's client tells by it whether several are refused or one.
    pub sender: TurnKey,
    /// Platform, which also tells iOS from macOS at APNs.
    pub platform: Platform,
    /// APNs environment, defaulted.
    pub environment: Environment,
    /// The device's address.
    pub token: TargetToken,
    /// Opaque.
    pub payload: Redacted,
    /// How soon.
    pub priority: Priority,
    /// How long the provider may keep it.
    pub ttl_seconds: u32,
    /// Hashed collapse id.
    pub collapse: Option<CollapseTag>,
    /// `apns-id`, the same on every try of this push.
    pub message_id: Uuid,
    /// When everything must be over, on the monotonic clock.
    pub deadline: Duration,
}

/// How sure a provider's answer is that the device is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// The provider says so in words that mean nothing else.
    Certain,
    /// The same words also come when the relay or the instance is configured wrongly: the guard decides.
    Conditional,
}

/// What a provider client says of one push, before guard and fuses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Accepted.
    Sent {
        /// The provider's name of it.
        message_id: Option<String>,
    },
    /// The device seems to be gone.
    Gone {
        /// How sure.
        certainty: Certainty,
        /// One of the `invalid_token` reasons.
        reason: Reason,
        /// The provider's own timestamp (APNs), else the moment the call began.
        since: UnixMillis,
    },
    /// Anything else that was answered, or may have been accepted.
    Failed(Failure),
    /// No connection to the provider before the deadline; surely not accepted. 502 `send_failed`.
    Unreachable,
    /// No connection to a host that the caller named and that was never heard of as the provider: surely not accepted,
    /// and no news of the provider. 502 `send_failed`.
    HostUnreachable,
    /// Refused before any call: breaker open or queue full. 503 `overloaded`.
    Overloaded {
        /// Earliest useful retry.
        retry_after: Duration,
    },
}

/// A push that failed and may say more about the provider than about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// One of the `failed` reasons.
    pub reason: Reason,
    /// Whether the same push may succeed later.
    pub retryable: bool,
    /// The provider's own hint, if any.
    pub retry_after: Option<Duration>,
    /// What is to be held back until `retry_after` is over.
    pub hold: Hold,
    /// What the breaker learns.
    pub health: Health,
}

/// Whom a throttling answer concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Nobody.
    Nothing,
    /// Further pushes to this token.
    Token,
    /// Everything through this provider: answered `provider_throttled` until `retry_after` is over, then in
    /// fair turns at a reduced rate.
    Provider,
}

/// What one call tells the circuit breaker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// The provider is there: any answer but 5xx, 429 and other 4xx included.
    Answered,
    /// 5xx, timeout or transport error.
    Faulty,
    /// The connection was lost, which counts once per connection, whatever streams it carried.
    ConnectionLost {
        /// The provider client's number of the connection.
        connection: u64,
    },
    /// It says nothing of the provider: the caller named a host that was never heard of as the provider.
    Unknown,
}

/// One provider in one environment: APNs production, APNs sandbox, FCM, WNS.
pub trait PushProvider: Send + Sync + 'static {
    /// `apns-production`, `apns-sandbox`, `fcm`, `wns`: for metrics and logs.
    fn name(&self) -> &'static str;

    /// The verdict scope of pushes to `platform`, or nothing when there are no credentials for it
    /// (503 `platform_not_configured`).
    fn scope(&self, platform: Platform) -> Option<Scope>;

    /// How many calls it can usefully have under way now (APNs: what its connections' peers allow). The lane
    /// never has more under way and queues the rest in fair turns.
    fn capacity(&self) -> watch::Receiver<usize>;

    /// Whether a call of this push will show how the provider is. Not one to a host that only the caller vouches for:
    /// an open breaker does not wait for what becomes of it.
    fn can_probe(&self, _delivery: &Delivery) -> bool {
        true
    }

    /// Delivers one push. Retries inside as the contract says, ends by `delivery.deadline`, never panics on
    /// anything a provider sends.
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'static, Outcome>;
}

/// The providers of this relay.
#[derive(Clone)]
pub struct Providers {
    /// APNs production.
    pub apns_production: Arc<dyn PushProvider>,
    /// APNs sandbox.
    pub apns_sandbox: Arc<dyn PushProvider>,
    /// FCM.
    pub fcm: Arc<dyn PushProvider>,
    /// WNS.
    pub wns: Arc<dyn PushProvider>,
    /// `APNS_USE_SANDBOX`: where Apple pushes without `environment` go.
    pub default_environment: Environment,
    /// Hosts a channel URI may name.
    pub channel_rule: ChannelRule,
}

/// What is known of an instance when its actor starts, and again whenever the operator changes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// When it enrolled; `None` for a grown instance of the earlier relay without a record.
    pub enrolled_at: Option<UnixMillis>,
    /// Enrollments of one address within 24 h share this number, and a budget while they are young.
    pub group: Option<u64>,
    /// Pushes `sent` so far, as last written.
    pub sent: u64,
    /// Operator's limit in pushes a minute (and burst); `None` = default.
    pub per_minute: Option<u32>,
    /// The operator's word on TURN credentials; `None` = none was said.
    pub turn: Option<bool>,
    /// Suspended until, and why; `until` `None` = until the operator resumes it.
    pub suspension: Option<Suspension>,
}

/// A suspension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suspension {
    /// End; `None` = until the operator ends it.
    pub until: Option<UnixMillis>,
    /// For the operator, shown by the CLI.
    pub reason: String,
}

impl Suspension {
    /// Whether it lasts as long as another, or longer.
    pub fn outlasts(&self, other: &Self) -> bool {
        match (self.until, other.until) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(others)) => own >= others,
        }
    }
}

/// What instances' actors read and write of their records. Embedded now, Redis later; one contract suite.
pub trait InstanceStore: Send + Sync + 'static {
    /// The standing of an instance. `young_group` is the group of the caller's address, for a key that has
    /// neither a record nor the earlier relay's form.
    fn standing(&self, instance: InstanceId) -> BoxFuture<'static, Result<Option<Standing>, StoreError>>;

    /// Adds to the `sent` counter, notes the use (which keeps the record alive), best effort.
    fn note_use(
        &self,
        instance: InstanceId,
        sent: u64,
        at: UnixMillis,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Writes a suspension that the abuse policy decided.
    fn suspend(
        &self,
        instance: InstanceId,
        suspension: Suspension,
    ) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// The store could not do it. Logged with its cause where it is made; callers only learn that it failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("store unavailable: {0}")]
pub struct StoreError(pub String);

/// What one push takes of the budgets that instances share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedSpend {
    /// Of a young group's 1,200 a minute; `None` for a grown instance.
    pub group: Option<u64>,
    /// Of this token's 240 a minute over all instances.
    pub token: TokenHash,
}

/// What one push takes of the limits that replicas share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bill {
    /// Of this instance's budget.
    pub instance: InstanceId,
    /// Which is so many a minute.
    pub per_minute: u32,
    /// Of a young group's 1,200 a minute too; `None` for a grown instance.
    pub group: Option<u64>,
}

/// How a bill is paid.
pub enum Payment {
    /// Replicas share nothing: the actor's own budget holds, and [`SharedLimits::take`] for the group.
    Alone,
    /// Known at once.
    Now(Paid),
    /// Known soon: whoever implements it keeps the wait short, whatever is out of reach.
    Soon(BoxFuture<'static, Paid>),
}

/// Paid, or how long until it could be.
pub type Paid = Result<Receipt, Wait>;

/// What was taken to pay a bill. Dropped without [`Receipt::keep`], it goes back.
#[must_use = "what was taken goes back when this is dropped"]
pub struct Receipt(Option<Box<dyn FnOnce() + Send>>);

impl Receipt {
    /// `give_back` is called unless it is kept.
    pub fn new(give_back: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }

    /// The push goes its way.
    pub fn keep(mut self) {
        self.0 = None;
    }

    /// One receipt for both.
    pub fn and(mut self, mut other: Self) -> Self {
        let both = [self.0.take(), other.0.take()];
        Self::new(move || both.into_iter().flatten().for_each(|give_back| give_back()))
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}

/// Budgets shared by several instances' actors and by replicas.
pub trait SharedLimits: Send + Sync + 'static {
    /// Takes one of each budget, or of none. `Err` = when both would pass.
    fn take(&self, spend: SharedSpend, now: Now) -> Result<(), Wait>;
    /// The same question without taking, so that a refusal can name the moment when everything would pass.
    fn check(&self, spend: SharedSpend, now: Now) -> Result<(), Wait>;
    /// Pays what replicas share, before anything else is taken.
    fn pay(&self, _bill: Bill, _now: Now) -> Payment {
        Payment::Alone
    }
}
