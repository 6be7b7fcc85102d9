//! The contract that every session store passes: `session_store_contract!(open)` makes one test of each function here,
//! where `open().await` gives a fresh, empty store within the default bounds, and a way to let its time pass.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, join_all};
use sovereign_relay_actors::session::port::{
    Appended, Bind, BindRefusal, Bound, ConnectionHash, Creation, Departure, ENTRY_BYTES, Entry, Gone,
    Incarnation, Item, NewSession, Place, SessionStore, Settings, Trimmed,
};
use sovereign_relay_protocol::{
    id::InstanceId,
    limits,
    signal::{
        frame::{Opaque, PeerPresence, PeerState},
        id::{SessionId, Slot},
        session::EndToEnd,
    },
};

use super::SessionBounds;

macro_rules! session_store_contract {
    ($open:path) => {
        $crate::store::sessions::contract::session_store_contract!(@ $open:
            a_session_is_seen_by_its_instance_and_by_nobody_else,
            two_instances_meet_at_a_rendezvous_and_the_first_ones_settings_hold,
            of_many_instances_that_meet_at_once_two_find_a_slot,
            a_removed_session_is_gone_for_everybody,
            a_session_that_is_over_is_gone_for_everybody,
            no_connection_or_ticket_of_a_session_outlives_it_into_the_next_of_the_same_id,
            an_instance_has_so_many_live_sessions_and_its_neighbours_theirs,
            a_session_that_both_left_ends_soon_unless_one_comes_back,
            whoever_comes_to_a_rendezvous_that_both_left_has_a_ticket_that_is_good,
            one_secret_resumes_and_another_is_a_new_page_load,
            of_many_page_loads_at_once_one_has_the_slot,
            after_a_takeover_the_old_connection_changes_nothing,
            a_secret_that_was_replaced_does_not_come_back,
            binds_are_limited_each_kind_by_itself,
            a_client_that_knows_more_than_was_sent_is_turned_away,
            what_waits_and_was_never_sent_can_not_be_known,
            a_lost_peer_is_away_after_2_s_and_left_after_30,
            a_goodbye_is_seen_at_once_and_can_be_taken_back,
            messages_wait_in_order_and_are_read_page_by_page,
            a_message_is_stored_once_and_a_gap_is_refused,
            of_many_copies_at_once_one_is_stored,
            messages_of_both_sides_of_a_takeover_leave_no_gap,
            what_is_acknowledged_is_forgotten_and_nothing_else,
            a_new_load_of_the_receiver_gets_what_was_not_acknowledged,
            a_new_load_of_the_sender_stands_before_its_messages_even_in_a_full_mailbox,
            a_full_mailbox_refuses_what_is_new_until_something_is_acknowledged,
            the_bytes_of_a_mailbox_are_bounded,
            messages_without_content_are_counted_too,
            a_session_carries_so_many_messages_both_ways_together,
            what_is_done_in_one_session_is_not_seen_in_another,
        );
    };
    (@ $open:path: $($name:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                $crate::store::sessions::contract::$name($open().await).await;
            }
        )*
    };
}
pub(crate) use session_store_contract;

mod arrivals;
mod lives;
mod messages;

pub(crate) use arrivals::*;
pub(crate) use lives::*;
pub(crate) use messages::*;

/// A store under test.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) time: Arc<dyn Passing>,
}

/// Lets a store's time pass.
pub(crate) trait Passing: Send + Sync {
    fn pass(&self, time: Duration) -> BoxFuture<'static, ()>;
}

const LIFE: Duration = Duration::from_secs(120);

impl Opened {
    async fn pass(&self, time: Duration) {
        self.time.pass(time).await;
    }

    async fn create(&self, new: NewSession) -> Creation {
        self.store.create(new).await.unwrap()
    }

    /// A session of one instance, to be worked with.
    async fn with_session(self) -> Session {
        assert!(matches!(self.create(plain(1)).await, Creation::Made(_)));
        Session {
            id: plain(1).id,
            opened: self,
        }
    }
}

/// One session in a store.
struct Session {
    opened: Opened,
    id: SessionId,
}

impl Session {
    async fn pass(&self, time: Duration) {
        self.opened.pass(time).await;
    }

    async fn try_bind(&self, bind: Bind) -> Result<Bound, BindRefusal> {
        self.opened.store.bind(self.id, bind).await
    }

    async fn bind(&self, bind: Bind) -> Bound {
        self.try_bind(bind).await.unwrap()
    }

    /// Both are there: their epochs.
    async fn both(&self) -> (u64, u64) {
        let a = self.bind(hello(Slot::A, 1)).await.epoch;
        (a, self.bind(hello(Slot::B, 2)).await.epoch)
    }

    async fn append(&self, from: Slot, epoch: u64, n: u64) -> Result<Appended, Gone> {
        let content = Opaque::new(format!("{}{n}", from.as_str()));
        self.opened.store.append(self.id, from, epoch, n, content).await
    }

