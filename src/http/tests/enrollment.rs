//! Enrolling, rotating, withdrawing, over HTTP.

use serde_json::json;
use sovereign_relay_protocol::limits;

use super::kit::{Relay, Request, Setup};
use crate::config::EnrollmentMode;

#[actix_web::test]
async fn an_instance_enrolls_without_a_body_and_with_one() {
    let relay = Relay::start().await;
    relay.enroll().await;
    let body = json!({"name": "Home", "contact": "admin@example.org", "unknown": 1});
    let answer = relay.send(Request::new("POST", "/v1/enroll").json(&body)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["instanceId"].as_str().unwrap().len(), 36);
    let empty = Request::new("POST", "/v1/enroll").body("application/json", "");
    assert_eq!(relay.send(empty).await.status, 200);
}

#[actix_web::test]
async fn a_closed_relay_refuses_and_one_by_invite_wants_an_invite() {
    let closed = Relay::start_as(Setup {
        mode: EnrollmentMode::Closed,
        ..Setup::default()
    })
    .await;
    let answer = closed.send(Request::new("POST", "/v1/enroll")).await;
    assert_eq!(answer.refusal(), (403, "enrollment_closed".to_owned()));
    let invite = Relay::start_as(Setup {
        mode: EnrollmentMode::Invite,
        ..Setup::default()
    })
    .await;
    for request in [
        Request::new("POST", "/v1/enroll"),
        Request::new("POST", "/v1/enroll").key("unknown"),
    ] {
        assert_eq!(
            invite.send(request).await.refusal(),
            (401, "unauthorized".to_owned())
        );
    }
    let day = std::time::Duration::from_secs(86_400);
    let (text, _) = invite
        .services
        .authority
        .create_invite(day, invite.services.now())
        .await
        .unwrap();
    let enroll = || Request::new("POST", "/v1/enroll").key(text.expose());
    assert_eq!(invite.send(enroll()).await.status, 200);
    assert_eq!(
        invite.send(enroll()).await.refusal(),
        (401, "unauthorized".to_owned()),
        "single use"
    );
}

#[actix_web::test]
async fn one_address_enrolls_ten_times_a_minute_and_another_is_not_held_up() {
    let relay = Relay::start().await;
    let from = |address: &str| Request::new("POST", "/v1/enroll").header("X-Forwarded-For", address);
    for _ in 0..limits::ENROLLMENTS_PER_MINUTE {
        assert_eq!(relay.send(from("1.2.3.4")).await.status, 200);
    }
    let answer = relay.send(from("1.2.3.4")).await;
    assert_eq!(answer.refusal(), (429, "rate_limited".to_owned()));
    let after: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    assert_eq!(relay.send(from("1.2.3.5")).await.status, 200);
}

#[actix_web::test]
async fn rotation_gives_a_key_that_works_and_withdrawal_ends_all_keys() {
    let relay = Relay::start().await;
    let old = relay.enroll().await;
    let rotated = relay
        .send(Request::new("POST", "/v1/keys/rotate").key(&old))
        .await;
    assert_eq!(rotated.status, 200);
    let new = rotated.json()["instanceKey"].as_str().unwrap().to_owned();
    assert_ne!(new, old);
    for key in [&old, &new] {
        assert_eq!(relay.send(Request::push().key(key)).await.status, 200);
    }
    let withdrawn = relay
        .send(Request::new("DELETE", "/v1/enrollment").key(&new))
        .await;
    assert_eq!((withdrawn.status, withdrawn.body.len()), (204, 0));
    assert_eq!(relay.pushes.refreshed.lock().unwrap().len(), 1);
    for key in [&old, &new] {
        assert_eq!(
            relay.send(Request::push().key(key)).await.refusal(),
            (401, "revoked".to_owned())
        );
    }
}

#[actix_web::test]
async fn a_malformed_enrollment_or_rotation_is_a_400() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    for body in [json!({"name": ""}), json!({"contact": "nobody"}), json!([])] {
        let answer = relay.send(Request::new("POST", "/v1/enroll").json(&body)).await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{body}");
    }
    let answer = relay
        .send(
            Request::new("POST", "/v1/keys/rotate")
                .key(&key)
                .json(&json!({"graceSeconds": -1})),
        )
        .await;
    assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()));
}

#[actix_web::test]
async fn a_lost_answer_to_a_rotation_without_grace_can_be_asked_for_again() {
    let relay = Relay::start().await;
    let old = relay.enroll().await;
    let rotate = || {
        Request::new("POST", "/v1/keys/rotate")
            .key(&old)
            .json(&json!({"graceSeconds": 0}))
    };
    let first = relay.send(rotate()).await;
    assert_eq!(first.status, 200);
    assert_eq!(
        relay.send(Request::push().key(&old)).await.refusal(),
        (401, "revoked".to_owned()),
        "at once"
    );
    let again = relay.send(rotate()).await;
    assert_eq!((again.status, again.json()), (200, first.json()), "the same key");
    let new = first.json()["instanceKey"].as_str().unwrap().to_owned();
    assert_eq!(relay.send(Request::push().key(&new)).await.status, 200);
    assert_eq!(
        relay.send(rotate()).await.refusal(),
        (401, "revoked".to_owned()),
        "the new key is in use"
    );
}
