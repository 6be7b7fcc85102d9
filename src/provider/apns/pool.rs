//! The few connections of one environment under one set of credentials.
//!
//! Each push asks for a [`Lease`]: one stream of one connection. Where none is free it waits in line; where
//! connections may be added, one is dialled on the provider's runtime. [`Slots`] decides, this carries out. A push that
//! a connection has failed, and any while all are worn, asks for a sound one and has a line of its own until the dial for
//! it has ended.
//!
//! ```text
//! lease -> Slots::take, or wait -> dial task (back-off, open) -> driver task (limits, GOAWAY, end) -> next in line
//! ```
//!
//! Invariant: a stream that was taken is given back when its lease is dropped, and goes to the first in line.

mod base;
mod lease;
mod tasks;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use self::tasks::{OpenConnection, dial_until_open, drive, log_goaway, log_replaced};
pub(super) use self::{
    base::Base,
    lease::{Lease, NoLease},
};
use super::{
    connection::{Driver, Event, Link},
    slots::Slots,
};
use crate::steady::steadily;

/// Pushes waiting for a stream at most. The lane holds back what exceeds [`Slots::capacity`], so more than this
/// means that limits fell under full load; the rest is answered as overload at once.
const WAITING: usize = 16_384;

/// The connections. Dropping it retires them.
pub(super) struct Pool {
    base: Arc<Base>,
    state: Mutex<State>,
}

struct State {
    slots: Slots,
    links: HashMap<u64, Arc<Link>>,
    waiting: VecDeque<oneshot::Sender<Lease>>,
    /// For a sound connection, each with the one that it has tried.
    wary: VecDeque<(Option<u64>, oneshot::Sender<Lease>)>,
    retired: bool,
}

impl Pool {
    pub(super) fn new(base: Arc<Base>) -> Arc<Self> {
        let state = State {
            slots: Slots::new(base.bounds),
            links: HashMap::new(),
            waiting: VecDeque::new(),
            wary: VecDeque::new(),
            retired: false,
        };
        Arc::new(Self {
            base,
            state: Mutex::new(state),
        })
    }

    /// A stream within `left`, rather not of `avoid` or of a worn connection: for another one it waits half that time
    /// at most.
    pub(super) async fn lease(
        self: &Arc<Self>,
        left: Duration,
        avoid: Option<u64>,
    ) -> Result<Lease, NoLease> {
        if left.is_zero() {
            return Err(NoLease::Full);
        }
        if avoid.is_none() && !self.lock().slots.any_missed() {
            return self.lease_any(left, None).await;
        }
        self.replace_worn();
        let until = self.base.clock.now().mono.saturating_add(left);
        if let Some(lease) = self.lease_sound(left / 2, avoid).await {
            return Ok(lease);
        }
        self.lease_any(self.base.clock.now().until(until), avoid).await
    }

    async fn lease_any(self: &Arc<Self>, left: Duration, avoid: Option<u64>) -> Result<Lease, NoLease> {
        let receiver = match self.take_or_wait(avoid)? {
            Turn::Now(lease) => return Ok(lease),
            Turn::Later(receiver) => receiver,
        };
        self.settle();
        match timeout(left, receiver).await {
            Ok(Ok(lease)) => Ok(lease),
            Ok(Err(_)) => Err(NoLease::Retired),
            Err(_) if !self.lock().slots.reached() => Err(NoLease::Unreachable),
            Err(_) => Err(NoLease::Full),
        }
    }

