//! What the sessions API and the operator's commands do to peers that are connected.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    relay::{Answer, Instance, Relay, RelayOptions},
    signal_peer::SignalPeer,
    turn_server::TurnServer,
};

const PATH: &str = "/v1/signal/sessions";
const RENDEZVOUS: &str = "cVbTqOs9Hk4Qe0dyxKcOlPqzqv0hVZ1mIY4yN2mE3Bw";
const TURN_SECRET: &str = "a secret shared with the TURN server";

async fn make(relay: &Relay, instance: &Instance, body: Value) -> Value {
    let request = relay.request(Method::POST, PATH).bearer_auth(&instance.key);
    let answer = Answer::from(request.json(&body)).await;
    assert!(answer.status.is_success(), "{answer:?}");
    answer.body
}

async fn call(relay: &Relay, method: Method, instance: &Instance, session: &Value) -> u16 {
    let path = format!("{PATH}/{}", session["sessionId"].as_str().unwrap());
    let request = relay.request(method, &path).bearer_auth(&instance.key);
    request.send().await.unwrap().status().as_u16()
}

/// Both tickets of two instances that met.
async fn meet(relay: &Relay, first: &Instance, second: &Instance) -> Value {
    let wanted = json!({"rendezvous": RENDEZVOUS, "e2e": "optional"});
    let mut session = make(relay, first, wanted.clone()).await;
    session["tickets"]["b"] = make(relay, second, wanted).await["tickets"]["b"].take();
    session
}

fn view_of(session: &Value) -> String {
    format!("{PATH}/{}", session["sessionId"].as_str().unwrap())
}

#[tokio::test]
async fn two_instances_meet_at_a_rendezvous_and_their_peers_talk() {
    let relay = Relay::start(RelayOptions::new()).await;
    let (first, second) = (relay.enroll().await, relay.enroll().await);
    let session = meet(&relay, &first, &second).await;
    let (mut a, _) = SignalPeer::join(&session, "a").await;
    a.send(json!({"t": "msg", "n": 1, "d": "offer"})).await;
    assert_eq!(a.next_of("ack").await["n"], 1);
    let (mut b, _) = SignalPeer::join(&session, "b").await;
    assert_eq!(b.next_of("msg").await["d"], "offer");
    let view = relay
        .request(Method::GET, &view_of(&session))
        .bearer_auth(&second.key);
    let slots = Answer::from(view).await.body["slots"].take();
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
    let session = make(&relay, &instance, json!({"e2e": "optional"})).await;
    let ((mut a, _), (mut b, _)) = (
        SignalPeer::join(&session, "a").await,
        SignalPeer::join(&session, "b").await,
    );
    assert_eq!(call(&relay, Method::DELETE, &instance, &session).await, 204);
    // In flight when the session ended: nobody is told of it.
    let _ = a.try_send(json!({"t": "msg", "n": 1, "d": "too late"})).await;
    let mut heard = Vec::new();
    let code = loop {
        match b.next().await {
            Ok(frame) => heard.push(frame),
            Err(code) => break code,
        }
    };
    assert_eq!((code, a.closed().await), (4410, 4410));
    assert!(heard.iter().all(|frame| frame["t"] != "msg"), "{heard:?}");
    assert_eq!(SignalPeer::dial(&session, "a").await.closed().await, 4404);
    assert_eq!(call(&relay, Method::DELETE, &instance, &session).await, 404);
}

#[tokio::test]
async fn a_ticket_of_an_earlier_session_at_the_same_rendezvous_is_refused() {
    let relay = Relay::start(RelayOptions::new()).await;
    let (first, second) = (relay.enroll().await, relay.enroll().await);
    let earlier = meet(&relay, &first, &second).await;
    assert_eq!(call(&relay, Method::DELETE, &first, &earlier).await, 204);
    let later = meet(&relay, &first, &second).await;
    assert_eq!(earlier["sessionId"], later["sessionId"]);
    assert_eq!(SignalPeer::dial(&earlier, "a").await.closed().await, 4404);
    SignalPeer::join(&later, "a").await;
}

#[tokio::test]
async fn a_revoked_instances_slots_are_closed_and_its_tickets_refused_and_the_other_ones_stay() {
    let relay = Relay::start(RelayOptions::new()).await;
    let (stays, goes) = (relay.enroll().await, relay.enroll().await);
    let session = meet(&relay, &stays, &goes).await;
    let own = make(&relay, &stays, json!({})).await;
    let ((mut a, _), (mut b, _), (mut other, _)) = (
        SignalPeer::join(&session, "a").await,
        SignalPeer::join(&session, "b").await,
        SignalPeer::join(&own, "a").await,
    );
    relay.cli(&["instances", "revoke", &goes.id]).await.done();
    assert_eq!(b.closed().await, 4403);
    assert_eq!(SignalPeer::dial(&session, "b").await.closed().await, 4403);
    for peer in [&mut a, &mut other] {
        peer.send(json!({"t": "ping"})).await;
        peer.next_of("pong").await;
    }
}

#[tokio::test]
async fn an_instance_that_withdraws_takes_its_peers_along() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = make(&relay, &instance, json!({})).await;
    let (mut a, _) = SignalPeer::join(&session, "a").await;
    let withdraw = relay.request(Method::DELETE, "/v1/enrollment");
    let status = withdraw.bearer_auth(&instance.key).send().await.unwrap().status();
    assert_eq!(status.as_u16(), 204);
    assert_eq!(a.closed().await, 4403);
}

#[tokio::test]
async fn an_imported_revocation_closes_the_slots_of_its_instance() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = make(&relay, &instance, json!({})).await;
    let (mut a, _) = SignalPeer::join(&session, "a").await;
    let list = json!({"format": "sovereign-relay-revocations", "version": 1, "entries": [
        {"instanceId": instance.id, "kids": [], "gone": {"at": "2027-01-02T03:04:05Z", "cause": "revoked"}}]});
    let imported = relay
        .admin(Method::PUT, "/admin/v1/revocations", Some(list))
        .await;
    assert_eq!(imported.body, json!({"imported": 1}), "{imported:?}");
    assert_eq!(a.closed().await, 4403);
}

#[tokio::test]
async fn a_suspension_leaves_live_sessions_alone() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = make(&relay, &instance, json!({})).await;
    let (mut a, _) = SignalPeer::join(&session, "a").await;
    let suspend = ["instances", "suspend", &instance.id, "--reason", "a test"];
    relay.cli(&suspend).await.done();
    a.send(json!({"t": "ping"})).await;
    a.next_of("pong").await;
    SignalPeer::join(&session, "b").await;
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
    let session = make(&relay, &allowed, json!({"turn": true})).await;
    let ((mut a, welcome), (_b, welcome_of_b)) = (
        SignalPeer::join(&session, "a").await,
        SignalPeer::join(&session, "b").await,
    );
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
    let plain = make(&relay, &allowed, json!({})).await;
    let unasked = SignalPeer::join(&plain, "a").await.1;
    let session = make(&relay, &other, json!({"turn": true})).await;
    let not_allowed = SignalPeer::join(&session, "a").await.1;
    relay
        .cli(&["instances", "turn", "deny", &allowed.id])
        .await
        .done();
    let session = make(&relay, &allowed, json!({"turn": true})).await;
    let denied = SignalPeer::join(&session, "a").await.1;
    for welcome in [unasked, not_allowed, denied] {
        assert_eq!(welcome["iceServers"], json!([]), "{welcome}");
    }
    for secret in [TURN_SECRET, "credential", users[0].as_str()] {
        assert!(!relay.log().contains(secret), "{secret} is in the log");
    }
}
