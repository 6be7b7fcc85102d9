//! The admin listener of a whole relay: every change holds for all pushes that begin after its answer.

use serde_json::json;

use super::kit::Whole;
use crate::http::tests::wire::{Request, exchange};

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

#[actix_web::test]
async fn metrics_are_open_and_the_admin_api_wants_the_token() {
    let whole = Whole::start().await;
    let send = async |request: Request| exchange(whole.relay.admin_addr, &request.into_bytes()).await;
    let metrics = send(Request::new("GET", "/metrics")).await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain"));
    for path in [
        "/admin/v1/instances",
        "/admin/v1/invites",
        "/admin/v1/revocations",
        "/admin/v1/nothing",
    ] {
        assert_eq!(
            send(Request::new("GET", path)).await.refusal(),
            (401, "unauthorized".to_owned()),
            "{path}"
        );
        let wrong = send(Request::new("GET", path).key("wrong")).await;
        assert_eq!(wrong.refusal(), (401, "unauthorized".to_owned()), "{path}");
    }
    let nothing = whole.admin("GET", "/nothing", None).await;
    assert_eq!(nothing.refusal(), (404, "not_found".to_owned()));
    let told = nothing.json()["message"].as_str().unwrap().to_owned();
    assert!(told.contains("/admin/v1") && !told.contains("openapi"), "{told}");
    let method = whole.admin("DELETE", "/instances", None).await;
    assert_eq!(
        (method.refusal().0, method.header("allow")),
        (405, Some("GET, HEAD"))
    );
    whole.relay.stop().await;
}

#[actix_web::test]
async fn an_instance_key_is_no_admin_token() {
    let whole = Whole::start().await;
    let (_, key) = whole.enroll().await;
    let request = Request::new("GET", "/admin/v1/instances").key(&key);
    let answer = exchange(whole.relay.admin_addr, &request.into_bytes()).await;
    assert_eq!(answer.refusal(), (401, "unauthorized".to_owned()));
    whole.relay.stop().await;
}

#[actix_web::test]
async fn the_next_push_of_a_suspended_instance_is_refused_and_of_a_resumed_one_sent() {
    let whole = Whole::start().await;
    let (id, key) = whole.enroll().await;
    let push = async || whole.send(Request::push().key(&key)).await;
    assert_eq!(push().await.status, 200);
    let wanted = json!({"reason": "complaints", "seconds": 3600});
    let view = whole
        .admin("POST", &format!("/instances/{id}/suspend"), Some(wanted))
        .await;
    assert_eq!(
        (view.status, &view.json()["suspension"]["reason"]),
        (200, &json!("complaints"))
    );
    let refused = push().await;
    assert_eq!(refused.refusal(), (403, "suspended".to_owned()));
    let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((3500..=3600).contains(&after), "{after}");
    assert_eq!(
        whole
            .admin("POST", &format!("/instances/{id}/resume"), None)
            .await
            .status,
        200
    );
    assert_eq!(push().await.status, 200);
    whole.relay.stop().await;
}

#[actix_web::test]
async fn a_limit_holds_for_the_next_push_and_null_takes_it_back() {
    let whole = Whole::start().await;
    let (id, key) = whole.enroll().await;
    let push = async || whole.send(Request::push().key(&key)).await.status;
    let limit = async |value: serde_json::Value| {
        whole
            .admin(
                "POST",
                &format!("/instances/{id}/limit"),
                Some(json!({"perMinute": value})),
            )
            .await
            .status
    };
    assert_eq!(limit(json!(1)).await, 200);
    assert_eq!((push().await, push().await), (200, 429));
    assert_eq!(limit(json!(null)).await, 200);
    assert_eq!(push().await, 200);
    whole.relay.stop().await;
}

