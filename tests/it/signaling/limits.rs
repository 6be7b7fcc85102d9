//! Every limit of a session is the operator's to set: what peers are told, and what holds.

use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::SimulatorOptions;

use crate::support::{
    answer::Answer,
    peer::{Peer, load, resume},
    relay::{Relay, RelayOptions},
    until,
    world::World,
};

#[tokio::test]
async fn peers_are_told_the_operators_numbers_wherever_they_ask() {
    let relay = Relay::start(small()).await;
    let instance = relay.enroll().await;
    let limits = json!({
        "frameBytes": 24 * 1024, "mailboxMessages": 3, "mailboxBytes": 24 * 1024,
        "messagesPerSecond": 1, "burst": 5,
    });
    let made = Answer::from(relay.session_request(&instance, &json!({}))).await;
    assert_eq!(made.body["limits"], limits);
    let session = relay.open_session(&instance).await;
    assert_eq!(session.join("a", load(1)).await.1["limits"], limits);
    let capabilities = relay.get("/v1/capabilities").await.body;
    for (name, value) in limits.as_object().unwrap() {
        assert_eq!(capabilities["signaling"][name], *value, "{name}");
    }
}

#[tokio::test]
async fn messages_are_counted_and_measured_by_the_operators_numbers() {
    let relay = Relay::start(small()).await;
    let instance = relay.enroll().await;

    // Three may wait.
    let session = relay.open_session(&instance).await;
    let (mut a, _) = session.join("a", load(1)).await;
    a.messages(1..=4).await;
    assert_eq!(refusal(&mut a).await, json!([4, "mailbox_full"]));

    // 24 KiB may wait, and a frame be as long.
    let session = relay.open_session(&instance).await;
    let (mut a, _) = session.join("a", load(1)).await;
    a.message(1, &"x".repeat(24_000)).await;
    a.stored(1).await;
    a.message(2, &"x".repeat(1_000)).await;
    assert_eq!(refusal(&mut a).await, json!([2, "mailbox_full"]));
    a.message(2, &"x".repeat(25_000)).await;
    assert_eq!(a.end().await, 1009);
}

#[tokio::test]
async fn as_many_messages_come_at_once_as_the_operator_says() {
    let relay = Relay::start(small().set("RELAY_SIGNAL_MAILBOX_MESSAGES", "100")).await;
    let session = relay.open_session(&relay.enroll().await).await;
    let (mut a, _) = session.join("a", load(1)).await;
    // Fewer than come at once by default, and more than one a second makes of five.
    a.messages(1..=50).await;
    let refused = a.next_of("err").await;
    assert_eq!(refused["code"], "rate_limited");
    assert!(refused["n"].as_u64().unwrap() > 5, "{refused}");
    assert!(
        (1..=1000).contains(&refused["retryMs"].as_u64().unwrap()),
        "{refused}"
    );
}

#[tokio::test]
async fn a_session_carries_as_many_messages_as_the_operator_says() {
    let relay = Relay::start(small().set("RELAY_SIGNAL_SESSION_MESSAGES", "2")).await;
    let session = relay.open_session(&relay.enroll().await).await;
    let (mut a, _) = session.join("a", load(1)).await;
    a.messages(1..=3).await;
    assert_eq!(a.end().await, 4413);
}

#[tokio::test]
async fn peers_load_and_resume_as_often_as_the_operator_says() {
    let relay = Relay::start(small()).await;
    let session = relay.open_session(&relay.enroll().await).await;
    session.join("a", load(1)).await;
    session.join("a", load(2)).await;
    for attempt in 2..=4 {
        session.join("a", resume(2, attempt, 0)).await;
    }
    assert_eq!(session.refusal("a", resume(2, 5, 0)).await, 1013);
    assert_eq!(session.refusal("a", load(3)).await, 4429);
    session.join("b", load(4)).await;
}

#[tokio::test]
async fn strangers_crowd_and_guess_as_much_as_the_operator_says() {
    let relay = Relay::start(small()).await;
    let session = relay.open_session(&relay.enroll().await).await;
    let mut first = Peer::connect(&session.url).await;
    // One thread of the relay may be slower than another: without waiting, the second could come before it.
    until("the first is there", async || {
        relay.metric("relay_signal_sockets_before_hello", "").await >= 1.0
    })
    .await;
    let mut second = Peer::connect(&session.url).await;
    let _third = Peer::connect(&session.url).await;
    assert_eq!(first.end().await, 4508);
    // It was the crowd: whoever came next has time left for its `hello`.
    second.hello(session.ticket("b"), load(1)).await;
    assert_eq!(second.next().await["t"], "welcome");

    let mut guess = session.clone();
    guess.a = "no ticket".to_owned();
    assert_eq!(guess.refusal("a", load(1)).await, 4401);
    assert_eq!(session.refusal("a", load(1)).await, 1013);
}

