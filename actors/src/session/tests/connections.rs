//! What connections see of each other.

use sovereign_relay_protocol::signal::{close::CloseCode, frame::PeerState, id::Slot};

use super::support::*;
use crate::session::{Said, port::BindRefusal};

#[test]
fn a_message_is_acknowledged_and_its_receiver_called() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        b.link.take();
        for n in 1..=3 {
            assert_eq!(a.says(n).await.ack, Some(n));
        }
        assert!(b.hears(|words| words.mail).await.mail);
        let expected = |seq| (seq, Some(format!("message {seq}")));
        assert_eq!(b.mail().await, [1, 2, 3].map(expected));
        // Said again it is acknowledged again, and nobody is called.
        assert_eq!(a.says(1).await.ack, Some(3));
        assert!(!b.link.take().mail);
        b.held.submit(Said::Ack { seq: 2 }).await.unwrap();
        assert_eq!(b.mail().await, [expected(3)]);
        let beyond = b.held.submit(Said::Ack { seq: 4 }).await;
        assert_eq!(beyond, Err(CloseCode::NoSuchSession));
    });
}

#[test]
fn a_takeover_closes_the_old_connection_whose_late_end_nobody_sees() {
    run(|| async {
        let bench = Bench::new();
        let (old, b) = bench.both().await;
        for bind in [again(Slot::A, 1, 2), hello(Slot::A, 3)] {
            let new = bench.dial(bind).await;
            assert!(new.bound.epoch > old.bound.epoch);
            assert_eq!(old.closed().await, CloseCode::Replaced);
            assert_eq!(old.held.submit(message(1)).await, Err(CloseCode::Replaced));
            let acknowledged = old.held.submit(Said::Ack { seq: 0 }).await;
            assert_eq!(acknowledged, Err(CloseCode::Replaced));
            assert_eq!(old.held.read(0, 99).await, Err(CloseCode::Replaced));
            std::mem::forget(new);
        }
        pass(Duration::from_secs(60)).await;
        drop(old);
        let seen = b.watches(Duration::from_secs(60)).await;
        assert!(seen.iter().all(|state| *state == PeerState::Online), "{seen:?}");
        assert_eq!(bench.shelf.state_of(Slot::A), PeerState::Online);
    });
}

#[test]
fn a_lost_peer_is_told_away_after_2_s_and_left_after_30() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        let began = bench.seconds();
        drop(a);
        b.sees_next(PeerState::Away).await;
        assert_eq!(bench.seconds() - began, 2);
        b.sees_next(PeerState::Left).await;
        assert_eq!(bench.seconds() - began, 30);
        let back = bench.dial(again(Slot::A, 1, 2)).await;
        b.sees_next(PeerState::Online).await;
        drop(back);
    });
}

#[test]
fn a_peer_that_is_back_within_2_s_was_never_gone() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        drop(a);
        pass(Duration::from_millis(1900)).await;
        let _back = bench.dial(again(Slot::A, 1, 2)).await;
        let seen = b.watches(Duration::from_secs(120)).await;
        assert!(seen.iter().all(|state| *state == PeerState::Online), "{seen:?}");
    });
}

#[test]
fn who_comes_while_its_peer_is_lost_is_told_what_becomes_of_it() {
    run(|| async {
        let bench = Bench::new();
        let a = bench.dial(hello(Slot::A, 1)).await;
        drop(a);
        pass(Duration::from_secs(1)).await;
        let b = bench.dial(hello(Slot::B, 2)).await;
        assert_eq!(b.bound.peer.told.state, PeerState::Online);
        let seen = b.watches(Duration::from_secs(60)).await;
        assert_eq!(seen, [PeerState::Away, PeerState::Left]);
    });
}

#[test]
fn a_goodbye_is_seen_at_once_and_the_connection_is_done() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        let began = bench.seconds();
        let bye = a.held.submit(Said::Bye { mood: None }).await;
        assert_eq!(bye, Err(CloseCode::Normal));
        drop(a);
        assert_eq!(b.watches(Duration::from_secs(40)).await, [PeerState::Left]);
        assert_eq!(bench.seconds() - began, 40);
    });
}

#[test]
fn a_reload_calls_the_peer_to_its_mailbox() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        a.says(1).await;
        b.link.take();
        let reloaded = bench.dial(hello(Slot::A, 3)).await;
        let words = b.hears(|words| words.peer.is_some()).await;
        assert_eq!(words.peer.unwrap().generation, 2);
        reloaded.says(1).await;
        let first = || (1, Some("message 1".to_owned()));
        let expected = [first(), (2, None), (3, Some("message 1".to_owned()))];
        assert_eq!(b.mail().await, expected);
    });
}

