//! FCM through `reqwest`.

use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::{
    Behaviour, Pace, RetryAfter, Simulators,
    fcm::verdict,
    tests::kit::{SOON, http, simulators, until},
};

/// An assertion with these claims changed.
fn assertion(simulators: &Simulators, change: &Value) -> String {
    let account: Value = serde_json::from_str(&simulators.fcm.service_account_json()).unwrap();
    let now = simulators.clock().unix_seconds();
    let mut claims = json!({
        "iss": account["client_email"],
        "scope": "https://www.googleapis.com/auth/firebase.messaging",
        "aud": account["token_uri"],
        "iat": now,
        "exp": now + 3600,
    });
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let key = EncodingKey::from_rsa_pem(account["private_key"].as_str().unwrap().as_bytes()).unwrap();
    jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &key).unwrap()
}

async fn ask(simulators: &Simulators, assertion: &str) -> (u16, Value) {
    let form = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", assertion),
    ];
    let response = http(simulators)
        .post(simulators.fcm.token_uri())
        .form(&form)
        .send()
        .await
        .unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn bearer(simulators: &Simulators) -> String {
    let (status, body) = ask(simulators, &assertion(simulators, &json!({}))).await;
    assert_eq!(status, 200, "{body}");
    body["access_token"].as_str().unwrap().to_owned()
}

async fn send(simulators: &Simulators, bearer: &str, message: &Value) -> reqwest::Response {
    let project = &simulators.fcm.options().project_id;
    let url = format!(
        "{}/v1/projects/{project}/messages:send",
        simulators.fcm.endpoint()
    );
    http(simulators)
        .post(url)
        .bearer_auth(bearer)
        .json(&json!({ "message": message }))
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn an_assertion_buys_a_token_and_the_token_a_delivery() {
    let simulators = simulators().await;
    let (bearer, token) = (bearer(&simulators).await, simulators.fcm.new_token());
    let message = json!({ "token": token, "data": { "encryptedPayload": "e" },
        "android": { "priority": "HIGH", "ttl": "60s", "collapse_key": "c" } });
    let response = send(&simulators, &bearer, &message).await;
    assert_eq!(response.version(), http::Version::HTTP_2);
    let body: Value = response.json().await.unwrap();
    assert!(
        body["name"]
            .as_str()
            .unwrap()
            .starts_with("projects/sovereign-simulator/messages/")
    );
    let delivery = simulators.fcm.inbox().wait_for(1, SOON).await.unwrap().remove(0);
    assert_eq!(
        (delivery.token, delivery.data["encryptedPayload"].as_str()),
        (token, "e")
    );
    assert_eq!(
        (delivery.priority.as_deref(), delivery.ttl.as_deref()),
        (Some("HIGH"), Some("60s"))
    );
    assert_eq!(
        (delivery.collapse_key.as_deref(), delivery.bearer),
        (Some("c"), bearer)
    );
    assert_eq!(simulators.fcm.oauth_requests(), 1);
    simulators.stop().await;
}

#[tokio::test]
async fn a_bad_assertion_buys_nothing() {
    let simulators = simulators().await;
    let now = simulators.clock().unix_seconds();
    for (change, error) in [
        (json!({ "iss": "stranger" }), "invalid_grant"),
        (
            json!({ "aud": "https://oauth2.googleapis.com/token" }),
            "invalid_grant",
        ),
        (json!({ "exp": now + 3600 + 360 }), "invalid_grant"),
        (json!({ "iat": now - 7200, "exp": now - 3600 }), "invalid_grant"),
        (json!({ "scope": "email" }), "invalid_scope"),
    ] {
        let (status, body) = ask(&simulators, &assertion(&simulators, &change)).await;
        assert_eq!(
            (status, body["error"].as_str().unwrap()),
            (400, error),
            "{change}"
        );
    }
    let (status, body) = ask(&simulators, "a.b.c").await;
    assert_eq!((status, body["error"].as_str().unwrap()), (400, "invalid_grant"));
    simulators.stop().await;
}

#[tokio::test]
async fn expired_and_unknown_tokens_are_401_without_fcm_error() {
    let simulators = simulators().await;
    let message = json!({ "token": "t" });
    assert_eq!(send(&simulators, "stranger", &message).await.status(), 401);
    let first = bearer(&simulators).await;
    simulators.fcm.expire_tokens();
    let response = send(&simulators, &first, &message).await;
    assert_eq!(response.status(), 401);
    let body: Value = response.json().await.unwrap();
    assert_eq!(
        (&body["error"]["status"], &body["error"]["details"]),
        (&json!("UNAUTHENTICATED"), &Value::Null)
    );
    simulators.fcm.set_token_lifetime(Duration::from_secs(60));
    let second = bearer(&simulators).await;
    assert_eq!(send(&simulators, &second, &message).await.status(), 200);
    simulators.clock().advance(Duration::from_secs(60));
    assert_eq!(send(&simulators, &second, &message).await.status(), 401);
    simulators.stop().await;
}

#[tokio::test]
async fn the_token_endpoint_can_fail_and_hang() {
    let simulators = simulators().await;
    simulators.fcm.oauth_script().next(1, Behaviour::html(502));
    simulators.fcm.oauth_script().next(1, Behaviour::never_answer());
    let form = [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned(),
        ),
        ("assertion", assertion(&simulators, &json!({}))),
    ];
    let request = || {
        http(&simulators)
            .post(simulators.fcm.token_uri())
            .form(&form)
            .send()
    };
    let response = request().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (502, &"text/html; charset=UTF-8".parse().unwrap())
    );
    let unanswered = tokio::spawn(request());
    until(|| simulators.fcm.oauth_requests() == 2).await;
    assert_eq!(request().await.unwrap().status(), 200);
    assert!(!unanswered.is_finished());
    assert_eq!(simulators.fcm.oauth_requests(), 3);
    simulators.stop().await;
}

