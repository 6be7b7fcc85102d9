//! Fair turns: who may call the provider next when not everybody may.
//!
//! The lane's shell joins every push here and gives each turn back when its call is over. Pushes wait in one line
//! per [`TurnKey`], first come first served; the lines are served round robin, so that an instance with a
//! thousand pushes delays another's single push by one turn and not by a thousand.
//!
//! ```text
//!   join --- a turn is free, nobody waits --------------> taken --- give_back --->
//!     \                                                     ^
//!      `--- waits in its key's line --- grant (round robin) /
//!                  \--- leave (deadline, caller gone) or clear ---->
//! ```
//!
//! Invariants: `taken` never rises while it is at or above the limit; between two turns of one key, every other
//! key that waited all the while had one; a push is in a line, has a turn, or is gone, never two of them.

use std::collections::{BTreeMap, HashMap};

use crate::push::TurnKey;

/// The waiting lines. `W` is how a waiter is told.
#[derive(Debug)]
pub(super) struct Turns<W> {
    bounds: Bounds,
    limit: usize,
    taken: usize,
    waiting: usize,
    lines: HashMap<TurnKey, Line<W>>,
    /// The keys that wait, in the order of their next turns.
    order: BTreeMap<u64, TurnKey>,
    next_number: u64,
}

/// How many may wait. A full line refuses its newest push at once, which a caller can repeat elsewhere or later;
/// letting it in would only make it wait for a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    /// In all lines.
    pub(super) all: usize,
    /// In one key's line.
    pub(super) per_key: usize,
}

/// A place in a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ticket {
    key: TurnKey,
    number: u64,
}

/// What came of joining.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Joined {
    /// A turn, at once.
    Turn,
    /// A place in the line.
    Waiting(Ticket),
    /// The line or all lines together are full.
    Full,
}

/// Ordered maps, so that a waiter in the middle leaves in O(log n) of at most `Bounds::all`, and nothing stays
/// behind to be skipped later.
#[derive(Debug)]
struct Line<W> {
    place: u64,
    waiters: BTreeMap<u64, W>,
}

impl<W> Turns<W> {
    pub(super) fn new(bounds: Bounds, limit: usize) -> Self {
        Self {
            bounds,
            limit,
            taken: 0,
            waiting: 0,
            lines: HashMap::new(),
            order: BTreeMap::new(),
            next_number: 0,
        }
    }

    /// Takes a turn or a place in the line. `waiter` is dropped unless the push waits.
    pub(super) fn join(&mut self, key: TurnKey, waiter: W) -> Joined {
        if self.waiting == 0 && self.taken < self.limit {
            self.taken += 1;
            return Joined::Turn;
        }
        let in_line = self.lines.get(&key).map_or(0, |line| line.waiters.len());
        if self.waiting >= self.bounds.all || in_line >= self.bounds.per_key {
            return Joined::Full;
        }
        let number = self.number();
        let order = &mut self.order;
        let line = self.lines.entry(key).or_insert_with(|| {
            order.insert(number, key);
            Line {
                place: number,
                waiters: BTreeMap::new(),
            }
        });
        line.waiters.insert(number, waiter);
        self.waiting += 1;
        Joined::Waiting(Ticket { key, number })
    }

    /// Leaves the line. `false`: not in it any more, having been granted a turn or cleared.
    pub(super) fn leave(&mut self, ticket: Ticket) -> bool {
        let Some(line) = self.lines.get_mut(&ticket.key) else {
            return false;
        };
        if line.waiters.remove(&ticket.number).is_none() {
            return false;
        }
        self.waiting -= 1;
        if line.waiters.is_empty() {
            self.order.remove(&line.place);
            self.lines.remove(&ticket.key);
        }
        true
    }

    /// Gives the next turn, if one is free and somebody waits. Call it until `None` after [`Turns::give_back`]
    /// and [`Turns::set_limit`].
    pub(super) fn grant(&mut self) -> Option<W> {
        if self.taken >= self.limit {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        let next_place = self.number();
        let line = self.lines.get_mut(&key)?;
        let (_, waiter) = line.waiters.pop_first()?;
        if line.waiters.is_empty() {
            self.lines.remove(&key);
        } else {
            line.place = next_place;
            self.order.insert(next_place, key);
        }
        self.waiting -= 1;
        self.taken += 1;
        Some(waiter)
    }

    /// A turn is over.
    pub(super) fn give_back(&mut self) {
        self.taken = self.taken.saturating_sub(1);
    }

    /// How many turns may be taken at a time from now on. Those above it are not taken away, only not given anew.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Sends everybody out of the lines, in no particular order.
    pub(super) fn clear(&mut self) -> Vec<W> {
        self.waiting = 0;
        self.order.clear();
        self.lines
            .drain()
            .flat_map(|(_, line)| line.waiters.into_values())
            .collect()
    }

    /// Turns that are taken.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Pushes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

#[cfg(test)]
mod tests;
