//! The limits that replicas share, as the instances' actors ask for them: a table of [`Lease`]s and the calls they want.
//!
//! ```text
//! actor -> pay(bill) -> lease of the instance, lease of its group -> Payment::Now, in nearly all cases
//!                           | ask                                 -> Payment::Soon: waiters, first come first served
//!                           v
//!                       TokenSource (Redis), one call per account at a time, each with a time limit
//! ```
//!
//! Invariant: whoever waits is answered when the call is over, whatever became of it: after [`PATIENCE`] a call counts
//! as failed, and the account's local share decides. Budgets of single tokens are not shared (best effort): each
//! replica keeps its own.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, Entry};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join},
};
use sovereign_relay_actors::{
    now::Now,
    ports::{Bill, Clock, Paid, Payment, Receipt, SharedLimits, SharedSpend, StoreError},
    wait::{Limit, Wait},
};
use sovereign_relay_protocol::{id::InstanceId, limits::YOUNG_GROUP_PER_MINUTE};
use tokio::sync::oneshot;

use super::{
    EmbeddedLimits,
    lease::{Ask, Grant, Lease, Take},
};

/// Longest that a push waits for Redis: a hundred times what a healthy one needs, a fortieth of a push's deadline.
const PATIENCE: Duration = Duration::from_millis(250);
/// Accounts remembered, about 300 bytes each; one is forgotten within a minute of its last push. Beyond, further instances
/// are limited by their actor alone, as on a single node.
const ACCOUNTS: usize = 100_000;

/// Whose budget.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Account {
    /// An instance's.
    Instance(InstanceId),
    /// A young group's.
    Group(u64),
    /// An instance's, of sessions.
    Sessions(InstanceId),
    /// An instance's, of TURN credentials.
    Turn(InstanceId),
}

/// Where tokens come from.
pub trait TokenSource: Send + Sync + 'static {
    /// Takes tokens of an account, as many as are wanted and there.
    fn lease(&self, account: Account, ask: Ask) -> BoxFuture<'static, Result<Grant, StoreError>>;

    /// How many replicas are alive, this one included, as far as is known.
    fn replicas(&self) -> u32;
}

/// The limits of a replica.
#[derive(Clone)]
pub struct LeasedLimits {
    local: Arc<EmbeddedLimits>,
    table: Arc<Table>,
}

struct Table {
    accounts: DashMap<Account, Slot>,
    /// About how many there are: counting the map itself would lock all its parts.
    used: AtomicUsize,
    source: Arc<dyn TokenSource>,
    clock: Arc<dyn Clock>,
}

struct Slot {
    lease: Lease,
    /// Each is a push, which has one of its instance's slots.
    waiters: VecDeque<oneshot::Sender<Taken>>,
}

/// Taken of one account, or how long until it could be.
type Taken = Result<Receipt, Duration>;

/// One account's answer.
enum Answer {
    Known(Taken),
    Awaited(oneshot::Receiver<Taken>),
}

impl LeasedLimits {
    /// Nothing leased. `local` keeps what is not shared.
    pub fn new(local: Arc<EmbeddedLimits>, source: Arc<dyn TokenSource>, clock: Arc<dyn Clock>) -> Self {
        Self {
            local,
            table: Arc::new(Table {
                accounts: DashMap::new(),
                used: AtomicUsize::new(0),
                source,
                clock,
            }),
        }
    }

    /// Forgets accounts that are at rest. Call it every few seconds.
    pub fn clean(&self, now: Now) {
        let table = &self.table;
        table.accounts.retain(|_, slot| !slot.lease.is_idle(now.mono));
        table.used.store(table.accounts.len(), Ordering::Relaxed);
    }

    /// Takes one of a budget for which nobody brings a [`Bill`], and gives it back unless the receipt is kept; `Err` is
    /// when there is one. The caller has a limit of its own, which decides alone where there are too many accounts.
    pub async fn spend(&self, account: Account, per_minute: u32, now: Now) -> Result<Receipt, Duration> {
        if self.table.used.load(Ordering::Relaxed) >= ACCOUNTS {
            return Ok(Receipt::new(|| {}));
        }
        self.table.take(account, per_minute, now).wait().await
    }

    /// Accounts remembered, for metrics.
    pub fn accounts(&self) -> usize {
        self.table.accounts.len()
    }
}

impl SharedLimits for LeasedLimits {
    fn take(&self, spend: SharedSpend, now: Now) -> Result<(), Wait> {
        self.local.take(spend, now)
    }

    fn check(&self, spend: SharedSpend, now: Now) -> Result<(), Wait> {
        self.local.check(spend, now)
    }

