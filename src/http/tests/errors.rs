//! Every error has the one form, whatever went wrong.

use std::time::Duration;

use actix_web::web;
use sovereign_relay_actors::{push::Refusal, wait::Limit};

use super::kit::{Answer, Relay, Request, Setup, exchange, listener_limits};
use crate::{
    config::EnrollmentMode,
    http::{observer, post, server},
    shutdown::Phase,
};

#[actix_web::test]
async fn an_unknown_path_is_a_404_in_json() {
    let relay = Relay::start().await;
    for path in [
        "/",
        "/v1",
        "/v1/push/",
        "/v1/pushes",
        "/metrics",
        "/admin/v1/instances",
        "/%00",
        "/v1/../v1/push",
    ] {
        assert_eq!(
            relay.send(Request::new("GET", path)).await.refusal(),
            (404, "not_found".to_owned()),
            "{path}"
        );
    }
}

#[actix_web::test]
async fn every_refusal_of_the_actor_has_its_status_code_and_retry_hint() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let retry_after = Duration::from_millis(1200);
    let expected = [
        (Refusal::Suspended { retry_after: None }, 403, "suspended", None),
        (
            Refusal::Suspended {
                retry_after: Some(retry_after),
            },
            403,
            "suspended",
            Some("2"),
        ),
        (Refusal::PayloadTooLarge, 413, "payload_too_large", None),
        (
            Refusal::RateLimited(Limit::Instance.wait(retry_after)),
            429,
            "rate_limited",
            Some("2"),
        ),
        (Refusal::IdempotencyConflict, 409, "idempotency_conflict", None),
        (
            Refusal::PlatformNotConfigured,
            503,
            "platform_not_configured",
            None,
        ),
        (
            Refusal::SendFailed {
                retry_after: Duration::ZERO,
            },
            502,
            "send_failed",
            Some("1"),
        ),
        (Refusal::Overloaded { retry_after }, 503, "overloaded", Some("2")),
        (Refusal::Draining, 503, "draining", Some("1")),
        (Refusal::Internal, 500, "internal_error", None),
    ];
    for (refusal, status, code, hint) in expected {
        let said = refusal.clone();
        relay.pushes.answer(move |_| Err(said.clone()));
        let answer = relay.send(Request::push().key(&key)).await;
        assert_eq!(answer.refusal(), (status, code.to_owned()), "{refusal:?}");
        assert_eq!(answer.header("retry-after"), hint, "{refusal:?}");
    }
}

#[actix_web::test]
async fn credentials_that_apple_lacks_are_told_of_as_those_of_one_environment() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    relay.pushes.answer(|_| Err(Refusal::PlatformNotConfigured));
    for (platform, names_it) in [("ios", true), ("macos", true), ("android", false)] {
        let mut body = super::kit::message();
        body["platform"] = platform.into();
        body["deviceToken"] = "ab".repeat(32).into();
        let answer = relay
            .send(Request::new("POST", "/v1/push").key(&key).json(&body))
            .await;
        assert_eq!(
            answer.refusal(),
            (503, "platform_not_configured".to_owned()),
            "{platform}"
        );
        let message = answer.json()["message"].to_string();
        assert_eq!(message.contains("in this environment"), names_it, "{message}");
    }
}

#[actix_web::test]
async fn a_key_that_is_missing_wrong_or_malformed_is_a_401_that_names_the_scheme() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let tampered = format!("{}A", &key[..key.len() - 1]);
    let other = if tampered == key {
        format!("{}B", &key[..key.len() - 1])
    } else {
        tampered
    };
    let requests = [
        Request::push(),
        Request::push().key(&other),
        Request::push().header("Authorization", "Basic YTpi"),
        Request::new("POST", "/v1/push/batch")
            .json(&serde_json::json!({"messages": [super::kit::message()]})),
        Request::new("POST", "/v1/keys/rotate"),
        Request::new("DELETE", "/v1/enrollment").key("eyJhbGciOiJub25lIn0.e30."),
    ];
    for request in requests {
        let answer = relay.send(request).await;
        assert_eq!(answer.refusal(), (401, "unauthorized".to_owned()));
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

#[actix_web::test]
async fn a_malformed_body_is_a_400_also_without_a_key() {
    let relay = Relay::start().await;
    for body in ["", "{", "[]", "null", "\"x\"", "{\"deviceToken\":\"t\"}", "\u{0}"] {
        let answer = relay
            .send(Request::new("POST", "/v1/push").body("application/json", body))
            .await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{body:?}");
    }
}

#[actix_web::test]
async fn a_relay_without_a_secret_says_not_configured_to_enrollments_and_keys() {
    let relay = Relay::start_as(Setup {
        secret: None,
        ..Setup::default()
    })
    .await;
    let enroll = relay.send(Request::new("POST", "/v1/enroll")).await;
    assert_eq!(enroll.refusal(), (503, "not_configured".to_owned()));
    let push = relay
        .send(Request::push().key("eyJhbGciOiJIUzI1NiJ9.e30.AAAA"))
        .await;
    assert_eq!(push.refusal(), (503, "not_configured".to_owned()));
}

#[actix_web::test]
async fn a_relay_that_is_closing_refuses_new_work_and_ends_the_connection() {
    let relay = Relay::start_as(Setup {
        mode: EnrollmentMode::Open,
        ..Setup::default()
    })
    .await;
    relay.lifecycle.advance(Phase::Closing);
    for request in [
        Request::push(),
        Request::new("POST", "/v1/enroll"),
        Request::new("DELETE", "/v1/enrollment"),
    ] {
        let answer = relay.send(request).await;
        assert_eq!(answer.refusal(), (503, "draining".to_owned()));
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.header("connection"), Some("close"));
    }
}

