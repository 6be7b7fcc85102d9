//! Bytes, frames, fields and tickets that are wrong: whoever sends them loses that socket, and nobody else anything.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{
    answer::Instance,
    clock::HandClock,
    in_process::InProcess,
    peer::{LOST, Peer, hello, load},
    relay::{Relay, RelayOptions},
    sessions::open_session_at,
    until,
};

/// Two peers whom nothing of all this concerns.
struct Neighbours {
    a: Peer,
    b: Peer,
    said: u64,
}

impl Neighbours {
    async fn new(relay: &Relay, instance: &Instance) -> Self {
        let session = relay.open_session(instance).await;
        let (a, _) = session.join("a", load(1)).await;
        let (b, _) = session.join("b", load(2)).await;
        Self { a, b, said: 0 }
    }

    /// Says one thing, which arrives, and nothing before it.
    async fn talk(&mut self) {
        self.said += 1;
        self.a.message(self.said, "unhindered").await;
        let expected = json!({ "t": "msg", "seq": self.said, "gen": 1, "d": "unhindered" });
        assert_eq!(self.b.next().await, expected);
    }
}

/// Text that is no frame of the protocol, and the close codes that it may bring.
fn texts() -> Vec<(String, &'static [u16])> {
    let deep = "[".repeat(10_000);
    let nested = format!("{deep}{}", "]".repeat(10_000));
    vec![
        ("{".to_owned(), &[4400]),
        ("null".to_owned(), &[4400]),
        ("[]".to_owned(), &[4400]),
        (r#"{"t":1}"#.to_owned(), &[4400]),
        (r#"{"t":"msg","n":1,"d":"\ud800"}"#.to_owned(), &[4400]),
        (r#"{"t":"msg","n":"1","d":""}"#.to_owned(), &[4400]),
        (r#"{"t":"msg","n":9,"d":""}"#.to_owned(), &[4500]),
        (r#"{"t":"ack","seq":9}"#.to_owned(), &[4404]),
        (nested.clone(), &[4400]),
        (format!(r#"{{"t":"msg","n":{nested},"d":""}}"#), &[4400]),
        (format!(r#"{{"t":"msg","d":{deep}"#), &[4400]),
        ("x".repeat(40_000), &[1009, LOST]),
    ]
}

/// Bytes that are no frames: binary, not UTF-8, unmasked, reserved bits, a wrong order of opcodes, too long.
const BYTES: [(&[u8], &[u16]); 7] = [
    (&[0x82, 0x81, 0, 0, 0, 0, b'x'], &[1003]),
    (&[0x81, 0x81, 0, 0, 0, 0, 0xff], &[1007]),
    (&[0x81, 0x01, b'x'], &[1002]),
    (&[0xc1, 0x81, 0, 0, 0, 0, b'x'], &[1002]),
    (&[0x80, 0x81, 0, 0, 0, 0, b'x'], &[1002]),
    (&[0x83, 0x80, 0, 0, 0, 0], &[1002]),
    (&[0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[1009]),
];

#[tokio::test]
async fn what_is_no_frame_closes_its_own_socket_and_no_other() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let mut neighbours = Neighbours::new(&relay, &instance).await;
    for (text, codes) in texts() {
        let session = relay.open_session(&instance).await;
        let (mut peer, _) = session.join("a", load(1)).await;
        peer.send_text(&text).await;
        let end = peer.end().await;
        assert!(codes.contains(&end), "{end} for {text:.60}");
        neighbours.talk().await;
    }
    for (bytes, codes) in BYTES {
        let session = relay.open_session(&instance).await;
        let (mut peer, _) = session.join("a", load(1)).await;
        peer.send_bytes(bytes).await;
        let end = peer.end().await;
        assert!(codes.contains(&end), "{end} for {bytes:?}");
        neighbours.talk().await;
    }
}

/// Every wrong thing once, each on a socket of its own that never says who it is.
async fn a_round_of_strangers(url: &str) {
    let texts = texts().into_iter().map(async |(text, _)| {
        let mut peer = Peer::connect(url).await;
        peer.send_text(&text).await;
        peer.end().await
    });
    let bytes = BYTES.into_iter().map(async |(bytes, _)| {
        let mut peer = Peer::connect(url).await;
        peer.send_bytes(bytes).await;
        peer.end().await
    });
    let ends = futures_util::future::join(
        futures_util::future::join_all(texts),
        futures_util::future::join_all(bytes),
    );
    let (texts, bytes) = ends.await;
    let expected = [1002, 1003, 1007, 1009, 4400, LOST];
    assert!(texts.iter().chain(&bytes).all(|end| expected.contains(end)));
}

#[tokio::test]
async fn strangers_that_send_nonsense_all_the_time_take_no_memory_that_stays() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = relay.open_session(&instance).await;
    let mut neighbours = Neighbours::new(&relay, &instance).await;
    for _ in 0..10 {
        a_round_of_strangers(&session.url).await;
    }
    let before_kib = relay.resident_kib();
    for _ in 0..40 {
        a_round_of_strangers(&session.url).await;
    }
    neighbours.talk().await;
    let grown_kib = relay.resident_kib().saturating_sub(before_kib);
    // What 760 sockets sent was 3 MiB; had each left one buffer of a frame's length, this would be 24.
    assert!(grown_kib < 8 * 1024, "grown by {grown_kib} KiB");
    until("all are gone", async || {
        relay.metric("relay_signal_sockets_before_hello", "").await == 0.0
    })
    .await;
}

#[tokio::test]
async fn fields_that_a_client_has_no_say_in_are_ignored_and_nothing_reaches_another_session() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let mut neighbours = Neighbours::new(&relay, &instance).await;
    let (session, other) = (
        relay.open_session(&instance).await,
        relay.open_session(&instance).await,
    );
    let (mut others, _) = other.join("b", load(9)).await;
    let forged = json!({
        "to": other.id, "from": other.id, "sid": other.id, "session": other.id, "sessionId": other.id,
        "slot": "b", "gen": 7, "seq": 99, "peer": "b", "role": "polite", "epoch": 1, "instance": "x",
    });
    let with_forged = |mut frame: Value| {
        let fields = frame.as_object_mut().unwrap();
        for (name, value) in forged.as_object().unwrap() {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
        frame
    };
    let mut a = Peer::connect(&session.url).await;
    a.send(with_forged(hello(&session.a, load(1)))).await;
    let welcome = a.next().await;
    assert_eq!((&welcome["slot"], &welcome["gen"]), (&json!("a"), &json!(1)));
    let (mut b, _) = session.join("b", load(2)).await;
    for n in 1..=3 {
        a.send(with_forged(json!({ "t": "msg", "n": n, "d": "forged" })))
            .await;
        let expected = json!({ "t": "msg", "seq": n, "gen": 1, "d": "forged" });
        assert_eq!(b.next().await, expected);
    }
    a.send(with_forged(json!({ "t": "peer", "state": "left" }))).await;
    a.send(with_forged(json!({ "t": "bye", "mood": "direct" }))).await;
    assert_eq!(a.end().await, 1000);
    let left = json!({ "t": "peer", "state": "left", "gen": 1 });
    assert_eq!(b.next().await, left);
    assert_eq!(others.so_far().await, [] as [Value; 0]);
    let (mut their_peer, _) = other.join("a", load(8)).await;
    their_peer.message(1, "the first").await;
    assert_eq!(others.next_of("msg").await["seq"], 1);
    neighbours.talk().await;
}

#[tokio::test]
async fn an_edited_ticket_is_refused_and_after_ten_of_them_their_address_has_to_wait() {
    let relay = InProcess::start(HandClock::new().ports()).await;
    let session = open_session_at(&relay.url).await;
    let (mut inside, _) = session.join("b", load(2)).await;
    let mut guesses = 0;
    let mut barred = 0;
    for at in 0..12 {
        let mut edited = session.clone();
        let place = at * (edited.a.len() - 1) / 11;
        let other = if edited.a.as_bytes()[place] == b'A' {
            "B"
        } else {
            "A"
        };
        edited.a.replace_range(place..=place, other);
        match edited.refusal("a", load(1)).await {
            4401 => guesses += 1,
            1013 => barred += 1,
            other => panic!("{other} for an edit at {place}"),
        }
    }
    assert_eq!((guesses, barred), (10, 2));
    assert_eq!(
        session.refusal("a", load(1)).await,
        1013,
        "a final code would hurt neighbours"
    );
    assert_eq!(inside.so_far().await, [] as [Value; 0], "whoever is in stays in");
}

#[tokio::test]
async fn session_ids_are_128_bits_and_no_two_are_alike() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let mut ids = HashSet::new();
    for _ in 0..50 {
        let session = relay.open_session(&instance).await;
        assert!(session.id.len() >= 22 && session.a != session.b);
        ids.insert(session.id);
    }
    assert_eq!(ids.len(), 50);
}
