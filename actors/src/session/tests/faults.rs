//! A store that is slow or away, clients that vanish in between, and panics.

use std::sync::atomic::Ordering;

use sovereign_relay_protocol::signal::{
    close::CloseCode,
    frame::{PeerState, Refused},
    id::Slot,
};

use super::support::*;
use crate::session::{
    Said,
    link::Link,
    port::{BindRefusal, Gone, News},
    rules::SessionRules,
};

#[test]
fn while_the_store_is_away_nothing_is_acknowledged_and_afterwards_all_passes_on_the_same_connection() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        assert_eq!(a.says(1).await.ack, Some(1));
        bench.away(true);
        for _ in 0..3 {
            let refusal = a.says(2).await.refusal.unwrap();
            assert_eq!((refusal.code, refusal.n), (Refused::Unavailable, 2));
            // What was under way behind it.
            a.held.submit(message(3)).await.unwrap();
        }
        let refused = bench.try_dial(hello(Slot::B, 9)).await.err();
        assert!(matches!(refused, Some(BindRefusal::Gone(Gone::Unavailable(_)))));
        // A reader waits.
        let reading = b.mail();
        tokio::pin!(reading);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), &mut reading)
                .await
                .is_err()
        );

        bench.away(false);
        assert_eq!(a.says(2).await.ack, Some(2));
        assert_eq!(a.says(3).await.ack, Some(3));
        assert_eq!(reading.await.len(), 3);
        assert!(!a.link.is_closed() && !b.link.is_closed());
    });
}

#[test]
fn a_message_stored_while_its_answer_was_lost_is_acknowledged_without_a_second_copy() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        bench.shelf.loses_answer.store(true, Ordering::SeqCst);
        assert_eq!(a.says(1).await.refusal.unwrap().code, Refused::Unavailable);
        assert_eq!(a.says(1).await.ack, Some(1));
        assert_eq!(a.says(2).await.ack, Some(2));
        assert_eq!(b.mail().await.len(), 2);
    });
}

#[test]
fn a_slot_left_while_the_store_is_away_is_given_back_when_it_returns() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        bench.away(true);
        drop(a);
        pass(Duration::from_secs(60)).await;
        assert_eq!(b.watches(Duration::from_secs(60)).await, []);
        bench.away(false);
        assert_eq!(
            b.watches(Duration::from_secs(60)).await,
            [PeerState::Online, PeerState::Away, PeerState::Left]
        );
    });
}

#[test]
fn the_last_slot_left_while_the_store_is_away_keeps_its_actor_until_it_is_given_back() {
    run(|| async {
        let bench = Bench::new();
        let a = bench.dial(hello(Slot::A, 1)).await;
        bench.away(true);
        drop(a);
        pass(Duration::from_secs(60)).await;
        bench.away(false);
        bench.deserted().await;
        assert_ne!(bench.shelf.state_of(Slot::A), PeerState::Online);
    });
}

#[test]
fn news_of_a_peer_that_could_not_be_read_are_read_later() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        drop(a);
        pass(Duration::from_secs(1)).await;
        bench.away(true);
        assert!(
            !b.watches(Duration::from_secs(60))
                .await
                .contains(&PeerState::Away)
        );
        bench.away(false);
        b.sees_next(PeerState::Left).await;
    });
}

#[test]
fn what_was_true_of_a_peer_before_is_not_told_after_what_is_true_now() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        // This answer is ten seconds on its way: by then the peer has said goodbye.
        bench.shelf.next_look.store(10_000, Ordering::SeqCst);
        let replaced = a;
        let a = bench.dial(again(Slot::A, 1, 2)).await;
        assert_eq!(replaced.closed().await, CloseCode::Replaced);
        pass(Duration::from_secs(1)).await;
        let _ = a.held.submit(Said::Bye { mood: None }).await;
        assert_eq!(b.watches(Duration::from_secs(60)).await, [PeerState::Left]);
    });
}