#[actix_web::test]
async fn a_draining_relay_is_not_ready_but_pushes_and_asks_callers_to_reconnect() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    relay.lifecycle.advance(Phase::Draining);
    let ready = relay.send(Request::new("GET", "/readyz")).await;
    assert_eq!(
        (ready.status, ready.json()["error"].as_str()),
        (503, Some("draining"))
    );
    assert_eq!(ready.header("retry-after"), Some("1"));
    let answer = relay.send(Request::push().key(&key)).await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
}

#[actix_web::test]
async fn a_panic_is_a_500_in_json_and_the_worker_lives_on() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    relay.pushes.answer(|_| panic!("a bug of the test's making"));
    let answer = relay
        .send(Request::push().key(&key).header("x-request-id", "trace-1"))
        .await;
    assert_eq!(answer.refusal(), (500, "internal_error".to_owned()));
    assert_eq!(answer.header("x-request-id"), Some("trace-1"));
    assert_eq!(relay.send(Request::new("GET", "/livez")).await.status, 200);
}

#[actix_web::test]
async fn a_panic_before_the_first_await_of_a_handler_is_caught_too() {
    let relay = Relay::start().await;
    let observer = observer(&relay.services, "public");
    let bound = server::bind(
        "127.0.0.1:0".parse().unwrap(),
        listener_limits(),
        observer,
        None,
        None,
        |config| {
            config.service(post("/boom", web::post().to(boom)).1);
        },
    )
    .unwrap();
    let handle = bound.server.handle();
    actix_web::rt::spawn(bound.server);
    for _ in 0..3 {
        let answer = exchange(bound.address, &Request::new("POST", "/boom").into_bytes()).await;
        assert_eq!(answer.refusal(), (500, "internal_error".to_owned()));
    }
    handle.stop(false).await;
}

#[allow(clippy::unused_async, reason = "a handler is async")]
async fn boom() -> &'static str {
    panic!("a bug of the test's making");
}

#[actix_web::test]
async fn a_request_id_is_echoed_or_made() {
    let relay = Relay::start().await;
    let id_for = async |given: &str| {
        let answer = relay
            .send(Request::new("GET", "/livez").header("x-request-id", given))
            .await;
        answer.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(id_for("a.B_c-1").await, "a.B_c-1");
    for refused in ["", "a b", "eyJhbGciOiJIUzI1NiJ9.e30.x", &"x".repeat(65)] {
        let made = id_for(refused).await;
        assert!(made.len() == 32 && made != refused, "{refused:?} became {made:?}");
    }
}

#[actix_web::test]
async fn no_answer_carries_a_cors_header() {
    let relay = Relay::start().await;
    let origin = |request: Request| request.header("Origin", "https://example.org");
    let preflight =
        origin(Request::new("OPTIONS", "/v1/push")).header("Access-Control-Request-Method", "POST");
    let answers: [Answer; 2] = [
        relay.send(preflight).await,
        relay.send(origin(Request::new("GET", "/livez"))).await,
    ];
    assert_eq!(answers[0].refusal(), (405, "method_not_allowed".to_owned()));
    for answer in answers {
        assert!(
            answer
                .headers
                .iter()
                .all(|(name, _)| !name.starts_with("access-control")),
            "{answer:?}"
        );
    }
}

#[actix_web::test]
async fn head_answers_as_get_without_the_body() {
    let relay = Relay::start().await;
    let head = relay.send(Request::new("HEAD", "/livez")).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some("15"));
}
