//! What happens while something else is on its way.

use std::sync::atomic::Ordering;

use sovereign_relay_protocol::signal::{close::CloseCode, frame::PeerState, id::Slot};

use super::support::*;
use crate::session::{
    messages::Depart,
    port::{BindRefusal, Departure, Gone, News},
    registry::Sessions,
    rules::SessionRules,
};

#[test]
fn a_peer_that_comes_while_the_answer_to_a_dial_is_on_its_way_is_seen() {
    run(|| async {
        for (is_elsewhere, was_here) in [(false, false), (true, false), (false, true), (true, true)] {
            let bench = Bench::new();
            let old = match was_here {
                true => Some(bench.dial(hello(Slot::A, 1)).await),
                false => None,
            };
            bench.shelf.next_bind.store(1000, Ordering::SeqCst);
            let dialing = bench.try_dial(again(Slot::A, 1, 2));
            tokio::pin!(dialing);
            assert!(futures_util::poll!(&mut dialing).is_pending());
            pass(Duration::from_millis(500)).await;
            let _b = match is_elsewhere {
                true => {
                    bench.bind_elsewhere(hello(Slot::B, 2));
                    bench.sessions.hear(News::Peer(id(MAIN), Slot::A));
                    None
                }
                false => Some(bench.dial(hello(Slot::B, 2)).await),
            };
            let a = dialing.await.unwrap();
            assert_eq!(a.bound.peer.told.state, PeerState::Absent, "as it was then");
            let seen = a.watches(Duration::from_secs(1)).await;
            assert_eq!(seen, [PeerState::Online], "{is_elsewhere} {was_here}");
            drop(old);
        }
    });
}

#[test]
fn a_dial_on_its_way_to_an_actor_that_dies_finds_its_successor() {
    run(|| async {
        let bench = Bench::new();
        bench.shelf.bind_panics.store(true, Ordering::SeqCst);
        let (a, b) = tokio::join!(
            bench.try_dial(hello(Slot::A, 1)),
            bench.try_dial(hello(Slot::B, 2))
        );
        let unanswered = a.err();
        assert!(
            matches!(unanswered, Some(BindRefusal::Gone(Gone::Unavailable(_)))),
            "of the first one something may have come"
        );
        let b = b.unwrap();
        assert_eq!(b.says(1).await.ack, Some(1));
    });
}

#[test]
fn a_slot_given_back_to_an_actor_that_dies_is_given_back_by_its_successor() {
    run(|| async {
        // Its news are behind a message that is too much, or the store is being asked already.
        for is_asked in [false, true] {
            let bench = Bench::new();
            let (a, b) = bench.both().await;
            if is_asked {
                bench.away(true);
            }
            bench.shelf.panics.store(true, Ordering::SeqCst);
            let saying = b.held.submit(message(1));
            tokio::pin!(saying);
            if is_asked {
                drop(a);
                pass(Duration::from_secs(1)).await;
                assert!(futures_util::poll!(&mut saying).is_pending());
            } else {
                assert!(futures_util::poll!(&mut saying).is_pending());
                drop(a);
            }
            assert_eq!(saying.await, Err(CloseCode::InternalError));
            bench.away(false);
            pass(Duration::from_secs(40)).await;
            assert_eq!(bench.shelf.state_of(Slot::A), PeerState::Left, "{is_asked}");
        }
    });
}

#[test]
fn a_slot_that_kills_every_actor_is_given_up() {
    run(|| async {
        let bench = Bench::new();
        let a = bench.dial(hello(Slot::A, 1)).await;
        bench.shelf.unbind_panics.store(true, Ordering::SeqCst);
        drop(a);
        bench.deserted().await;
        assert_eq!(bench.shelf.state_of(Slot::A), PeerState::Online);
    });
}

#[test]
fn a_registry_that_closes_gives_back_what_was_just_left_and_waits_for_no_store_that_is_away() {
    actix::System::new().block_on(async {
        for is_away in [false, true] {
            let bench = Bench::new();
            let sessions = Sessions::start(1, bench.shelf.clone(), SessionRules::default(), bench.clock());
            let link = Arc::new(crate::session::link::Link::default());
            let (_, held) = sessions.dial(id(MAIN), hello(Slot::A, 1), &link).await.unwrap();
            bench.shelf.delay.store(50, Ordering::SeqCst);
            bench.away(is_away);
            drop(held);
            sessions.close().await;
            // Lost, which is seen 2 s later.
            let presence = bench.shelf.presence_of(Slot::A);
            assert_eq!(presence.changes_in.is_some(), !is_away);
        }
    });
}

#[test]
fn a_debt_that_nobody_pays_counts_until_it_is_paid() {
    run(|| async {
        let bench = Bench::new();
        let a = bench.dial(hello(Slot::A, 1)).await;
        let debt = bench
            .sessions
            .debt(id(MAIN), Slot::A, a.bound.epoch, Departure::Bye);
        drop(Depart(debt));
        assert_eq!(bench.sessions.debts(), 1);
        pass(Duration::from_secs(1)).await;
        assert_eq!(bench.sessions.debts(), 0);
        assert_eq!(bench.shelf.state_of(Slot::A), PeerState::Left);
    });
}
