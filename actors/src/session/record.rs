//! All that is kept of one session, and what each operation does to it. Pure: a store calls it under its lock.
//!
//! Invariants, for each direction: the receiver's `seq` has no gap; a message is stored once, whatever the sender
//! repeats; only the latest connection of a slot changes anything for it; what was stored is there until the
//! receiver acknowledges it or the session ends.

use std::{cmp::Ordering, time::Duration};

use sovereign_relay_protocol::{
    id::InstanceId,
    limits::BOTH_LEFT_SECONDS,
    signal::{
        frame::Opaque,
        id::{SessionId, Slot},
        session::{SessionView, SlotView, SlotViews},
    },
    time::UnixMillis,
};

use super::{
    port::{
        Appended, Bind, BindRefusal, Bound, Creation, Departure, Gone, Incarnation, NewSession, Page, Place,
        Presence, Settings, Trimmed,
    },
    rules::SessionRules,
    slot::SlotRecord,
};
use crate::now::Now;

/// How long a session is kept in which both said goodbye: a page that reloads says it too.
const BOTH_LEFT: Duration = Duration::from_secs(BOTH_LEFT_SECONDS);

/// One session.
#[derive(Debug)]
pub struct SessionRecord {
    incarnation: Incarnation,
    settings: Settings,
    rules: SessionRules,
    expires_at: UnixMillis,
    /// The same on the monotonic clock, which alone decides.
    expires: Duration,
    /// When both have been gone for good long enough.
    closes: Option<Duration>,
    messages: u32,
    a: SlotRecord,
    b: SlotRecord,
}

impl SessionRecord {
    /// A new session.
    pub fn new(new: &NewSession, rules: SessionRules, now: Now) -> Self {
        let ends = now.plus(new.life);
        Self {
            incarnation: new.incarnation,
            settings: new.settings,
            rules,
            expires_at: ends.unix,
            expires: ends.mono,
            closes: None,
            messages: 0,
            a: SlotRecord::new(Some(new.instance), now),
            b: SlotRecord::new((!new.is_rendezvous).then_some(new.instance), now),
        }
    }

    /// Whether nothing of it may be used any more.
    pub fn is_over(&self, now: Now) -> bool {
        now.mono >= self.ends()
    }

    /// When it is over, on the monotonic clock.
    pub fn ends(&self) -> Duration {
        self.closes
            .map_or(self.expires, |closes| closes.min(self.expires))
    }

    /// Whether an instance has a slot in it.
    pub fn belongs_to(&self, instance: InstanceId) -> bool {
        Slot::BOTH
            .into_iter()
            .any(|slot| self.instance_of(slot) == Some(instance))
    }

    /// The instance of a slot.
    pub fn instance_of(&self, slot: Slot) -> Option<InstanceId> {
        self.slot(slot).instance
    }

    /// Bytes that wait in the mailbox of a slot.
    pub fn bytes_for(&self, slot: Slot) -> usize {
        self.slot(slot).mailbox.bytes()
    }

    /// The place of an instance that made it just now.
    pub fn place_of_maker(&self, new: &NewSession) -> Place {
        self.place(new.is_rendezvous.then_some(Slot::A))
    }

    /// An instance comes to a session that is there. Its ticket is good until the session expires, so that two goodbyes
    /// end it early no more.
    pub fn join(&mut self, new: &NewSession) -> Creation {
        // Only a rendezvous leads to an id that is taken.
        if self.settings.e2e != new.settings.e2e {
            return Creation::Conflict;
        }
        if self.b.instance.is_none() && self.a.instance != Some(new.instance) {
            self.b.instance = Some(new.instance);
        }
        let own = |slot: &Slot| self.instance_of(*slot) == Some(new.instance);
        match Slot::BOTH.iter().copied().find(own) {
            Some(slot) => {
                self.closes = None;
                Creation::Joined(self.place(Some(slot)))
            }
            None => Creation::Full,
        }
    }

    fn place(&self, slot: Option<Slot>) -> Place {
        Place {
            incarnation: self.incarnation,
            expires_at: self.expires_at,
            slot,
        }
    }

    /// Gives a slot to a connection.
    pub fn bind(&mut self, bind: &Bind, now: Now) -> Result<Bound, BindRefusal> {
        let instance = self.instance_of(bind.slot).ok_or(Gone::NoSession)?;
        if bind.incarnation != self.incarnation {
            return Err(Gone::NoSession.into());
        }
        let rules = self.rules;
        let slot = self.slot_mut(bind.slot);
        let is_new_load = slot.bind(bind, &rules, now)?;
        slot.mailbox.trim(bind.last);
        let (epoch, generation, next, base) = (slot.epoch, slot.generation, slot.next, slot.mailbox.base());
        if is_new_load && generation > 1 {
            self.slot_mut(bind.slot.other()).mailbox.push_new_load(generation);
        }
        self.closes = None;
        Ok(Bound {
            epoch,
            generation,
            is_new_load,
            next,
            base,
            peer: self.slot(bind.slot.other()).presence(now),
            settings: self.settings,
            instance,
            expires_at: self.expires_at,
            expires_in: now.until(self.expires),
        })
    }