#[actix_web::test]
async fn the_operators_word_on_turn_holds_for_the_next_session_and_outlives_a_restart() {
    let whole = Whole::start().await;
    let (id, _) = whole.enroll().await;
    let say = async |whole: &Whole, word: serde_json::Value| {
        let path = format!("/instances/{id}/turn");
        let answer = whole.admin("POST", &path, Some(json!({"turn": word}))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.json().get("turn"),
            Some(&word).filter(|word| !word.is_null())
        );
    };
    say(&whole, json!(true)).await;
    let whole = whole.restart().await;
    let shown = whole.admin("GET", &format!("/instances/{id}"), None).await;
    assert_eq!(shown.json()["turn"], true);
    say(&whole, json!(false)).await;
    say(&whole, json!(null)).await;
    for wrong in [
        json!({}),
        json!({"turn": "yes"}),
        json!({"turn": true, "more": 1}),
    ] {
        let path = format!("/instances/{id}/turn");
        let refused = whole.admin("POST", &path, Some(wrong)).await;
        assert_eq!(refused.refusal(), (400, "invalid_request".to_owned()));
    }
    whole.relay.stop().await;
}

#[actix_web::test]
async fn a_suspended_instance_makes_no_session_and_keeps_those_it_has() {
    let whole = Whole::start().await;
    let (id, key) = whole.enroll().await;
    let create = async || {
        whole
            .send(Request::new("POST", "/v1/signal/sessions").key(&key))
            .await
    };
    let made = create().await;
    assert_eq!(made.status, 201, "{made:?}");
    let wanted = json!({"reason": "complaints"});
    whole
        .admin("POST", &format!("/instances/{id}/suspend"), Some(wanted))
        .await;
    assert_eq!(create().await.refusal(), (403, "suspended".to_owned()));
    let path = format!(
        "/v1/signal/sessions/{}",
        made.json()["sessionId"].as_str().unwrap()
    );
    assert_eq!(whole.send(Request::new("GET", &path).key(&key)).await.status, 200);
    assert_eq!(
        whole.send(Request::new("DELETE", &path).key(&key)).await.status,
        204
    );
    whole.relay.stop().await;
}

#[actix_web::test]
async fn an_instance_makes_as_many_sessions_a_minute_as_the_operator_set() {
    let whole = Whole::start_with(1, &[("RELAY_SESSIONS_PER_MINUTE", "2")]).await;
    let (_, key) = whole.enroll().await;
    let create = async || {
        whole
            .send(Request::new("POST", "/v1/signal/sessions").key(&key))
            .await
    };
    assert_eq!((create().await.status, create().await.status), (201, 201));
    let refused = create().await;
    assert_eq!(refused.refusal(), (429, "rate_limited".to_owned()));
    let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&after), "{after}");
    whole.relay.stop().await;
}

#[actix_web::test]
async fn a_revoked_instance_is_told_so_from_the_next_call_on() {
    let whole = Whole::start().await;
    let (id, key) = whole.enroll().await;
    let view = whole
        .admin("POST", &format!("/instances/{id}/revoke"), None)
        .await;
    assert_eq!(view.status, 200, "{view:?}");
    let refused = whole.send(Request::push().key(&key)).await;
    assert_eq!(refused.refusal(), (401, "revoked".to_owned()));
    whole.relay.stop().await;
}

