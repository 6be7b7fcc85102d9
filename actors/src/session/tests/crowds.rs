//! More at once than a session's actor takes: it says so, and what must get through does.

use futures_util::future::poll_immediate;
use sovereign_relay_protocol::signal::{close::CloseCode, frame::PeerState, id::Slot};

use super::support::*;
use crate::session::{
    directory::{DIALS, MAILBOX},
    port::{BindRefusal, Gone},
};

fn is_asked_to_come_again<T>(outcome: &Result<T, BindRefusal>) -> bool {
    matches!(outcome, Err(BindRefusal::Gone(Gone::Unavailable(_))))
}

/// Nobody handles anything until the test waits: one more than `MAILBOX` is the sender's own place.
fn fill_the_mailbox(bench: &Bench) {
    for _ in 0..=MAILBOX {
        bench.sessions.leave(Duration::from_secs(10));
    }
}

#[test]
fn a_crowd_of_dials_is_asked_to_come_again_and_the_session_is_ended_all_the_same() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        bench.slow(Duration::from_secs(20));
        let mut dials: Vec<_> = (0..DIALS as u128)
            .map(|number| Box::pin(bench.try_dial(hello(Slot::A, 100 + number))))
            .collect();
        for dial in &mut dials {
            assert!(futures_util::poll!(dial).is_pending());
        }
        for number in 0..1000 {
            let refused = bench.try_dial(hello(Slot::B, 1000 + number));
            let refused = poll_immediate(refused).await.expect("an answer at once");
            assert!(is_asked_to_come_again(&refused));
        }
        assert_eq!(bench.seconds(), 0);

        for peer in [&a, &b] {
            peer.link.fall_silent();
        }
        bench.sessions.end(id(MAIN), CloseCode::SessionOver, None).await;
        assert_eq!(bench.seconds(), 0);
        for peer in [&a, &b] {
            assert_eq!(peer.closed().await, CloseCode::SessionOver);
        }
        // Whoever was on the way is turned away, and there is room again.
        for dial in dials {
            assert!(dial.await.is_err());
        }
        bench.slow(Duration::ZERO);
        pass(Duration::from_secs(60)).await;
        bench.dial(hello(Slot::B, 9)).await;
    });
}

#[test]
fn a_session_whose_actor_is_drowned_is_ended_all_the_same() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        fill_the_mailbox(&bench);
        let drowned = bench.try_dial(again(Slot::A, 1, 2));
        let drowned = poll_immediate(drowned).await.expect("an answer at once");
        assert!(is_asked_to_come_again(&drowned), "the mailbox is full");
        assert_eq!(a.held.submit(message(1)).await, Err(CloseCode::InternalError));

        let ending = bench.sessions.end(id(MAIN), CloseCode::SessionOver, None);
        tokio::pin!(ending);
        assert!(futures_util::poll!(&mut ending).is_pending());
        for peer in [&a, &b] {
            assert_eq!(peer.closed().await, CloseCode::SessionOver);
            peer.link.fall_silent();
        }
        ending.await;
        assert_eq!(bench.seconds(), 0);
    });
}

#[test]
fn an_instance_is_revoked_in_every_session_though_their_actors_are_drowned_and_one_client_reads_slowly() {
    run(|| async {
        let bench = Bench::new();
        bench.keep(2);
        let (slow, _b) = bench.both().await;
        let other = bench.dial_to(2, hello(Slot::A, 1)).await;
        fill_the_mailbox(&bench);
        let ending = bench.sessions.end_instance(instance(1));
        tokio::pin!(ending);
        assert!(futures_util::poll!(&mut ending).is_pending());
        for peer in [&slow, &other] {
            assert_eq!(peer.closed().await, CloseCode::Revoked);
        }
        other.link.fall_silent();
        assert!(
            tokio::time::timeout(Duration::from_secs(60), &mut ending)
                .await
                .is_err(),
            "it waits for the slow one"
        );
        slow.link.fall_silent();
        ending.await;
    });
}

#[test]
fn a_slot_is_given_back_to_an_actor_that_is_drowned() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        fill_the_mailbox(&bench);
        drop(a);
        b.sees_next(PeerState::Away).await;
        assert_eq!(bench.seconds(), 2);
    });
}

#[test]
fn ending_a_session_waits_for_connections_that_lost_their_slot_but_write_on() {
    run(|| async {
        let bench = Bench::new();
        let (replaced, left) = bench.both().await;
        let a = bench.dial(again(Slot::A, 1, 2)).await;
        assert_eq!(replaced.closed().await, CloseCode::Replaced);
        let bye = left.held.submit(crate::session::Said::Bye { mood: None }).await;
        assert_eq!(bye, Err(CloseCode::Normal));

        let ending = bench.sessions.end(id(MAIN), CloseCode::SessionOver, None);
        tokio::pin!(ending);
        for peer in [&a, &left, &replaced] {
            let early = tokio::time::timeout(Duration::from_secs(60), &mut ending).await;
            assert!(early.is_err());
            peer.link.fall_silent();
        }
        ending.await;
    });
}