    /// Messages from `first` to `last` are stored.
    async fn fill(&self, from: Slot, epoch: u64, first: u64, last: u64) {
        for n in first..=last {
            assert_eq!(self.append(from, epoch, n).await.unwrap(), Appended::Stored);
        }
    }

    async fn trim(&self, slot: Slot, epoch: u64, seq: u64) -> Result<Trimmed, Gone> {
        self.opened.store.trim(self.id, slot, epoch, seq).await
    }

    /// Reads all that waits, and acknowledges it up to `seq`.
    async fn process(&self, slot: Slot, epoch: u64, seq: u64) {
        self.waiting(slot, epoch).await;
        assert_eq!(self.trim(slot, epoch, seq).await.unwrap(), Trimmed::Trimmed);
    }

    async fn unbind(&self, slot: Slot, epoch: u64, departure: Departure) -> Result<(), Gone> {
        self.opened.store.unbind(self.id, slot, epoch, departure).await
    }

    /// What waits for a slot: `seq`, generation and content; a new page load has none.
    async fn waiting(&self, slot: Slot, epoch: u64) -> Vec<(u64, u32, Option<String>)> {
        let read = self.opened.store.read(self.id, slot, epoch, 0, usize::MAX);
        read.await.unwrap().entries.into_iter().map(shown).collect()
    }

    /// What the peer of a slot is told, and when it changes by itself.
    async fn seen(&self, slot: Slot) -> (PeerState, u32, Option<Duration>) {
        let presence = self.opened.store.peer(self.id, slot.other()).await.unwrap();
        let PeerPresence { state, generation } = presence.told;
        (state, generation, presence.changes_in)
    }

    /// Whether a connection is refused everything because a newer one has its slot.
    async fn is_fenced(&self, slot: Slot, epoch: u64) -> bool {
        let store = &self.opened.store;
        let refusals = [
            store
                .append(self.id, slot, epoch, 1, Opaque::new("x"))
                .await
                .err(),
            store.trim(self.id, slot, epoch, 0).await.err(),
            store.read(self.id, slot, epoch, 0, 99).await.err(),
            store.unbind(self.id, slot, epoch, Departure::Lost).await.err(),
            store.unbind(self.id, slot, epoch, Departure::Bye).await.err(),
        ];
        refusals
            .iter()
            .all(|refusal| matches!(refusal, Some(Gone::Fenced)))
    }

    /// Whether every operation says that there is no such session.
    async fn is_gone(&self, slot: Slot, epoch: u64) -> bool {
        let store = &self.opened.store;
        let bound = self.try_bind(hello(slot, 99)).await.err();
        let refusals = [
            store
                .append(self.id, slot, epoch, 1, Opaque::new("x"))
                .await
                .err(),
            store.trim(self.id, slot, epoch, 0).await.err(),
            store.read(self.id, slot, epoch, 0, 99).await.err(),
            store.unbind(self.id, slot, epoch, Departure::Lost).await.err(),
            store.peer(self.id, slot).await.err(),
        ];
        matches!(bound, Some(BindRefusal::Gone(Gone::NoSession)))
            && refusals
                .iter()
                .all(|refusal| matches!(refusal, Some(Gone::NoSession)))
            && store.view(self.id, instance(1)).await.unwrap().is_none()
            && !store.lives(self.id).await.unwrap()
    }
}

fn shown(entry: Entry) -> (u64, u32, Option<String>) {
    let content = match entry.item {
        Item::Message(content) => Some(content.expose().to_owned()),
        Item::NewLoad => None,
    };
    (entry.seq, entry.generation, content)
}

fn said(seq: u64, generation: u32, content: &str) -> (u64, u32, Option<String>) {
    (seq, generation, Some(content.to_owned()))
}

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

/// A session for both slots.
fn plain(by: u8) -> NewSession {
    NewSession {
        id: SessionId::from_bytes([200; 16]),
        incarnation: Incarnation(7),
        instance: instance(by),
        is_rendezvous: false,
        settings: Settings {
            e2e: EndToEnd::Optional,
            turn: false,
        },
        life: LIFE,
    }
}

/// The same, for an instance that knows the rendezvous.
fn meeting(by: u8) -> NewSession {
    NewSession {
        is_rendezvous: true,
        ..plain(by)
    }
}

/// The first dial of a secret.
fn hello(slot: Slot, connection: u128) -> Bind {
    Bind {
        slot,
        incarnation: Incarnation(7),
        connection: ConnectionHash(connection),
        attempt: 1,
        last: 0,
    }
}

/// A later one.
fn again(slot: Slot, connection: u128, attempt: u64, last: u64) -> Bind {
    Bind {
        attempt,
        last,
        ..hello(slot, connection)
    }
}