    /// A stream of a sound connection that is not `avoid`, of one to be dialled if need be.
    async fn lease_sound(self: &Arc<Self>, within: Duration, avoid: Option<u64>) -> Option<Lease> {
        let now = self.base.clock.now().mono;
        let receiver = {
            let mut state = self.lock();
            if let Some(link) = state.take_sound(avoid) {
                return Some(self.of(link));
            }
            if state.retired || !state.slots.may_open(now) || state.is_line_full() {
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            state.wary.push_back((avoid, sender));
            receiver
        };
        self.settle();
        timeout(within, receiver).await.ok()?.ok()
    }

    /// Replaces a connection that is open but of no use, if there is one and it is time. Before a stream is taken too:
    /// so a breaker's probe, after a second at least, finds out about the provider and not about that connection.
    fn replace_worn(self: &Arc<Self>) {
        let worn = {
            let now = self.base.clock.now().mono;
            self.lock().slots.replace_one(now)
        };
        if let Some(id) = worn {
            log_replaced(self.base.name, id);
            self.take_out(id);
        }
    }

    fn of(self: &Arc<Self>, link: Arc<Link>) -> Lease {
        Lease {
            pool: self.clone(),
            link,
        }
    }

    /// Takes all connections out of use and sends those in line away.
    pub(super) fn retire(&self) {
        let (links, waiting, wary) = {
            let mut state = self.lock();
            state.retired = true;
            (
                std::mem::take(&mut state.links),
                std::mem::take(&mut state.waiting),
                std::mem::take(&mut state.wary),
            )
        };
        drop((waiting, wary));
        links.values().for_each(|link| link.retire());
    }

    fn take_or_wait(self: &Arc<Self>, avoid: Option<u64>) -> Result<Turn, NoLease> {
        let mut state = self.lock();
        if state.retired {
            return Err(NoLease::Retired);
        }
        state.forget_closed_in_front();
        if state.waiting.is_empty()
            && let Some(link) = state.take(avoid)
        {
            return Ok(Turn::Now(self.of(link)));
        }
        if state.is_line_full() {
            return Err(NoLease::Full);
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push_back(sender);
        Ok(Turn::Later(receiver))
    }

    /// After anything changed: free streams go to those in line, a dial starts where one is due, and the lane
    /// learns the capacity.
    fn settle(self: &Arc<Self>) {
        let mut granted = Vec::new();
        let mut state = self.lock();
        while let Some((waiter, link)) = state.next_in_line() {
            granted.push((waiter, self.of(link)));
        }
        let dial = state.start_dial();
        if !state.retired {
            let capacity = state.slots.capacity();
            self.base
                .capacity
                .send_if_modified(|known| std::mem::replace(known, capacity) != capacity);
        }
        drop(state);
        // One that gave up meanwhile drops its lease here, which settles again.
        granted
            .into_iter()
            .for_each(|(waiter, lease)| drop(waiter.send(lease)));
        if dial {
            let (pool, base) = (Arc::downgrade(self), self.base.clone());
            self.base.spawn(steadily("dialling a provider", move || {
                dial_until_open(pool.clone(), base.clone())
            }));
        }
    }

    fn opened(self: &Arc<Self>, link: Arc<Link>, driver: Driver) {
        let id = link.id();
        {
            let mut state = self.lock();
            state.slots.opened(id);
            if state.retired {
                return;
            }
            state.links.insert(id, link);
        }
        let counted = OpenConnection::new(self.base.name);
        self.base.spawn(drive(
            Arc::downgrade(self),
            counted,
            id,
            driver,
            self.base.keep_alive,
        ));
        self.settle();
    }

    /// Those who hoped for a sound connection take what there is.
    fn dial_failed(&self) {
        let (now, jitter) = (self.base.clock.now().mono, self.base.jitter());
        let wary = {
            let mut state = self.lock();
            state.slots.dial_failed(now, jitter);
            std::mem::take(&mut state.wary)
        };
        drop(wary);
    }

    fn take_out(self: &Arc<Self>, id: u64) {
        let now = self.base.clock.now().mono;
        let jitter = self.base.jitter();
        let link = {
            let mut state = self.lock();
            state.slots.out(id, now, jitter);
            state.links.remove(&id)
        };
        if let Some(link) = link {
            link.retire();
        }
        self.settle();
    }

    fn heard(self: &Arc<Self>, id: u64, event: Event) {
        match event {
            Event::Limit(limit) => {
                self.lock().slots.set_limit(id, limit);
                self.settle();
            }
            Event::GoingAway(reason) => {
                log_goaway(self.base.name, id, reason);
                self.take_out(id);
            }
        }
    }

    /// Whether the dial under way is still of use; when not, it is over.
    fn still_wanted(&self) -> bool {
        let mut state = self.lock();
        let mut waiting = state
            .waiting
            .iter()
            .chain(state.wary.iter().map(|(_, waiter)| waiter));
        let wanted = !state.retired && waiting.any(|waiter| !waiter.is_closed());
        if !wanted {
            state.slots.dial_dropped();
        }
        wanted
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.retire();
    }
}

enum Turn {
    Now(Lease),
    Later(oneshot::Receiver<Lease>),
}

impl State {
    fn take(&mut self, avoid: Option<u64>) -> Option<Arc<Link>> {
        let id = self.slots.take(avoid)?;
        self.links.get(&id).cloned()
    }

    fn take_sound(&mut self, avoid: Option<u64>) -> Option<Arc<Link>> {
        let id = self.slots.take_sound(avoid)?;
        self.links.get(&id).cloned()
    }

    fn start_dial(&mut self) -> bool {
        let wary = self.wary.front().map(|(avoid, _)| *avoid);
        !self.retired
            && (self.slots.start_dial(self.waiting.len())
                || wary.is_some_and(|avoid| self.slots.start_dial_beside(avoid)))
    }

    /// Those who were failed by a connection first: they have waited for a turn before.
    fn next_in_line(&mut self) -> Option<(oneshot::Sender<Lease>, Arc<Link>)> {
        self.forget_closed_in_front();
        if let Some((avoid, _)) = self.wary.front()
            && let Some(link) = self.take_sound(*avoid)
        {
            return Some((self.wary.pop_front()?.1, link));
        }
        self.waiting.front()?;
        let link = self.take(None)?;
        Some((self.waiting.pop_front()?, link))
    }

    fn forget_closed_in_front(&mut self) {
        while self.waiting.front().is_some_and(oneshot::Sender::is_closed) {
            self.waiting.pop_front();
        }
        while self.wary.front().is_some_and(|(_, waiter)| waiter.is_closed()) {
            self.wary.pop_front();
        }
    }

    fn is_line_full(&mut self) -> bool {
        if self.waiting.len() + self.wary.len() >= WAITING {
            self.waiting.retain(|waiter| !waiter.is_closed());
            self.wary.retain(|(_, waiter)| !waiter.is_closed());
        }
        self.waiting.len() + self.wary.len() >= WAITING
    }
}