#[tokio::test]
async fn sockets_that_take_all_their_places_leave_connections_for_pushes() {
    let options = RelayOptions::new().set("RELAY_SIGNAL_SOCKETS", "3");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let relay = &world.relay;
    let instance = relay.enroll().await;
    let session = relay.open_session(&instance).await;
    let other = relay.open_session(&instance).await;
    // A quarter of three places is one for each address; the relay believes its neighbours on loopback.
    let mut here = Vec::new();
    for (made, slot, address) in [(&session, "a", "1"), (&session, "b", "2"), (&other, "a", "3")] {
        let mut peer = Peer::connect_from(&made.url, &format!("203.0.113.{address}")).await;
        peer.hello(made.ticket(slot), load(1)).await;
        assert_eq!(peer.next().await["t"], "welcome");
        here.push(peer);
    }
    assert_eq!(relay.metric("relay_signal_welcomed_sockets", "").await, 3.0);
    for (address, full) in [("203.0.113.1", "address"), ("203.0.113.4", "all")] {
        let mut late = Peer::connect_from(&other.url, address).await;
        late.hello(other.ticket("b"), load(2)).await;
        assert_eq!(late.end().await, 1013, "{full}");
        let label = format!(r#"full="{full}""#);
        assert_eq!(
            relay.metric("relay_signal_refused_sockets_total", &label).await,
            1.0
        );
    }
    let push = json!({ "deviceToken": world.address(Platform::Ios), "platform": "ios", "encryptedPayload": "sealed" });
    assert_eq!(relay.push(&instance, &push).await.word(), "sent");
    here.remove(0).close(1000).await;
    until("its place is free", async || {
        relay.metric("relay_signal_welcomed_sockets", "").await == 2.0
    })
    .await;
    let (mut late, _) = other.join("b", load(2)).await;
    late.message(1, "there is a place again").await;
    assert_eq!(here.remove(1).next_of("msg").await["seq"], 1);
}

#[tokio::test]
async fn however_many_sockets_come_a_push_finds_a_connection() {
    let options = RelayOptions::new().set("RELAY_CONNECTIONS", "100");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let relay = &world.relay;
    let instance = relay.enroll().await;
    // Sixty may have been welcomed, fifteen of an address.
    let mut crowd = Vec::new();
    for number in 0..40 {
        let session = relay.open_session(&instance).await;
        for slot in ["a", "b"] {
            let mut peer = Peer::connect_from(&session.url, &format!("203.0.113.{number}")).await;
            peer.hello(session.ticket(slot), load(1)).await;
            crowd.push((peer, session.url.clone()));
        }
    }
    // Silent ones, and such as are told to leave and don't: each alone would fill the listener.
    let url = crowd[0].1.clone();
    for number in 0..200 {
        let mut peer = Peer::connect_from(&url, &format!("198.51.100.{number}")).await;
        if number % 2 == 0 {
            peer.send_text("{").await;
        }
        crowd.push((peer, url.clone()));
    }
    // On a connection of its own.
    let stranger = reqwest::Client::builder().no_proxy().build().unwrap();
    let push = json!({ "deviceToken": world.address(Platform::Ios), "platform": "ios", "encryptedPayload": "sealed" });
    let request = stranger
        .post(format!("{}/v1/push", relay.url))
        .bearer_auth(&instance.key)
        .json(&push);
    assert_eq!(Answer::from(request).await.word(), "sent");
    until("all places are taken", async || {
        relay.metric("relay_signal_welcomed_sockets", "").await == 60.0
    })
    .await;
    let crowds = [
        "relay_signal_sockets_before_hello",
        "relay_signal_leaving_sockets",
    ];
    for name in crowds {
        assert!(relay.metric(name, "").await <= 10.0, "{name}");
    }
}

fn small() -> RelayOptions {
    RelayOptions::new()
        .set("RELAY_SIGNAL_FRAME_BYTES", "24KiB")
        .set("RELAY_SIGNAL_MESSAGES_PER_SECOND", "1")
        .set("RELAY_SIGNAL_BURST", "5")
        .set("RELAY_SIGNAL_MAILBOX_MESSAGES", "3")
        .set("RELAY_SIGNAL_MAILBOX_BYTES", "24KiB")
        .set("RELAY_SIGNAL_LOADS_PER_MINUTE", "2")
        .set("RELAY_SIGNAL_RESUMES_PER_MINUTE", "3")
        .set("RELAY_SIGNAL_SOCKETS_BEFORE_HELLO_PER_ADDRESS", "2")
        .set("RELAY_SIGNAL_BAD_TICKETS_PER_MINUTE", "1")
}

/// Number and code of the next refusal.
async fn refusal(peer: &mut Peer) -> Value {
    let refused = peer.next_of("err").await;
    json!([refused["n"], refused["code"]])
}
