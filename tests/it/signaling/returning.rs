//! Who was lost comes back, and nobody is lost over it.

use serde_json::{Value, json};
use sovereign_relay_protocol::limits::NEW_CONNECTIONS_PER_MINUTE;

use crate::support::{
    answer::Instance,
    cutter::below,
    peer::{LOST, Peer, load, resume},
    relay::{Relay, RelayOptions},
    sessions::Made,
    until,
};

const REPLACED: u16 = 4409;

struct Place {
    relay: Relay,
    instance: Instance,
    session: Made,
}

/// A relay with one session.
async fn place() -> Place {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = relay.open_session(&instance).await;
    Place {
        relay,
        instance,
        session,
    }
}

async fn has_closed(relay: &Relay, reason: &str) {
    until(reason, async || {
        relay.metric("relay_signal_closes_total", reason).await >= 1.0
    })
    .await;
}

#[tokio::test]
async fn who_dials_again_while_the_old_socket_seems_alive_takes_over_at_once_and_its_late_end_is_no_news() {
    let place = place().await;
    let session = &place.session;
    // Nothing is read or written any more, and no FIN goes out.
    let (mut vanished, _) = session.join("a", load(1)).await;
    let (mut b, _) = session.join("b", load(2)).await;
    let (mut a, welcome) = session.join("a", resume(1, 2, 0)).await;
    assert_eq!((&welcome["gen"], &welcome["next"]), (&json!(1), &json!(1)));
    assert_eq!(vanished.end().await, REPLACED);
    drop(vanished);
    has_closed(&place.relay, "replaced by a newer connection").await;
    let view = place.relay.look_at(&place.instance, session).await.body;
    assert_eq!(view["slots"]["a"]["state"], "online");
    assert_eq!(b.so_far().await, [] as [Value; 0]);
    a.message(1, "still here").await;
    assert_eq!(b.next().await["d"], "still here");
}

#[tokio::test]
async fn of_two_clients_with_one_ticket_the_newer_has_the_slot_and_the_loser_does_not_come_back() {
    let place = place().await;
    let session = &place.session;
    let (mut loser, _) = session.join("a", load(1)).await;
    let (mut winner, welcome) = session.join("a", load(2)).await;
    assert_eq!(welcome["gen"], 2);
    assert_eq!(loser.end().await, REPLACED);
    for attempt in 2..5 {
        assert_eq!(session.refusal("a", resume(1, attempt, 0)).await, REPLACED);
    }
    assert_eq!(
        session.refusal("a", resume(2, 1, 0)).await,
        REPLACED,
        "an old dial"
    );
    assert_eq!(winner.so_far().await, [] as [Value; 0]);
}

#[tokio::test]
async fn page_loads_are_counted_and_a_client_that_resumes_thirty_times_a_minute_is_never_shut_out() {
    let place = place().await;
    let session = &place.session;
    let mut loads = 0;
    let refused = loop {
        loads += 1;
        let mut peer = Peer::connect(&session.url).await;
        peer.hello(&session.a, load(loads)).await;
        if let Err(end) = peer.next_or_end().await {
            break end;
        }
    };
    assert_eq!(refused, 4429);
    assert!(loads > u64::from(NEW_CONNECTIONS_PER_MINUTE), "{loads}");
    let last = loads - 1;
    for attempt in 2..=30 {
        let (_, welcome) = session.join("a", resume(last, attempt, 0)).await;
        assert_eq!(welcome["gen"], last);
    }
}

#[tokio::test]
async fn the_first_frame_of_a_resume_is_the_welcome_whatever_waits_and_whatever_the_peer_does_meanwhile() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let sessions = (0..20).map(async |_| {
        let session = relay.open_session(&instance).await;
        let (a, _) = session.join("a", load(1)).await;
        let (mut b, _) = session.join("b", load(2)).await;
        drop(a);
        b.messages(1..=50).await;
        b.stored(50).await;
        let mut said = 50;
        for attempt in 2..=30 {
            let mut a = Peer::connect(&session.url).await;
            let speaks_first = below(2) == 0;
            if speaks_first {
                b.messages(said + 1..=said + 1).await;
            }
            a.hello(&session.a, resume(1, attempt, 0)).await;
            if !speaks_first {
                b.messages(said + 1..=said + 1).await;
            }
            assert_eq!(a.next().await["t"], "welcome");
            assert_eq!(a.next_of("msg").await["seq"], 1);
            said += u64::from(is_taken(&mut b).await);
        }
    });
    futures_util::future::join_all(sessions).await;
}

/// Whether the message that was sent is stored, or came too fast.
async fn is_taken(peer: &mut Peer) -> bool {
    loop {
        match peer.next().await["t"].as_str().unwrap() {
            "ack" => return true,
            "err" => return false,
            _ => {}
        }
    }
}

