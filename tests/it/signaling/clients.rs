//! The clients against the real relay: Rust and TypeScript understand each other, and the examples do what they say.

use std::{error::Error, process::Stdio};

use serde_json::{Value, json};
use sovereign_relay_client::{
    protocol::{
        platform::Platform,
        signal::frame::{Mood, Opaque, PeerState},
    },
    signal::{
        connection::SendError,
        event::ConnectionEvent,
        invitation::{Invitation, new_secret},
        message::{Candidate, Message},
        session::{Event, Options, Session},
    },
    trust::Trust,
};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::support::{
    DEADLINE,
    relay::{Relay, RelayOptions},
    until,
    world::World,
};

#[allow(dead_code, reason = "its main is called by cargo, not by a test")]
#[path = "../../../client/examples/push.rs"]
mod push_example;
#[allow(dead_code, reason = "its main is called by cargo, not by a test")]
#[path = "../../../client/examples/signal.rs"]
mod signal_example;

#[tokio::test]
async fn the_example_of_two_peers_shakes_hands_over_a_relay() -> Result<(), Box<dyn Error>> {
    let relay = Relay::start(RelayOptions::new()).await;
    timeout(DEADLINE, signal_example::run(&relay.url)).await??;
    let made = relay.metric("relay_session_requests_total", "made").await;
    assert_eq!(made, 1.0);
    until("it cleans up", async || {
        relay.metric("relay_signal_sessions", "").await == 0.0
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn the_example_of_a_push_delivers_it() -> Result<(), Box<dyn Error>> {
    let world = World::start().await;
    let token = world.address(Platform::Ios);
    timeout(
        DEADLINE,
        push_example::run(&world.relay.url, "ios", &token, "sealed"),
    )
    .await??;
    assert_eq!(world.simulators.apns.inbox().all().len(), 1);
    Ok(())
}

/// A page's code in Node, at the other end of the session.
fn node(invitation: &Invitation) -> Child {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/signal.mjs");
    Command::new("node")
        // Node 20 has a WebSocket, but not without being asked.
        .args(["--experimental-websocket", "--no-warnings", script])
        .env("INVITATION", invitation.to_json().as_str())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("Node 20 or newer is needed for this test: install it so that `node` is on the PATH")
}

/// What it says it has heard.
async fn report(node: Child) -> Value {
    let output = timeout(DEADLINE, node.wait_with_output())
        .await
        .expect("it ends")
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn next_message(session: &mut Session) -> Message {
    loop {
        match timeout(DEADLINE, session.next()).await.expect("something comes") {
            Some(Event::Message(message)) => return message,
            Some(Event::Peer(_) | Event::Connected(_) | Event::Delayed { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn candidate() -> Candidate {
    Candidate {
        candidate: "candidate:1 1 udp 1 192.0.2.1 9 typ host".to_owned(),
        sdp_mid: Some("0".to_owned()),
        sdp_m_line_index: Some(0),
        username_fragment: None,
    }
}

fn note(number: u64) -> Message {
    Message::Other {
        kind: "note".to_owned(),
        negotiation: String::new(),
        value: json!({ "number": number, "text": "\u{1f980} and \u{0} and \"" }),
    }
}

#[tokio::test]
async fn the_rust_and_the_typescript_client_understand_each_other_in_both_slots() {
    understand_each_other(&Relay::start(RelayOptions::new()).await).await;
}

#[tokio::test]
async fn both_clients_keep_to_the_limits_of_an_operator_who_allows_little() {
    understand_each_other(&Relay::start(small()).await).await;
}

#[tokio::test]
async fn a_client_lets_pass_what_the_relay_does_and_refuses_what_would_end_the_session() {
    let relay = Relay::start(small()).await;
    let session = relay.open_session(&relay.enroll().await).await;
    let mut a = session.open("a", &session.url);
    let mut b = session.open("b", &session.url);
    let welcomed = timeout(DEADLINE, a.next()).await.expect("a welcome");
    assert!(matches!(welcomed, Some(ConnectionEvent::Connected { .. })));
    let around = r#"{"t":"msg","seq":18446744073709551615,"gen":4294967295,"d":""}"#.len();
    let longest = 24 * 1024 - around;
    let content = |length| Opaque::new("x".repeat(length));
    assert_eq!(
        a.send(content(longest + 1)).await.unwrap_err(),
        SendError::TooLarge
    );
    a.send(content(longest)).await.unwrap().stored().await.unwrap();
    let heard = async {
        loop {
            if let Some(ConnectionEvent::Message { content, .. }) = b.next().await {
                return content.len();
            }
        }
    };
    assert_eq!(timeout(DEADLINE, heard).await.expect("the message"), longest);
}

fn small() -> RelayOptions {
    RelayOptions::new()
        .set("RELAY_SIGNAL_FRAME_BYTES", "24KiB")
        .set("RELAY_SIGNAL_MAILBOX_BYTES", "24KiB")
        .set("RELAY_SIGNAL_MAILBOX_MESSAGES", "30")
        .set("RELAY_SIGNAL_MESSAGES_PER_SECOND", "40")
        .set("RELAY_SIGNAL_BURST", "3")
}

/// Both slots once each: roles, sealing and order differ by slot.
async fn understand_each_other(relay: &Relay) {
    let instance = relay.enroll().await;
    for (ours, theirs) in [("a", "b"), ("b", "a")] {
        let made = relay.session(&instance, json!({})).await;
        let secret = new_secret();
        let node = node(&made.invitation(theirs, &secret));
        let options = Options::new(Trust::system().unwrap());
        let connecting = Session::connect(made.invitation(ours, &secret), &options);
        let mut session = connecting.await.unwrap();
        let negotiation = "first".to_owned();
        let offer = Message::Offer {
            negotiation: negotiation.clone(),
            sdp: "v=0\r\n".to_owned(),
        };
        let candidate = Some(candidate());
        let trickled = Message::Candidate {
            negotiation: negotiation.clone(),
            candidate,
        };
        for message in [offer, trickled].into_iter().chain((1..=20).map(note)) {
            session.send(&message).await.unwrap().stored().await.unwrap();
        }
        let answer = next_message(&mut session).await;
        let expected = Message::Answer {
            negotiation,
            sdp: "v=0\r\n".to_owned(),
        };
        assert!(answer == expected, "{answer:?}");
        for number in 1..=20 {
            assert!(
                next_message(&mut session).await == note(number),
                "in order, as it was"
            );
        }
        session.close(Mood::Direct).await;
        let report = report(node).await;
        assert_eq!(report["slot"], theirs);
        let heard = [&["offer", "candidate"][..], &["note"; 20]].concat();
        assert_eq!(report["heard"], json!(heard));
        assert_eq!(report["violations"], json!([]));
        assert_eq!(report["peer"], json!(PeerState::Left));
    }
}