#[tokio::test]
async fn every_documented_error_has_its_shape() {
    let simulators = simulators().await;
    let bearer = bearer(&simulators).await;
    for (behaviour, status, error_code) in [
        (verdict::unregistered(), 404, Some("UNREGISTERED")),
        (verdict::not_found_without_fcm_error(), 404, None),
        (verdict::bad_token(), 400, Some("INVALID_ARGUMENT")),
        (verdict::bad_token_with_violation(), 400, Some("INVALID_ARGUMENT")),
        (verdict::too_large(), 400, Some("INVALID_ARGUMENT")),
        (verdict::sender_id_mismatch(), 403, Some("SENDER_ID_MISMATCH")),
        (verdict::permission_denied(), 403, None),
        (
            verdict::project_quota(RetryAfter::Seconds(37)),
            429,
            Some("QUOTA_EXCEEDED"),
        ),
        (verdict::too_many_requests(RetryAfter::Absent), 429, None),
        (verdict::unavailable(RetryAfter::Absent), 503, Some("UNAVAILABLE")),
        (
            verdict::fcm_error(400, "FAILED_PRECONDITION", "BRAND_NEW"),
            400,
            Some("BRAND_NEW"),
        ),
    ] {
        simulators.fcm.script().next(1, behaviour);
        let response = send(&simulators, &bearer, &json!({ "token": "t" })).await;
        assert_eq!(response.status().as_u16(), status);
        let body: Value = response.json().await.unwrap();
        assert_eq!(
            body["error"]["details"][0]["errorCode"].as_str(),
            error_code,
            "{body}"
        );
    }
    assert_eq!(simulators.fcm.inbox().total(), 0);
    simulators.stop().await;
}