    fn pay(&self, bill: Bill, now: Now) -> Payment {
        if self.table.used.load(Ordering::Relaxed) >= ACCOUNTS {
            return Payment::Alone;
        }
        let instance = self
            .table
            .take(Account::Instance(bill.instance), bill.per_minute, now);
        let Some(group) = bill.group else {
            return match instance {
                Answer::Known(taken) => Payment::Now(taken.map_err(of_instance)),
                Answer::Awaited(receiver) => {
                    Payment::Soon(async { answered(receiver).await.map_err(of_instance) }.boxed())
                }
            };
        };
        let group = self
            .table
            .take(Account::Group(group), YOUNG_GROUP_PER_MINUTE, now);
        match (instance, group) {
            (Answer::Known(one), Answer::Known(other)) => Payment::Now(both(one, other)),
            (one, other) => Payment::Soon(
                async move {
                    let (one, other) = join(one.wait(), other.wait()).await;
                    both(one, other)
                }
                .boxed(),
            ),
        }
    }
}

impl Answer {
    async fn wait(self) -> Taken {
        match self {
            Self::Known(paid) => paid,
            Self::Awaited(receiver) => answered(receiver).await,
        }
    }
}

/// Its sender never falls without a word.
async fn answered(receiver: oneshot::Receiver<Taken>) -> Taken {
    receiver.await.unwrap_or(Err(PATIENCE))
}

fn of_instance(time: Duration) -> Wait {
    Limit::Instance.wait(time)
}

/// Both, or neither: what the other one has taken then goes back by itself.
fn both(instance: Taken, group: Taken) -> Paid {
    let group = group.map_err(|time| Limit::Group.wait(time));
    match (instance.map_err(of_instance), group) {
        (Ok(one), Ok(other)) => Ok(one.and(other)),
        (Err(one), Err(other)) => Err(one.max(other)),
        (Err(wait), Ok(_)) | (Ok(_), Err(wait)) => Err(wait),
    }
}

impl Table {
    fn take(self: &Arc<Self>, account: Account, per_minute: u32, now: Now) -> Answer {
        let replicas = self.source.replicas();
        let mut slot = match self.accounts.entry(account) {
            Entry::Occupied(slot) => slot.into_ref(),
            Entry::Vacant(place) => {
                self.used.fetch_add(1, Ordering::Relaxed);
                place.insert(Slot {
                    lease: Lease::new(per_minute, replicas, now.mono),
                    waiters: VecDeque::new(),
                })
            }
        };
        slot.lease.agree(per_minute, replicas, now.mono);
        let take = slot.lease.take(now.mono);
        let answer = match take {
            Take::Granted => Answer::Known(Ok(self.receipt(account))),
            Take::Refused(wait) => Answer::Known(Err(wait)),
            Take::Wait => {
                let (sender, receiver) = oneshot::channel();
                slot.waiters.push_back(sender);
                Answer::Awaited(receiver)
            }
        };
        let ask = slot.lease.ask(now.mono);
        drop(slot);
        if let Some(ask) = ask {
            // It ends by itself: each call has its time limit, and there is a next one only while pushes wait.
            tokio::spawn(Self::ask(Call::new(self, account), ask));
        }
        answer
    }

    fn receipt(self: &Arc<Self>, account: Account) -> Receipt {
        let table = self.clone();
        Receipt::new(move || {
            if let Some(mut slot) = table.accounts.get_mut(&account) {
                let now = table.clock.now();
                slot.lease.give_back(now.mono);
            }
        })
    }

    async fn ask(mut call: Call, first: Ask) {
        let mut next = Some(first);
        while let Some(ask) = next {
            let lease = call.table.source.lease(call.account, ask);
            let answer = tokio::time::timeout(PATIENCE, lease).await;
            next = call.ends(answer.ok().and_then(Result::ok));
        }
    }

    /// Tells those who wait, and what to ask next.
    fn settle(self: &Arc<Self>, account: Account, grant: Option<Grant>) -> Option<Ask> {
        let now = self.clock.now().mono;
        let mut served = Vec::new();
        let mut slot = self.accounts.get_mut(&account)?;
        match grant {
            Some(grant) => slot.lease.on_grant(grant, now),
            None => {
                metrics::counter!("relay_limit_leases_failed_total").increment(1);
                slot.lease.on_away(now);
            }
        }
        while let Some(told) = slot.lease.serve(now) {
            served.extend(slot.waiters.pop_front().map(|waiter| (waiter, told)));
        }
        let ask = slot.lease.ask(now);
        // Whoever is gone gives its token back, which takes the lock.
        drop(slot);
        for (waiter, told) in served {
            // A push that died meanwhile needs no answer.
            let _ = waiter.send(told.map(|()| self.receipt(account)));
        }
        ask
    }
}

/// The calls that one account makes. Dropped while one is under way (its task panics, or ends with its runtime), that
/// one counts as failed: there is no other before it is over.
struct Call {
    table: Arc<Table>,
    account: Account,
    is_under_way: bool,
}

impl Call {
    /// The first is under way.
    fn new(table: &Arc<Table>, account: Account) -> Self {
        Self {
            table: table.clone(),
            account,
            is_under_way: true,
        }
    }

    /// What to ask next, if anything.
    fn ends(&mut self, grant: Option<Grant>) -> Option<Ask> {
        let next = self.table.settle(self.account, grant);
        self.is_under_way = next.is_some();
        next
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.is_under_way {
            // So soon after a failure nothing is asked.
            let _ = self.table.settle(self.account, None);
        }
    }
}

#[cfg(test)]
mod tests;