#[test]
fn a_session_that_is_over_closes_its_connections_and_its_actor_goes() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        assert_eq!(
            (a.closed().await, b.closed().await),
            (CloseCode::SessionOver, CloseCode::SessionOver)
        );
        assert_eq!(bench.seconds(), LIFE.as_secs());
        drop((a, b));
        bench.deserted().await;
        let refused = bench.try_dial(again(Slot::A, 1, 2)).await;
        assert!(refused.is_err_and(|refusal| refusal.to_string() == "no such session"));
    });
}

#[test]
fn an_actor_without_connections_goes_and_one_with_a_silent_connection_stays() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        assert_eq!(bench.sessions.alive(), 1);
        drop(a);
        pass(Duration::from_secs(300)).await;
        assert_eq!(bench.sessions.alive(), 1);
        drop(b);
        bench.deserted().await;
        // The next one finds everything as it was.
        let a = bench.dial(again(Slot::A, 1, 2)).await;
        assert_eq!(
            (a.bound.generation, a.bound.peer.told.state),
            (1, PeerState::Away)
        );
        drop(a);
        // A dial that is refused leaves no actor either.
        bench.deserted().await;
        let refused = bench.try_dial(again(Slot::A, 1, 2)).await;
        assert!(matches!(refused.err(), Some(BindRefusal::Replaced)));
        bench.deserted().await;
    });
}

#[test]
fn ending_a_session_waits_until_its_connections_are_silent() {
    run(|| async {
        let bench = Bench::new();
        let (a, b) = bench.both().await;
        bench.shelf.remove(MAIN);
        let sessions = bench.sessions.clone();
        let ending = tokio::spawn(async move { sessions.end(id(MAIN), CloseCode::SessionOver, None).await });
        assert_eq!(
            (a.closed().await, b.closed().await),
            (CloseCode::SessionOver, CloseCode::SessionOver)
        );
        a.link.fall_silent();
        pass(Duration::from_secs(60)).await;
        assert!(!ending.is_finished());
        b.link.fall_silent();
        ending.await.unwrap();
        // Nobody is there, so nothing is to be waited for, and no actor is started for it.
        bench.deserted().await;
        bench.sessions.end(id(MAIN), CloseCode::SessionOver, None).await;
        assert_eq!(bench.sessions.alive(), 0);
    });
}

#[test]
fn a_revoked_instance_loses_its_connections_in_every_session_and_its_peers_see_it_away_then_left() {
    run(|| async {
        let bench = Bench::new();
        bench.keep(2);
        let (a, b) = bench.both().await;
        let other_a = bench.dial_to(2, hello(Slot::A, 1)).await;
        let other_b = bench.dial_to(2, hello(Slot::B, 2)).await;
        for peer in [&a, &other_a] {
            peer.link.fall_silent();
        }
        bench.sessions.end_instance(instance(1)).await;
        assert_eq!(
            (a.closed().await, other_a.closed().await),
            (CloseCode::Revoked, CloseCode::Revoked)
        );
        let began = bench.seconds();
        for peer in [&b, &other_b] {
            peer.link.take();
        }
        let (seen, other_seen) = tokio::join!(
            b.watches(Duration::from_secs(60)),
            other_b.watches(Duration::from_secs(60))
        );
        let expected = [PeerState::Online, PeerState::Away, PeerState::Left];
        assert!(expected.ends_with(&seen) && seen.len() >= 2, "{seen:?}");
        assert_eq!((bench.seconds() - began, seen), (60, other_seen));
        assert_eq!(b.says(1).await.ack, Some(1));
    });
}

#[test]
fn all_are_asked_to_leave_at_different_moments() {
    run(|| async {
        let bench = Bench::new();
        bench.keep(2);
        let (a, b) = bench.both().await;
        let c = bench.dial_to(2, hello(Slot::A, 1)).await;
        bench.sessions.leave(Duration::from_secs(10));
        let mut moments = Vec::new();
        for peer in [&a, &b, &c] {
            let words = peer.hears(|words| words.goaway.is_some()).await;
            moments.push(words.goaway.unwrap().as_secs());
        }
        moments.sort_unstable();
        moments.dedup();
        assert_eq!(moments, [5, 10]);
        // Until then they work.
        assert_eq!(a.says(1).await.ack, Some(1));
    });
}
