//! What the sessions API and the operator's commands do to peers that are connected.

use futures_util::SinkExt as _;
use reqwest::Method;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{
    answer::Instance,
    peer::{load, resume},
    relay::{Relay, RelayOptions},
    sessions::Made,
    turn_server::TurnServer,
};

const RENDEZVOUS: &str = "cVbTqOs9Hk4Qe0dyxKcOlPqzqv0hVZ1mIY4yN2mE3Bw";
const TURN_SECRET: &str = "a secret shared with the TURN server";

/// Both tickets of two instances that met.
async fn meet(relay: &Relay, first: &Instance, second: &Instance) -> Made {
    let wanted = json!({"rendezvous": RENDEZVOUS, "e2e": "optional"});
    let mut session = relay.session(first, wanted.clone()).await;
    session.b = relay.session(second, wanted).await.b;
    session
}

#[tokio::test]
async fn two_instances_meet_at_a_rendezvous_and_their_peers_talk() {
    let relay = Relay::start(RelayOptions::new()).await;
    let (first, second) = (relay.enroll().await, relay.enroll().await);
    let session = meet(&relay, &first, &second).await;
    let (mut a, _) = session.join("a", load(1)).await;
    a.send(json!({"t": "msg", "n": 1, "d": "offer"})).await;
    assert_eq!(a.next_of("ack").await["n"], 1);
    let (mut b, _) = session.join("b", load(2)).await;
    assert_eq!(b.next_of("msg").await["d"], "offer");
    let slots = relay.look_at(&second, &session).await.body["slots"].take();
    assert_eq!(
        (&slots["a"], &slots["b"]),
        (
            &json!({"state": "online", "gen": 1, "queued": 0}),
            &json!({"state": "online", "gen": 1, "queued": 1})
        )
    );
}

#[tokio::test]
async fn a_deleted_session_closes_both_peers_delivers_nothing_more_and_lets_nobody_in() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = relay.session(&instance, json!({"e2e": "optional"})).await;
    let ((mut a, _), (mut b, _)) = (session.join("a", load(1)).await, session.join("b", load(2)).await);
    assert_eq!(relay.delete_session(&instance, &session).await.status, 204);
    // In flight when the session ended: nobody is told of it.
    let late = json!({"t": "msg", "n": 1, "d": "too late"});
    let _ = a.socket.send(Message::text(late.to_string())).await;
    let mut heard = Vec::new();
    let code = loop {
        match b.next_or_end().await {
            Ok(frame) => heard.push(frame),
            Err(code) => break code,
        }
    };
    assert_eq!((code, a.end().await), (4410, 4410));
    assert!(heard.iter().all(|frame| frame["t"] != "msg"), "{heard:?}");
    assert_eq!(session.refusal("a", load(1)).await, 4404);
    assert_eq!(relay.delete_session(&instance, &session).await.status, 404);
}

#[tokio::test]
async fn a_ticket_of_an_earlier_session_at_the_same_rendezvous_is_refused() {
    let relay = Relay::start(RelayOptions::new()).await;
    let (first, second) = (relay.enroll().await, relay.enroll().await);
    let earlier = meet(&relay, &first, &second).await;
    assert_eq!(relay.delete_session(&first, &earlier).await.status, 204);
    let later = meet(&relay, &first, &second).await;
    assert_eq!(earlier.id, later.id);
    assert_eq!(earlier.refusal("a", load(1)).await, 4404);
    later.join("a", load(1)).await;
}

#[tokio::test]
async fn a_revoked_instances_slots_are_closed_and_its_tickets_refused_and_the_other_ones_stay() {
    let relay = Relay::start(RelayOptions::new()).await;
    let (stays, goes) = (relay.enroll().await, relay.enroll().await);
    let session = meet(&relay, &stays, &goes).await;
    let own = relay.session(&stays, json!({})).await;
    let ((mut a, _), (mut b, _), (mut other, _)) = (
        session.join("a", load(1)).await,
        session.join("b", load(2)).await,
        own.join("a", load(1)).await,
    );
    relay.cli(&["instances", "revoke", &goes.id]).await.done();
    assert_eq!(b.end().await, 4403);
    assert_eq!(session.refusal("b", load(1)).await, 4403);
    for peer in [&mut a, &mut other] {
        peer.send(json!({"t": "ping"})).await;
        peer.next_of("pong").await;
    }
}

#[tokio::test]
async fn an_instance_that_withdraws_takes_its_peers_along() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = relay.session(&instance, json!({})).await;
    let (mut a, _) = session.join("a", load(1)).await;
    let withdraw = relay.request(Method::DELETE, "/v1/enrollment");
    let status = withdraw.bearer_auth(&instance.key).send().await.unwrap().status();
    assert_eq!(status.as_u16(), 204);
    assert_eq!(a.end().await, 4403);
}

#[tokio::test]
async fn an_imported_revocation_closes_the_slots_of_its_instance() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = relay.session(&instance, json!({})).await;
    let (mut a, _) = session.join("a", load(1)).await;
    let list = json!({"format": "sovereign-relay-revocations", "version": 1, "entries": [
        {"instanceId": instance.id, "kids": [], "gone": {"at": "2027-01-02T03:04:05Z", "cause": "revoked"}}]});
    let imported = relay
        .admin(Method::PUT, "/admin/v1/revocations", Some(list))
        .await;
    assert_eq!(imported.body, json!({"imported": 1}), "{imported:?}");
    assert_eq!(a.end().await, 4403);
}

