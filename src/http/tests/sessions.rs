//! The sessions API over HTTP, with sessions in memory.

mod rendezvous;

use std::{collections::HashSet, time::Duration};

use serde_json::{Value, json};
use sovereign_relay_actors::{
    instance::signal::{SessionRefusal, TurnFor},
    session::port::{Bind, BindRefusal, Bound, ConnectionHash, Gone},
};
use sovereign_relay_protocol::{id::InstanceId, signal::id::Slot};

use super::kit::{Answer, Relay, Request, Setup};
use crate::{auth::TicketClaims, store::sessions::SessionBounds};

const PATH: &str = "/v1/signal/sessions";
const RENDEZVOUS: &str = "cVbTqOs9Hk4Qe0dyxKcOlPqzqv0hVZ1mIY4yN2mE3Bw";

async fn create(relay: &Relay, key: &str, body: &Value) -> Answer {
    relay.send(Request::new("POST", PATH).key(key).json(body)).await
}

async fn one(relay: &Relay, method: &str, key: &str, id: &str) -> Answer {
    let request = Request::new(method, &format!("{PATH}/{id}")).key(key);
    relay.send(request).await
}

async fn made(relay: &Relay, key: &str, body: Value) -> Value {
    let answer = create(relay, key, &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

fn id_of(session: &Value) -> &str {
    session["sessionId"].as_str().unwrap()
}

/// What a ticket of an answer says.
fn claims(relay: &Relay, session: &Value, slot: &str) -> TicketClaims {
    let ticket = session["tickets"][slot].as_str().unwrap();
    let tickets = relay.services.authority.tickets();
    tickets.verify(ticket, relay.services.now().unix).unwrap()
}

/// Takes a slot as the WebSocket endpoint would.
async fn bind(relay: &Relay, claims: TicketClaims) -> Result<Bound, BindRefusal> {
    let bind = Bind {
        slot: claims.slot,
        incarnation: claims.incarnation,
        connection: ConnectionHash(7),
        attempt: 1,
        last: 0,
    };
    relay.services.signaling.store.bind(claims.session, bind).await
}

fn seconds(answer: &Answer, header: &str) -> u64 {
    answer.header(header).unwrap().parse().unwrap()
}

#[actix_web::test]
async fn a_creator_gets_both_tickets_and_all_that_its_peers_need() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    for body in [
        None,
        Some(json!({})),
        Some(json!({"ttlSeconds": null, "later": 1})),
    ] {
        let request = Request::new("POST", PATH).key(&key);
        let request = body.iter().fold(request, |request, body| request.json(body));
        let answer = relay.send(request).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let session = answer.json();
        assert_eq!(session["url"], "ws://relay/v1/signal");
        assert_eq!(
            session["limits"],
            json!({"frameBytes": 32768, "mailboxMessages": 256, "mailboxBytes": 524_288,
                   "messagesPerSecond": 20, "burst": 60})
        );
        let (a, b) = (claims(&relay, &session, "a"), claims(&relay, &session, "b"));
        assert_eq!((a.slot, b.slot), (Slot::A, Slot::B));
        assert_eq!(
            (a.session.to_string(), a.session, a.incarnation, a.instance),
            (id_of(&session).to_owned(), b.session, b.incarnation, b.instance)
        );
        let life = a.expires_at.0 - relay.services.now().unix.0;
        assert!((115_000..=121_000).contains(&life), "{life}");
    }
}

#[actix_web::test]
async fn no_two_sessions_share_an_id_or_an_incarnation() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let session = made(&relay, &key, json!({})).await;
        let claims = claims(&relay, &session, "a");
        assert!(seen.insert(claims.session.to_string()));
        assert!(seen.insert(claims.incarnation.0.to_string()));
    }
}

#[actix_web::test]
async fn what_is_out_of_bounds_makes_no_session_and_costs_no_budget() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    for (body, named) in [
        (json!([]), "object"),
        (json!({"ttlSeconds": 29}), "ttlSeconds"),
        (json!({"ttlSeconds": 601}), "ttlSeconds"),
        (json!({"turn": "yes"}), "documented fields"),
        (json!({"e2e": "never"}), "documented fields"),
        (json!({"rendezvous": "r".repeat(21)}), "rendezvous"),
        (json!({"rendezvous": "r".repeat(129)}), "rendezvous"),
        (json!({"rendezvous": "+".repeat(43)}), "rendezvous"),
    ] {
        let answer = create(&relay, &key, &body).await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{body}");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(named), "{message}");
    }
    let unread = Request::new("POST", PATH).key(&key).body("application/json", "{");
    assert_eq!(relay.send(unread).await.status, 400);
    let other_type = Request::new("POST", PATH).key(&key).body("text/plain", "{}");
    assert_eq!(relay.send(other_type).await.status, 415);
    assert!(relay.permits.asked.lock().unwrap().is_empty());
}