#[actix_web::test]
async fn instances_are_listed_in_pages_and_shown_one_by_one() {
    let whole = Whole::start().await;
    let mut ids: Vec<_> = Vec::new();
    for _ in 0..3 {
        ids.push(whole.enroll().await.0);
    }
    ids.sort();
    let first = whole.admin("GET", "/instances?limit=2", None).await.json();
    let second = whole
        .admin("GET", &format!("/instances?limit=2&after={}", ids[1]), None)
        .await
        .json();
    let listed = |page: &serde_json::Value| -> Vec<String> {
        let instances = page["instances"].as_array().unwrap().iter();
        instances
            .map(|view| view["instanceId"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!([listed(&first), listed(&second)].concat(), ids);
    assert_eq!((&first["next"], second.get("next")), (&json!(ids[1]), None));
    let shown = whole.admin("GET", &format!("/instances/{}", ids[0]), None).await;
    assert_eq!(shown.json()["instanceId"], json!(ids[0]));
    let unknown = whole.admin("GET", &format!("/instances/{UNKNOWN}"), None).await;
    assert_eq!(unknown.refusal(), (404, "not_found".to_owned()));
    whole.relay.stop().await;
}

#[actix_web::test]
async fn an_invite_made_by_the_operator_enrolls_once() {
    let whole = Whole::start_with(0, &[("RELAY_ENROLLMENT", "invite")]).await;
    let made = whole
        .admin("POST", "/invites", Some(json!({"ttlSeconds": 60})))
        .await
        .json();
    assert!(made["expiresAt"].as_str().unwrap().ends_with('Z'));
    let invites = async || {
        whole.admin("GET", "/invites", None).await.json()["invites"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(invites().await, 1);
    let enroll = async || {
        whole
            .send(Request::new("POST", "/v1/enroll").key(made["invite"].as_str().unwrap()))
            .await
    };
    assert_eq!(enroll().await.status, 200);
    assert_eq!(enroll().await.refusal(), (401, "unauthorized".to_owned()));
    assert_eq!(invites().await, 0);
    whole.relay.stop().await;
}

#[actix_web::test]
async fn a_revocation_moves_to_another_relay_by_export_and_import() {
    let secret = [(
        "RELAY_ENROLLMENT_SECRET",
        "a secret that two relays share, 32+ bytes",
    )];
    let (one, other) = (
        Whole::start_with(9, &secret).await,
        Whole::start_with(9, &secret).await,
    );
    let (id, key) = one.enroll().await;
    assert_eq!(other.send(Request::push().key(&key)).await.status, 200);
    one.admin("POST", &format!("/instances/{id}/revoke"), None).await;
    let list = one.admin("GET", "/revocations", None).await.json();
    let imported = other.admin("PUT", "/revocations", Some(list)).await;
    assert_eq!((imported.status, imported.json()), (200, json!({"imported": 1})));
    assert_eq!(
        other.send(Request::push().key(&key)).await.refusal(),
        (401, "revoked".to_owned())
    );
    one.relay.stop().await;
    other.relay.stop().await;
}

#[actix_web::test]
async fn what_is_no_order_is_a_400_and_changes_nothing() {
    let whole = Whole::start().await;
    let (id, key) = whole.enroll().await;
    let wrong = [
        ("POST", "/instances/x/resume".to_owned(), None),
        (
            "POST",
            format!("/instances/{id}/suspend"),
            Some(json!({"seconds": 1})),
        ),
        (
            "POST",
            format!("/instances/{id}/suspend"),
            Some(json!({"reason": ""})),
        ),
        (
            "POST",
            format!("/instances/{id}/suspend"),
            Some(json!({"reason": "x", "second": 1})),
        ),
        (
            "POST",
            format!("/instances/{id}/suspend"),
            Some(json!({"reason": "x", "seconds": 0})),
        ),
        ("POST", format!("/instances/{id}/limit"), Some(json!({}))),
        (
            "POST",
            format!("/instances/{id}/limit"),
            Some(json!({"perMinute": 0})),
        ),
        ("POST", "/invites".to_owned(), Some(json!({"ttlSeconds": 0}))),
        ("POST", "/invites".to_owned(), None),
        ("GET", "/instances?limit=501".to_owned(), None),
        ("GET", "/instances?after=x".to_owned(), None),
        ("PUT", "/revocations".to_owned(), Some(json!({"version": 99}))),
    ];
    for (method, path, body) in wrong {
        let answer = whole.admin(method, &path, body.clone()).await;
        assert_eq!(
            answer.refusal(),
            (400, "invalid_request".to_owned()),
            "{method} {path} {body:?}"
        );
    }
    assert_eq!(whole.send(Request::push().key(&key)).await.status, 200);
    whole.relay.stop().await;
}