#[tokio::test]
async fn a_suspension_leaves_live_sessions_alone() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = relay.session(&instance, json!({})).await;
    let (mut a, _) = session.join("a", load(1)).await;
    let suspend = ["instances", "suspend", &instance.id, "--reason", "a test"];
    relay.cli(&suspend).await.done();
    a.send(json!({"t": "ping"})).await;
    a.next_of("pong").await;
    session.join("b", load(2)).await;
}

#[tokio::test]
async fn at_a_rendezvous_each_peer_is_given_turn_only_if_its_own_instance_may_have_it() {
    let options = RelayOptions::new()
        .set("TURN_URIS", "turn:turn.example")
        .set("TURN_SECRET", TURN_SECRET);
    let relay = Relay::start(options).await;
    let (allowed, other) = (relay.enroll().await, relay.enroll().await);
    relay
        .cli(&["instances", "turn", "allow", &allowed.id])
        .await
        .done();
    let wanted = json!({"rendezvous": RENDEZVOUS, "turn": true});
    for [first, second] in [[&allowed, &other], [&other, &allowed]] {
        let session = relay.session(first, wanted.clone()).await;
        // What the second asks for is not heard: the session is made.
        let joined = relay.session(second, json!({"rendezvous": RENDEZVOUS})).await;
        let (mut a, welcome_of_a) = session.join("a", load(1)).await;
        let (mut b, welcome_of_b) = joined.join("b", load(2)).await;
        for (instance, peer, welcome) in [(first, &mut a, welcome_of_a), (second, &mut b, welcome_of_b)] {
            peer.send(json!({"t": "ice"})).await;
            for given in [welcome, peer.next_of("ice").await] {
                let count = given["iceServers"].as_array().unwrap().len();
                assert_eq!(count, usize::from(instance.id == allowed.id), "{given}");
            }
        }
        assert_eq!(relay.delete_session(first, &session).await.status, 204);
    }
}

#[tokio::test]
async fn peers_of_an_instance_that_may_have_turn_allocate_with_what_welcome_and_ice_give_them() {
    let server = TurnServer::start(&[TURN_SECRET]);
    let options = RelayOptions::new()
        .set("TURN_URIS", "stun:turn.example,turn:turn.example?transport=udp")
        .set("TURN_SECRET", TURN_SECRET);
    let relay = Relay::start(options).await;
    let (allowed, other) = (relay.enroll().await, relay.enroll().await);
    relay
        .cli(&["instances", "turn", "allow", &allowed.id])
        .await
        .done();
    let session = relay.session(&allowed, json!({"turn": true})).await;
    let ((mut a, welcome), (_b, welcome_of_b)) =
        (session.join("a", load(1)).await, session.join("b", load(2)).await);
    a.send(json!({"t": "ice"})).await;
    let ice = a.next_of("ice").await;
    assert!(ice["expiresAt"].is_string(), "{ice}");
    let mut users = Vec::new();
    for given in [&welcome, &welcome_of_b, &ice] {
        let turn = &given["iceServers"][1];
        assert_eq!(turn["urls"], json!(["turn:turn.example?transport=udp"]));
        let (username, credential) = (
            turn["username"].as_str().unwrap(),
            turn["credential"].as_str().unwrap(),
        );
        let mut client = server.client(username, credential).await;
        assert_eq!(client.allocate().await, Ok(()), "{given}");
        users.push(username.split_once(':').unwrap().1.to_owned());
    }
    assert!(users[0] != users[1] && users[0] == users[2], "{users:?}");
    let plain = relay.session(&allowed, json!({})).await;
    let unasked = plain.join("a", load(1)).await.1;
    let session = relay.session(&other, json!({"turn": true})).await;
    let not_allowed = session.join("a", load(1)).await.1;
    relay
        .cli(&["instances", "turn", "deny", &allowed.id])
        .await
        .done();
    let session = relay.session(&allowed, json!({"turn": true})).await;
    let denied = session.join("a", load(1)).await.1;
    for welcome in [unasked, not_allowed, denied] {
        assert_eq!(welcome["iceServers"], json!([]), "{welcome}");
    }
    for secret in [TURN_SECRET, "credential", users[0].as_str()] {
        assert!(!relay.log().contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn a_guest_that_resumes_over_and_over_leaves_turn_for_the_other_sessions_of_its_host() {
    let options = RelayOptions::new()
        .set("TURN_URIS", "turn:turn.example")
        .set("TURN_SECRET", TURN_SECRET)
        .set("RELAY_TURN_FOR", "all")
        .set("RELAY_TURN_PER_MINUTE", "2");
    let relay = Relay::start(options).await;
    let host = relay.enroll().await;
    let [visited, other] = [
        relay.session(&host, json!({"turn": true})).await,
        relay.session(&host, json!({"turn": true})).await,
    ];
    let mut given = Vec::new();
    for attempt in 1..=5 {
        let (mut guest, welcome) = visited.join("b", resume(1, attempt, 0)).await;
        guest.send(json!({"t": "ice"})).await;
        given.extend([welcome, guest.next_of("ice").await].map(|frame| frame["iceServers"].clone()));
    }
    let first = given[0].clone();
    assert!(first[0]["credential"].is_string(), "{first}");
    assert!(given.iter().all(|again| *again == first), "{given:?}");
    let (_peer, welcome) = other.join("a", load(1)).await;
    assert!(welcome["iceServers"][0]["credential"].is_string(), "{welcome}");
    assert_eq!(
        relay.metric("relay_turn_vends_total", r#"outcome="given""#).await,
        2.0
    );
}
