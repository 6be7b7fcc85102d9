//! Two peers talk.

use super::{kit::*, *};

#[actix_web::test]
async fn what_one_says_the_other_hears_in_order_and_once_and_it_is_acknowledged() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut a, welcome) = kit.join(session, "a", load(1)).await;
    assert_eq!(
        (&welcome["role"], &welcome["gen"], &welcome["next"]),
        (&json!("impolite"), &json!(1), &json!(1))
    );
    assert_eq!(welcome["peer"], json!({"state": "absent", "gen": 0}));
    assert_eq!(welcome["iceServers"][0]["urls"][0], "turn:turn.example");
    for n in 1..=21 {
        a.message(n, &format!("{n}")).await;
    }
    while a.next_of("ack").await["n"] != 21 {}
    let (mut b, welcome) = kit.join(session, "b", load(2)).await;
    assert_eq!(welcome["peer"], json!({"state": "online", "gen": 1}));
    for n in 1..=21 {
        let expected = json!({"t": "msg", "seq": n, "gen": 1, "d": format!("{n}")});
        assert_eq!(b.next().await, expected);
    }
    assert_eq!(a.next().await, json!({"t": "peer", "state": "online", "gen": 1}));
    b.message(1, "answer").await;
    assert_eq!(
        a.next().await,
        json!({"t": "msg", "seq": 1, "gen": 1, "d": "answer"})
    );
    assert_eq!(b.next().await, json!({"t": "ack", "n": 1}));
}

#[actix_web::test]
async fn a_newer_connection_takes_over_and_the_peer_sees_nothing_of_it() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut old, _) = kit.join(session, "a", load(1)).await;
    let (mut b, _) = kit.join(session, "b", load(2)).await;
    let (mut new, welcome) = kit.join(session, "a", resume(1, 2, 0)).await;
    assert_eq!(welcome["gen"], 1);
    assert_eq!(old.end().await, Ended::Closed(CloseCode::Replaced.code()));
    drop(old);
    new.message(1, "x").await;
    assert_eq!(b.next().await["t"], "msg");
}

#[actix_web::test]
async fn a_resume_is_welcomed_first_and_gets_what_waited() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (a, _) = kit.join(session, "a", load(1)).await;
    let (mut b, _) = kit.join(session, "b", load(2)).await;
    drop(a);
    for n in 1..=50 {
        b.message(n, &n.to_string()).await;
    }
    while b.next_of("ack").await["n"] != 50 {}
    let (mut a, welcome) = kit.join(session, "a", resume(1, 2, 0)).await;
    assert_eq!((&welcome["base"], &welcome["next"]), (&json!(0), &json!(1)));
    for n in 1..=20 {
        assert_eq!(a.next().await["seq"], n);
    }
    a.send(json!({"t": "ack", "seq": 10})).await;
    drop(a);
    let (mut a, welcome) = kit.join(session, "a", resume(1, 3, 20)).await;
    assert_eq!(welcome["base"], 20);
    for n in 21..=50 {
        assert_eq!(a.next().await["seq"], n);
    }
}

#[actix_web::test]
async fn a_reloaded_page_is_announced_in_the_order_of_messages_and_hears_what_the_old_one_left() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    let (mut b, _) = kit.join(session, "b", load(2)).await;
    assert_eq!(a.next_of("peer").await["gen"], 1);
    a.message(1, "offer").await;
    assert_eq!(b.next().await["d"], "offer");
    b.message(1, "before").await;
    b.next_of("ack").await;
    let (mut reloaded, welcome) = kit.join(session, "b", load(3)).await;
    assert_eq!((&welcome["gen"], &welcome["next"]), (&json!(2), &json!(1)));
    assert_eq!(reloaded.next().await["d"], "offer");
    reloaded.message(1, "after").await;
    assert_eq!(a.next_of("msg").await["d"], "before");
    assert_eq!(
        a.next().await,
        json!({"t": "peer", "state": "online", "gen": 2, "seq": 2})
    );
    assert_eq!(
        a.next().await,
        json!({"t": "msg", "seq": 3, "gen": 2, "d": "after"})
    );
    let mut retired = kit.socket().await;
    retired.hello(session, "b", resume(2, 9, 0)).await;
    assert_eq!(retired.end().await, Ended::Closed(CloseCode::Replaced.code()));
}

#[actix_web::test]
async fn a_lost_peer_is_away_after_two_seconds_and_one_that_said_bye_has_left_at_once() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    let (b, _) = kit.join(session, "b", load(2)).await;
    assert_eq!(a.next().await["state"], "online");
    b.close().await;
    assert_eq!(a.next().await, json!({"t": "peer", "state": "away", "gen": 1}));
    let (mut b, _) = kit.join(session, "b", resume(2, 2, 0)).await;
    assert_eq!(a.next().await["state"], "online");
    b.send(json!({"t": "bye", "mood": "direct"})).await;
    assert_eq!(b.end().await, Ended::Closed(CloseCode::Normal.code()));
    assert_eq!(a.next().await["state"], "left");
}

#[actix_web::test]
async fn a_refused_message_is_said_so_and_those_behind_it_come_in_order_later() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    let (mut b, _) = kit.join(session, "b", load(2)).await;
    // No budget refills while they arrive, however long that takes.
    kit.clock.stop();
    for n in 1..=70 {
        a.message(n, "x").await;
    }
    let refused = a.next_of("err").await;
    assert_eq!(
        refused,
        json!({"t": "err", "n": 61, "code": "rate_limited", "retryMs": 50})
    );
    kit.clock.go_on();
    let mut next = 61;
    while next <= 70 {
        a.message(next, "x").await;
        let answer = a.next().await;
        match answer["t"].as_str().unwrap() {
            "ack" => next = answer["n"].as_u64().unwrap() + 1,
            "err" => tokio::task::yield_now().await,
            _ => {}
        }
    }
    for seq in 1..=70 {
        assert_eq!(b.next_of("msg").await["seq"], seq);
    }
}

#[actix_web::test]
async fn pings_are_answered_and_ice_is_fresh() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    a.send(json!({"t": "ping"})).await;
    assert_eq!(a.next().await, json!({"t": "pong"}));
    for _ in 0..2 {
        a.send(json!({"t": "ice"})).await;
    }
    a.send(json!({"t": "ping"})).await;
    assert_eq!(a.next().await["expiresAt"], "1970-01-01T00:00:00Z");
    assert_eq!(a.next().await, json!({"t": "pong"}), "the second was too soon");
}