    /// Stores a message for the other slot.
    pub fn append(&mut self, from: Slot, epoch: u64, n: u64, content: Opaque) -> Result<Appended, Gone> {
        if let Some(refused) = self.refused(from, epoch, n)? {
            return Ok(refused);
        }
        let (generation, limits) = (self.slot(from).generation, self.rules.limits);
        let mailbox = &mut self.slot_mut(from.other()).mailbox;
        if mailbox.push(generation, content, &limits).is_err() {
            return Ok(Appended::MailboxFull);
        }
        self.messages += 1;
        self.slot_mut(from).next += 1;
        Ok(Appended::Stored)
    }

    /// What is said of a message for which there is no room outside this session: it is full, unless something else
    /// is wrong with it, or it was stored before.
    pub fn append_without_room(&mut self, from: Slot, epoch: u64, n: u64) -> Result<Appended, Gone> {
        Ok(self.refused(from, epoch, n)?.unwrap_or(Appended::MailboxFull))
    }

    fn refused(&mut self, from: Slot, epoch: u64, n: u64) -> Result<Option<Appended>, Gone> {
        let next = self.held(from, epoch)?.next;
        Ok(match n.cmp(&next) {
            Ordering::Less => Some(Appended::Duplicate),
            Ordering::Greater => Some(Appended::OutOfStep),
            Ordering::Equal if self.messages >= self.rules.messages => Some(Appended::SessionTotal),
            Ordering::Equal => None,
        })
    }

    /// Forgets what waits for a slot, up to `seq`.
    pub fn trim(&mut self, slot: Slot, epoch: u64, seq: u64) -> Result<Trimmed, Gone> {
        let mailbox = &mut self.held(slot, epoch)?.mailbox;
        if seq > mailbox.sent() {
            return Ok(Trimmed::BeyondSent);
        }
        mailbox.trim(seq);
        Ok(Trimmed::Trimmed)
    }

    /// What waits for a slot after `after`, which was read before.
    pub fn read(&mut self, slot: Slot, epoch: u64, after: u64, bytes: usize) -> Result<Page, Gone> {
        let mailbox = &mut self.held(slot, epoch)?.mailbox;
        if after > mailbox.sent() {
            return Err(Gone::Behind);
        }
        Ok(mailbox.after(after, bytes))
    }

    /// What the connection in `slot` is told of its peer.
    pub fn peer(&self, slot: Slot, now: Now) -> Presence {
        self.slot(slot.other()).presence(now)
    }

    /// A connection leaves. When both have said goodbye the session ends soon.
    pub fn unbind(&mut self, slot: Slot, epoch: u64, departure: Departure, now: Now) -> Result<(), Gone> {
        let held = self.held(slot, epoch)?;
        match departure {
            Departure::Lost => held.lose(now),
            Departure::Bye => held.leave(),
        }
        if self.a.said_bye() && self.b.said_bye() {
            self.closes = Some(now.mono.saturating_add(BOTH_LEFT));
        }
        Ok(())
    }

    /// For the instances that have a slot in it.
    pub fn view(&self, id: SessionId, now: Now) -> SessionView {
        let view = |slot: &SlotRecord| {
            let told = slot.presence(now).told;
            SlotView {
                state: told.state,
                generation: told.generation,
                queued: slot.mailbox.messages(),
            }
        };
        SessionView {
            session_id: id,
            expires_at: self.expires_at,
            slots: SlotViews {
                a: view(&self.a),
                b: view(&self.b),
            },
        }
    }

    fn slot(&self, slot: Slot) -> &SlotRecord {
        match slot {
            Slot::A => &self.a,
            Slot::B => &self.b,
        }
    }

    fn slot_mut(&mut self, slot: Slot) -> &mut SlotRecord {
        match slot {
            Slot::A => &mut self.a,
            Slot::B => &mut self.b,
        }
    }

    fn held(&mut self, slot: Slot, epoch: u64) -> Result<&mut SlotRecord, Gone> {
        let slot = self.slot_mut(slot);
        if slot.is_held_by(epoch) {
            Ok(slot)
        } else {
            Err(Gone::Fenced)
        }
    }
}

#[cfg(test)]
mod tests;
