//! Who may enroll: everybody, whoever was invited, nobody; and by which address they are counted.

use std::time::Instant;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use sovereign_relay_protocol::limits::ENROLLMENTS_PER_MINUTE;

use crate::support::{
    relay::{Answer, Relay, RelayOptions},
    until,
};

fn enroll(relay: &Relay) -> RequestBuilder {
    relay.request(Method::POST, "/v1/enroll")
}

/// Enrolls, each time as somebody else, until it is refused as the same one.
async fn refusal(relay: &Relay) -> Answer {
    let (began, mut enrolled) = (Instant::now(), 0);
    let refused = loop {
        let address = format!("203.0.113.{enrolled}");
        let answer = Answer::from(enroll(relay).header("x-forwarded-for", address)).await;
        if answer.status != 200 {
            break answer;
        }
        enrolled += 1;
    };
    let most = f64::from(ENROLLMENTS_PER_MINUTE) * (1.0 + began.elapsed().as_secs_f64() / 60.0);
    assert!(
        enrolled >= ENROLLMENTS_PER_MINUTE && f64::from(enrolled) <= most,
        "{enrolled} of {most}"
    );
    refused
}

async fn invited(relay: &Relay, invite: &str) -> (u16, Value) {
    let answer = Answer::from(enroll(relay).bearer_auth(invite)).await;
    (answer.status.as_u16(), answer.body["error"].clone())
}

async fn invite(relay: &Relay, ttl: &str) -> String {
    let created = relay.cli(&["invite", "create", "--ttl", ttl]).await;
    assert!(created.err.contains("usable once, until"), "{created:?}");
    created.done().trim().to_owned()
}

#[tokio::test]
async fn a_closed_relay_enrolls_nobody_and_serves_those_it_has() {
    let open = Relay::start(RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", "a".repeat(40))).await;
    let known = open.enroll().await;
    let options = RelayOptions::new()
        .set("RELAY_ENROLLMENT_SECRET", "a".repeat(40))
        .set("RELAY_ENROLLMENT", "closed");
    let closed = Relay::start(options).await;
    let created = invite(&closed, "1h").await;
    for request in [
        enroll(&closed),
        enroll(&closed).bearer_auth(created),
        enroll(&closed).body("{}"),
    ] {
        let answer = Answer::from(request).await;
        assert_eq!(
            (answer.status.as_u16(), answer.word()),
            (403, "enrollment_closed")
        );
        assert!(
            !answer.headers.contains_key("retry-after"),
            "waiting does not help"
        );
    }
    let rotated = closed
        .request(Method::POST, "/v1/keys/rotate")
        .bearer_auth(&known.key);
    assert_eq!(
        Answer::from(rotated).await.status,
        200,
        "who is enrolled stays so"
    );
}

#[tokio::test]
async fn an_invite_is_good_for_one_enrollment_and_none_other_is_good_at_all() {
    let relay = Relay::start(RelayOptions::new().set("RELAY_ENROLLMENT", "invite")).await;
    let unauthorized = (401, Value::from("unauthorized"));
    let bare = Answer::from(enroll(&relay)).await;
    assert_eq!((bare.status.as_u16(), bare.word()), (401, "unauthorized"));
    assert_eq!(bare.headers["www-authenticate"], "Bearer");
    assert_eq!(invited(&relay, "not-an-invite").await, unauthorized);
    let given = invite(&relay, "1h").await;
    let mut altered = given.clone().into_bytes();
    altered[0] = if altered[0] == b'A' { b'B' } else { b'A' };
    assert_eq!(
        invited(&relay, std::str::from_utf8(&altered).unwrap()).await,
        unauthorized
    );
    let malformed = Answer::from(enroll(&relay).bearer_auth(&given).body("{\"name\":7}")).await;
    assert_eq!(malformed.word(), "invalid_request");
    assert_eq!(
        invited(&relay, &given).await.0,
        200,
        "what failed before did not use it up"
    );
    assert_eq!(invited(&relay, &given).await, unauthorized, "used up");
    assert_eq!(
        relay.cli(&["invite", "list", "--json"]).await.json()["invites"],
        Value::Array(vec![])
    );
}

#[tokio::test]
async fn an_invite_is_used_up_by_one_of_many_that_come_at_once() {
    let relay = Relay::start(RelayOptions::new().set("RELAY_ENROLLMENT", "invite")).await;
    let given = invite(&relay, "1h").await;
    let attempts = (0..20).map(|number| {
        let request = enroll(&relay).header("x-forwarded-for", format!("203.0.113.{number}"));
        Answer::from(request.bearer_auth(&given))
    });
    let answers = futures_util::future::join_all(attempts).await;
    let accepted = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(accepted, 1, "{answers:?}");
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 200 || answer.word() == "unauthorized")
    );
}

#[tokio::test]
async fn an_expired_invite_is_no_invite() {
    let relay = Relay::start(RelayOptions::new().set("RELAY_ENROLLMENT", "invite")).await;
    let (short, long) = (invite(&relay, "1s").await, invite(&relay, "1h").await);
    until("the short one is no longer listed", async || {
        let answer = relay.admin(Method::GET, "/admin/v1/invites", None).await;
        answer.body["invites"].as_array().unwrap().len() == 1
    })
    .await;
    assert_eq!(invited(&relay, &short).await.0, 401);
    assert_eq!(invited(&relay, &long).await.0, 200);
}

#[tokio::test]
async fn with_no_trusted_proxy_an_address_is_the_peers_whatever_a_header_says() {
    let relay = Relay::start(RelayOptions::new().set("RELAY_TRUSTED_PROXIES", "none")).await;
    let refused = refusal(&relay).await;
    assert_eq!((refused.status.as_u16(), refused.word()), (429, "rate_limited"));
    assert!((1..=60).contains(&refused.retry_after()));
}

#[tokio::test]
async fn only_a_proxy_that_is_named_is_believed() {
    let elsewhere =
        Relay::start(RelayOptions::new().set("RELAY_TRUSTED_PROXIES", "10.0.0.0/8,192.0.2.1")).await;
    let named = Relay::start(RelayOptions::new().set("RELAY_TRUSTED_PROXIES", "127.0.0.1")).await;
    let refused = refusal(&elsewhere).await;
    assert_eq!(refused.status, 429, "127.0.0.1 is none of them");
    for number in 0..=ENROLLMENTS_PER_MINUTE {
        named.enroll_from(&format!("203.0.113.{number}")).await;
    }
}