#[test]
fn an_actor_does_not_go_while_the_store_is_asked_for_a_slot() {
    run(|| async {
        let bench = Bench::new();
        bench.shelf.delay.store(20_000, Ordering::SeqCst);
        let a = bench.dial(hello(Slot::A, 1)).await;
        assert_eq!(bench.seconds(), 20);
        assert!(!a.link.is_closed());
        assert_eq!(a.says(1).await.ack, Some(1));
    });
}

#[test]
fn a_client_that_is_gone_before_it_hears_of_its_slot_gives_it_back() {
    run(|| async {
        let bench = Bench::new();
        bench.shelf.delay.store(1000, Ordering::SeqCst);
        // Gone while the store is asked; and gone when the answer is there, but nobody has taken it.
        for (attempt, gone_after) in [(1, 500), (2, 1500)] {
            let link = Arc::new(Link::default());
            let bind = again(Slot::A, 1, attempt);
            let mut dialing = Box::pin(bench.sessions.dial(id(MAIN), bind, &link));
            assert!(futures_util::poll!(&mut dialing).is_pending());
            pass(Duration::from_millis(gone_after)).await;
            drop(dialing);
            pass(Duration::from_secs(40)).await;
            assert_eq!(bench.shelf.state_of(Slot::A), PeerState::Left, "{gone_after}");
        }
        bench.deserted().await;
    });
}

#[test]
fn the_slower_of_two_dials_is_told_that_it_was_replaced() {
    run(|| async {
        let bench = Bench::new();
        bench.shelf.delay.store(5000, Ordering::SeqCst);
        let slow = bench.try_dial(again(Slot::A, 1, 1));
        tokio::pin!(slow);
        assert!(futures_util::poll!(&mut slow).is_pending());
        pass(Duration::from_secs(1)).await;
        bench.shelf.delay.store(0, Ordering::SeqCst);
        let fast = bench.dial(again(Slot::A, 1, 2)).await;
        assert!(matches!(slow.await.err(), Some(BindRefusal::Replaced)));
        assert!(!fast.link.is_closed());
    });
}

#[test]
fn a_connection_that_was_on_its_way_when_all_were_ended_is_turned_away() {
    run(|| async {
        let bench = Bench::new();
        bench.shelf.delay.store(1000, Ordering::SeqCst);
        let dialing = bench.try_dial(hello(Slot::A, 1));
        tokio::pin!(dialing);
        assert!(futures_util::poll!(&mut dialing).is_pending());
        pass(Duration::from_millis(500)).await;
        bench.sessions.end_instance(instance(1)).await;
        let refused = dialing.await.err();
        assert!(matches!(refused, Some(BindRefusal::Gone(Gone::Unavailable(_)))));
        pass(Duration::from_secs(40)).await;
        assert_eq!(bench.shelf.state_of(Slot::A), PeerState::Left);
    });
}

#[test]
fn a_session_that_the_store_lost_is_unknown_to_its_connections_whoever_notices() {
    run(|| async {
        for notices in 0..4 {
            let bench = Bench::new();
            let (a, b) = bench.both().await;
            bench.shelf.remove(MAIN);
            let began = bench.seconds();
            let lost = CloseCode::NoSuchSession;
            match notices {
                0 => assert_eq!(a.held.submit(message(1)).await, Err(lost)),
                1 => assert_eq!(a.held.submit(Said::Ack { seq: 0 }).await, Err(lost)),
                2 => assert_eq!(a.held.read(0, 99).await, Err(lost)),
                _ => bench.sessions.hear(News::Peer(id(MAIN), Slot::A)),
            }
            assert_eq!((a.closed().await, b.closed().await), (lost, lost), "{notices}");
            assert_eq!(bench.seconds() - began, 1);
            drop((a, b));
            bench.deserted().await;
        }
    });
}