#[actix_web::test]
async fn a_key_is_needed_for_each_route() {
    let relay = Relay::start().await;
    let session = made(&relay, &relay.enroll().await, json!({})).await;
    let path = format!("{PATH}/{}", id_of(&session));
    for (method, path) in [("POST", PATH), ("GET", path.as_str()), ("DELETE", path.as_str())] {
        let answer = relay.send(Request::new(method, path)).await;
        assert_eq!(answer.refusal(), (401, "unauthorized".to_owned()), "{method}");
        let ticket = session["tickets"]["a"].as_str().unwrap();
        let answer = relay.send(Request::new(method, path).key(ticket)).await;
        assert_eq!(
            answer.refusal(),
            (401, "unauthorized".to_owned()),
            "a ticket is no key: {method}"
        );
    }
}

#[actix_web::test]
async fn a_session_is_shown_to_its_instances_and_is_unknown_to_all_others() {
    let relay = Relay::start().await;
    let (own, other) = (relay.enroll().await, relay.enroll().await);
    let session = made(&relay, &own, json!({})).await;
    bind(&relay, claims(&relay, &session, "a")).await.unwrap();
    let view = one(&relay, "GET", &own, id_of(&session)).await;
    assert_eq!(view.status, 200);
    assert_eq!(
        view.json(),
        json!({"sessionId": session["sessionId"], "expiresAt": session["expiresAt"], "slots": {
            "a": {"state": "online", "gen": 1, "queued": 0}, "b": {"state": "absent", "gen": 0, "queued": 0}}})
    );
    let long = "A".repeat(300);
    for method in ["GET", "DELETE"] {
        for (key, id) in [
            (&other, id_of(&session)),
            (&own, "AAAAAAAAAAAAAAAAAAAAAA"),
            (&own, "short"),
            (&own, "%00"),
            (&own, long.as_str()),
        ] {
            let answer = one(&relay, method, key, id).await;
            assert_eq!(answer.refusal(), (404, "not_found".to_owned()), "{method} {id}");
        }
    }
    assert_eq!(
        one(&relay, "GET", &own, id_of(&session)).await.status,
        200,
        "still there"
    );
}

#[actix_web::test]
async fn an_ended_session_is_gone_for_both_and_for_good() {
    let relay = Relay::start().await;
    let (first, second) = (relay.enroll().await, relay.enroll().await);
    let wanted = json!({"rendezvous": RENDEZVOUS});
    let session = made(&relay, &first, wanted.clone()).await;
    assert_eq!(create(&relay, &second, &wanted).await.status, 200);
    // Whoever has a place in it may end it.
    let ended = one(&relay, "DELETE", &second, id_of(&session)).await;
    assert_eq!((ended.status, ended.body.len()), (204, 0));
    for key in [&first, &second] {
        for method in ["GET", "DELETE"] {
            assert_eq!(one(&relay, method, key, id_of(&session)).await.status, 404);
        }
    }
    let refused = bind(&relay, claims(&relay, &session, "a")).await;
    assert!(matches!(refused, Err(BindRefusal::Gone(Gone::NoSession))));
}

#[actix_web::test]
async fn what_the_instance_may_not_is_told_with_its_code_and_its_moment() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let session = made(&relay, &key, json!({})).await;
    let minute = Duration::from_secs(60);
    for (refusal, expected, moment) in [
        (
            SessionRefusal::Suspended {
                retry_after: Some(minute),
            },
            (403, "suspended"),
            Some(60),
        ),
        (
            SessionRefusal::Suspended { retry_after: None },
            (403, "suspended"),
            None,
        ),
        (
            SessionRefusal::TooOften {
                retry_after: Duration::from_millis(500),
            },
            (429, "rate_limited"),
            Some(1),
        ),
        (SessionRefusal::Draining, (503, "draining"), Some(1)),
        (SessionRefusal::Unavailable, (503, "overloaded"), Some(1)),
    ] {
        *relay.permits.refusal.lock().unwrap() = Some(refusal);
        let answer = create(&relay, &key, &json!({})).await;
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()));
        let told = moment.map(|_| seconds(&answer, "retry-after"));
        assert_eq!(told, moment, "{refusal:?}");
        assert_eq!(answer.header("retry-after").is_some(), moment.is_some());
    }
    assert_eq!(
        one(&relay, "GET", &key, id_of(&session)).await.status,
        200,
        "creation only"
    );
    assert_eq!(one(&relay, "DELETE", &key, id_of(&session)).await.status, 204);
}