#[tokio::test]
async fn an_answer_given_while_the_offerer_was_lost_arrives_once_and_the_answerer_saw_it_away_and_no_more() {
    let place = place().await;
    let session = &place.session;
    let (mut b, _) = session.join("b", load(2)).await;
    let (mut a, _) = session.join("a", load(1)).await;
    a.message(1, "offer").await;
    a.stored(1).await;
    let offer = b.next_of("msg").await;
    b.ack(offer["seq"].as_u64().unwrap()).await;
    drop(a);
    b.message(1, "answer").await;
    // In either order: how long it takes to store it is the machine's business.
    let heard = [b.next().await, b.next().await];
    let away = json!({ "t": "peer", "state": "away", "gen": 1 });
    assert!(heard.contains(&json!({ "t": "ack", "n": 1 })), "{heard:?}");
    assert!(heard.contains(&away), "{heard:?}");
    let (mut a, welcome) = session.join("a", resume(1, 2, 0)).await;
    assert_eq!(welcome["next"], 2);
    let answer = json!({ "t": "msg", "seq": 1, "gen": 1, "d": "answer" });
    assert_eq!(a.next().await, answer);
    a.ack(1).await;
    assert_eq!(a.so_far().await, [] as [Value; 0]);
    assert_eq!(
        b.next().await,
        json!({ "t": "peer", "state": "online", "gen": 1 })
    );
    let (mut a, welcome) = session.join("a", resume(1, 3, 1)).await;
    assert_eq!(welcome["base"], 1);
    assert_eq!(a.so_far().await, [] as [Value; 0], "not twice");
}

#[tokio::test]
async fn roles_are_opposite_and_stay_so_over_a_hundred_reconnects() {
    let place = place().await;
    for attempt in 1..=50 {
        let (_, a) = place.session.join("a", resume(1, attempt, 0)).await;
        let (_, b) = place.session.join("b", resume(2, attempt, 0)).await;
        for (welcome, slot, role) in [(a, "a", "impolite"), (b, "b", "polite")] {
            assert_eq!((&welcome["slot"], &welcome["role"]), (&json!(slot), &json!(role)));
            assert_eq!(welcome["gen"], 1);
        }
    }
}

#[tokio::test]
async fn a_reload_is_told_before_anything_of_it_and_nothing_of_the_old_page_follows() {
    let place = place().await;
    let session = &place.session;
    let (mut a, _) = session.join("a", load(1)).await;
    for generation in 1..=8 {
        let (mut b, welcome) = session.join("b", load(10 + generation)).await;
        assert_eq!(welcome["gen"], generation);
        b.messages(1..=3).await;
        b.stored(3).await;
        // Not read by anybody when the next page comes.
        b.messages(4..=5).await;
    }
    let (mut last, mut current) = (0, 1);
    while (current, last) != (8, 3) {
        let frame = a.next().await;
        match (frame["t"].as_str().unwrap(), frame["gen"].as_u64().unwrap()) {
            ("peer", generation) if frame.get("seq").is_some() => {
                assert_eq!(generation, current + 1, "each, in order");
                assert!(last >= 3, "what was acknowledged came before");
                (current, last) = (generation, 0);
            }
            ("msg", generation) => {
                assert_eq!(generation, current, "{frame}");
                last += 1;
                assert_eq!(frame["d"], last.to_string());
            }
            ("peer", _) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_offer_that_waits_unacknowledged_is_there_for_the_page_that_reloads() {
    let place = place().await;
    let session = &place.session;
    let (mut a, _) = session.join("a", load(1)).await;
    let (mut b, _) = session.join("b", load(2)).await;
    a.message(1, "offer").await;
    assert_eq!(b.next_of("msg").await["d"], "offer");
    let (mut b, welcome) = session.join("b", load(3)).await;
    assert_eq!((&welcome["gen"], &welcome["base"]), (&json!(2), &json!(0)));
    assert_eq!(b.next().await["d"], "offer");
}

#[tokio::test]
async fn a_proxy_that_closes_every_socket_ends_nothing_however_it_does_so() {
    let place = place().await;
    let session = &place.session;
    let (mut a, _) = session.join("a", load(1)).await;
    // An unmasked close frame of 1001, which some proxies send when they reload.
    let unmasked = [0x88, 0x02, 0x03, 0xe9];
    for attempt in [1, 3] {
        let (b, _) = session.join("b", resume(2, attempt, 0)).await;
        b.close(1001).await;
        let (mut b, welcome) = session.join("b", resume(2, attempt + 1, 0)).await;
        assert_eq!(welcome["gen"], 1);
        b.send_bytes(&unmasked).await;
        assert!(matches!(b.end().await, 1002 | LOST));
    }
    a.message(1, "for whoever comes back").await;
    let (mut b, welcome) = session.join("b", resume(2, 5, 0)).await;
    assert_eq!(welcome["gen"], 1);
    assert_eq!(b.next_of("msg").await["seq"], 1);
}