#[test]
fn a_session_that_is_gone_before_the_news_of_its_removal_arrive_is_over() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        bench.shelf.remove(MAIN);
        let (says, reads) = (a.held.submit(message(1)), b.held.read(0, 99));
        let removal = async {
            pass(Duration::from_millis(900)).await;
            for peer in [&a, &b] {
                peer.link.fall_silent();
            }
            bench.sessions.end(id(MAIN), CloseCode::SessionOver, None).await;
        };
        let (said, read, ()) = tokio::join!(says, reads, removal);
        let over = CloseCode::SessionOver;
        assert_eq!((said, read), (Err(over), Err(over)));
        assert_eq!((a.closed().await, b.closed().await), (over, over));
    });
}

#[test]
fn a_session_that_the_store_ends_a_little_before_its_time_by_our_clock_is_over() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        pass(LIFE - Duration::from_secs(1)).await;
        bench.shelf.remove(MAIN);
        let over = CloseCode::SessionOver;
        assert_eq!(a.held.submit(message(1)).await, Err(over));
        assert_eq!((a.closed().await, b.closed().await), (over, over));
        assert_eq!(bench.seconds(), LIFE.as_secs() - 1);
    });
}

#[test]
fn whoever_comes_to_the_next_session_of_the_same_id_is_not_closed_with_the_lost_one() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        bench.shelf.remove(MAIN);
        let says = a.held.submit(message(1));
        let comes = async {
            pass(Duration::from_millis(500)).await;
            bench.keep(MAIN);
            bench.dial(hello(Slot::A, 3)).await
        };
        let (said, newer) = tokio::join!(says, comes);
        assert_eq!(said, Err(CloseCode::NoSuchSession));
        assert_eq!(b.closed().await, CloseCode::NoSuchSession);
        pass(Duration::from_secs(5)).await;
        assert_eq!(newer.says(1).await.ack, Some(1));
        assert!(!newer.link.is_closed());
    });
}

#[test]
fn a_panic_closes_the_sessions_connections_and_a_successor_serves_them() {
    run(|| async {
        for is_later in [false, true] {
            let bench = Bench::new();
            bench.keep(2);
            let (a, b) = bench.both().await;
            let other = bench.dial_to(2, hello(Slot::A, 1)).await;
            assert_eq!(a.says(1).await.ack, Some(1));
            let panics = match is_later {
                true => &bench.shelf.panics_later,
                false => &bench.shelf.panics,
            };
            panics.store(true, Ordering::SeqCst);
            assert_eq!(a.held.submit(message(2)).await, Err(CloseCode::InternalError));
            assert_eq!(
                (a.closed().await, b.closed().await),
                (CloseCode::InternalError, CloseCode::InternalError)
            );

            // Both come back to what was acknowledged; the other session noticed nothing.
            let resumed = bench.dial(again(Slot::A, 1, 2)).await;
            assert_eq!(resumed.bound.next, 2);
            assert_eq!(resumed.says(2).await.ack, Some(2));
            drop(a);
            drop(b);
            resumed.sees_next(PeerState::Away).await;
            let b = bench.dial(again(Slot::B, 2, 2)).await;
            assert_eq!(b.mail().await.len(), 2);
            assert_eq!(other.says(1).await.ack, Some(1));
            assert_eq!(bench.sessions.alive(), 2);
        }
    });
}

#[test]
fn actors_on_arbiters_of_their_own_serve_and_close_their_connections_at_the_end() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let clock = bench.clock();
        let rules = SessionRules::default();
        let sessions = crate::session::registry::Sessions::start(2, bench.shelf.clone(), rules, clock);
        let link = Arc::new(Link::default());
        let (bound, held) = sessions.dial(id(MAIN), hello(Slot::A, 1), &link).await.unwrap();
        assert_eq!(bound.generation, 1);
        held.submit(message(1)).await.unwrap();
        sessions.close().await;
        while !link.is_closed() {
            link.news().await;
        }
        assert_eq!(link.take().close, Some(CloseCode::InternalError));
        // Its slot can't be given back any more, which ends nothing but the wait.
        drop(held);
    });
}