#[tokio::test]
async fn retry_after_comes_as_seconds_as_a_date_or_not_at_all() {
    let simulators = simulators().await;
    let bearer = bearer(&simulators).await;
    let date = "Fri, 31 Dec 2027 23:59:59 GMT";
    for (wait, header) in [
        (RetryAfter::Seconds(37), Some("37")),
        (RetryAfter::Text(date.to_owned()), Some(date)),
        (RetryAfter::Absent, None),
    ] {
        simulators.fcm.script().next(1, verdict::device_quota(wait));
        let response = send(&simulators, &bearer, &json!({ "token": "t" })).await;
        assert_eq!(
            response
                .headers()
                .get("retry-after")
                .map(|value| value.to_str().unwrap()),
            header
        );
    }
    simulators.stop().await;
}

#[tokio::test]
async fn a_wrong_project_an_oversized_message_and_no_json_are_refused() {
    let simulators = simulators().await;
    let bearer = bearer(&simulators).await;
    let data = json!({ "token": "t", "data": { "key": "x".repeat(4094) } });
    assert_eq!(send(&simulators, &bearer, &data).await.status(), 400);
    let url = format!("{}/v1/projects/other/messages:send", simulators.fcm.endpoint());
    let post = |url: String| http(&simulators).post(url).bearer_auth(&bearer).body("{").send();
    assert_eq!(post(url.clone()).await.unwrap().status(), 404);
    assert_eq!(
        post(url.replace("other", "sovereign-simulator"))
            .await
            .unwrap()
            .status(),
        400
    );
    assert_eq!(post(simulators.fcm.endpoint()).await.unwrap().status(), 404);
    assert_eq!(simulators.fcm.requests().total(), 3);
    simulators.stop().await;
}

#[tokio::test]
async fn streams_and_connections_break_on_command() {
    let simulators = simulators().await;
    let bearer = bearer(&simulators).await;
    let url = format!(
        "{}/v1/projects/sovereign-simulator/messages:send",
        simulators.fcm.endpoint()
    );
    let request = || {
        let message = json!({ "message": { "token": "t" } });
        http(&simulators)
            .post(&url)
            .bearer_auth(&bearer)
            .json(&message)
            .send()
    };
    let script = simulators.fcm.script();
    for behaviour in [
        Behaviour::refuse_stream(),
        Behaviour::kill_connection().delivered(),
        Behaviour::kill_before_reading(),
    ] {
        script.next(10, behaviour);
        assert!(request().await.is_err());
        script.clear();
    }
    script.next(1, verdict::internal().paced(Pace::CutAfter { bytes: 5 }));
    assert!(request().await.unwrap().bytes().await.is_err());
    script.next(
        1,
        verdict::internal().paced(Pace::Slow {
            chunk_bytes: 10,
            pause_ms: 1,
        }),
    );
    assert_eq!(
        request().await.unwrap().json::<Value>().await.unwrap()["error"]["code"],
        500
    );
    assert_eq!(request().await.unwrap().status(), 200);
    simulators.stop().await;
}

#[tokio::test]
async fn the_most_requests_under_way_are_remembered() {
    let simulators = simulators().await;
    let bearer = bearer(&simulators).await;
    simulators
        .fcm
        .script()
        .next(3, Behaviour::accept().after(Duration::from_millis(200)));
    let message = json!({ "token": "t" });
    let push = || send(&simulators, &bearer, &message);
    tokio::join!(push(), push(), push());
    assert_eq!(
        (
            simulators.fcm.most_requests_under_way(),
            simulators.fcm.requests_under_way()
        ),
        (3, 0)
    );
    simulators.stop().await;
}

#[tokio::test]
async fn http_1_1_is_served_too() {
    let simulators = simulators().await;
    let ca = reqwest::Certificate::from_pem(simulators.ca_pem.as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([ca])
        .http1_only()
        .no_proxy()
        .build()
        .unwrap();
    let response = client.get(simulators.fcm.endpoint()).send().await.unwrap();
    assert_eq!(
        (response.version(), response.status().as_u16()),
        (http::Version::HTTP_11, 404)
    );
    simulators.stop().await;
}