#[actix_web::test]
async fn an_instance_at_its_cap_is_refused_and_keeps_its_sessions_and_so_does_its_neighbour() {
    let relay = Relay::start_as(Setup {
        bounds: SessionBounds {
            sessions_per_instance: 3,
            ..SessionBounds::default()
        },
        ..Setup::default()
    })
    .await;
    let (greedy, modest) = (relay.enroll().await, relay.enroll().await);
    let kept = made(&relay, &modest, json!({})).await;
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(made(&relay, &greedy, json!({})).await);
    }
    let refused = create(&relay, &greedy, &json!({})).await;
    assert_eq!(refused.refusal(), (429, "rate_limited".to_owned()));
    assert!(seconds(&refused, "retry-after") >= 1);
    assert_eq!(one(&relay, "GET", &modest, id_of(&kept)).await.status, 200);
    for session in &own {
        assert_eq!(one(&relay, "GET", &greedy, id_of(session)).await.status, 200);
    }
    assert_eq!(one(&relay, "DELETE", &greedy, id_of(&own[0])).await.status, 204);
    made(&relay, &greedy, json!({})).await;
    made(&relay, &modest, json!({})).await;
}

#[actix_web::test]
async fn with_all_mailboxes_full_no_session_is_made_and_the_caller_may_come_back() {
    let relay = Relay::start_as(Setup {
        bounds: SessionBounds {
            total_bytes: 0,
            ..SessionBounds::default()
        },
        ..Setup::default()
    })
    .await;
    let key = relay.enroll().await;
    let refused = create(&relay, &key, &json!({})).await;
    assert_eq!(refused.refusal(), (503, "overloaded".to_owned()));
    assert!(seconds(&refused, "retry-after") >= 1);
}

#[actix_web::test]
async fn turn_is_the_sessions_setting_and_whose_peers_may_have_it_stands_in_the_tickets() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    for (wanted, turn) in [(json!({}), false), (json!({"turn": true}), true)] {
        let session = made(&relay, &key, wanted).await;
        let (_, asked) = *relay.permits.asked.lock().unwrap().last().unwrap();
        assert_eq!(asked, TurnFor::All, "as configured");
        for slot in ["a", "b"] {
            let claims = claims(&relay, &session, slot);
            assert!(claims.may_turn);
            let bound = bind(&relay, claims).await.unwrap();
            assert_eq!(bound.settings.turn, turn);
        }
    }
}

#[actix_web::test]
async fn the_url_is_the_configured_one_or_what_the_caller_and_its_trusted_proxy_say() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let proxied = Request::new("POST", PATH)
        .key(&key)
        .header("X-Forwarded-Proto", "https");
    assert_eq!(relay.send(proxied).await.json()["url"], "wss://relay/v1/signal");
    let known = Relay::start_as(Setup {
        public_url: Some("https://relay.example/"),
        ..Setup::default()
    })
    .await;
    let key = known.enroll().await;
    let session = made(&known, &key, json!({})).await;
    assert_eq!(session["url"], "wss://relay.example/v1/signal");
    let stranger = Relay::start_as(Setup {
        trusted: vec![],
        ..Setup::default()
    })
    .await;
    let key = stranger.enroll().await;
    let lied = Request::new("POST", PATH)
        .key(&key)
        .header("X-Forwarded-Proto", "https");
    assert_eq!(stranger.send(lied).await.json()["url"], "ws://relay/v1/signal");
}

#[actix_web::test]
async fn a_withdrawn_instance_is_gone_for_tickets_too() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let session = made(&relay, &key, json!({})).await;
    let instance: InstanceId = claims(&relay, &session, "a").instance;
    assert!(!relay.services.authority.is_gone(instance));
    let withdraw = Request::new("DELETE", "/v1/enrollment").key(&key);
    assert_eq!(relay.send(withdraw).await.status, 204);
    assert!(relay.services.authority.is_gone(instance));
    let refused = create(&relay, &key, &json!({})).await;
    assert_eq!(refused.refusal(), (401, "revoked".to_owned()));
}

#[actix_web::test]
async fn a_rotated_key_leaves_tickets_as_they_are() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let session = made(&relay, &key, json!({})).await;
    let rotate = Request::new("POST", "/v1/keys/rotate")
        .key(&key)
        .json(&json!({"graceSeconds": 0}));
    assert_eq!(relay.send(rotate).await.status, 200);
    let claims = claims(&relay, &session, "a");
    assert!(!relay.services.authority.is_gone(claims.instance));
}

#[actix_web::test]
async fn capabilities_say_what_is_spoken_and_how_much_a_session_carries() {
    let relay = Relay::start().await;
    let signaling = relay.send(Request::new("GET", "/v1/capabilities")).await.json()["signaling"].take();
    assert_eq!(
        signaling,
        json!({"subprotocols": ["sovereign.signal.v1"], "durability": "memory", "frameBytes": 32768,
               "mailboxMessages": 256, "mailboxBytes": 524_288, "messagesPerSecond": 20, "burst": 60})
    );
}
