use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::kit::{DEVICES, Host, SUBSCRIPTIONS, answer, browser, iphone, public_key};

fn is_error(body: &Value, code: &str) -> bool {
    let keys: Vec<_> = body.as_object().unwrap().keys().collect();
    keys == ["error", "message"] && body["error"] == code && !body["message"].as_str().unwrap().is_empty()
}

#[actix_web::test]
async fn whoever_is_not_signed_in_gets_401_everywhere_below_the_two_paths() {
    let host = Host::start().await;
    for (method, path) in [
        (Method::GET, DEVICES.to_owned()),
        (Method::POST, DEVICES.to_owned()),
        (Method::PATCH, DEVICES.to_owned()),
        (Method::DELETE, format!("{DEVICES}/1")),
        (Method::GET, format!("{DEVICES}/1/2")),
        (Method::GET, SUBSCRIPTIONS.to_owned()),
        (Method::POST, SUBSCRIPTIONS.to_owned()),
        (Method::DELETE, SUBSCRIPTIONS.to_owned()),
    ] {
        let (status, body) = answer(host.request(method, &path)).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(is_error(&body, "unauthorized"), "{body}");
    }
}

#[actix_web::test]
async fn a_host_that_cannot_tell_signs_nobody_out() {
    let host = Host::start().await;
    let (status, body) = host.post("nobody-knows", DEVICES, &iphone(1)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(is_error(&body, "unavailable"), "{body}");
}

#[actix_web::test]
async fn a_page_of_another_site_changes_nothing() {
    let host = Host::start().await;
    for (method, path, body) in [
        (Method::POST, DEVICES, iphone(1)),
        (Method::POST, SUBSCRIPTIONS, browser(1)),
        (Method::DELETE, SUBSCRIPTIONS, json!({})),
    ] {
        let request = host.request(method, path).header("x-user", "ann").json(&body);
        let (status, body) = answer(request.header("sec-fetch-site", "cross-site")).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(is_error(&body, "origin_not_allowed"), "{body}");
    }
    assert_eq!(host.devices("ann").await, Vec::<Value>::new());
    let own = host
        .request(Method::POST, DEVICES)
        .header("x-user", "ann")
        .json(&iphone(1));
    assert_eq!(
        answer(own.header("sec-fetch-site", "same-origin")).await.0,
        StatusCode::OK
    );
}

#[actix_web::test]
async fn unknown_paths_and_methods_are_answered_in_json_and_the_host_s_own_are_left_alone() {
    let host = Host::start().await;
    for path in [
        format!("{DEVICES}/1/2"),
        format!("{DEVICES}/"),
        format!("{SUBSCRIPTIONS}/1"),
    ] {
        let (status, body) = answer(host.request(Method::GET, &path).header("x-user", "ann")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(is_error(&body, "not_found"), "{body}");
    }
    let device = format!("{DEVICES}/1");
    for (method, path, allowed) in [
        (Method::PUT, DEVICES, "GET, POST"),
        (Method::DELETE, DEVICES, "GET, POST"),
        (Method::GET, device.as_str(), "DELETE"),
        (Method::PATCH, SUBSCRIPTIONS, "GET, POST, DELETE"),
    ] {
        let request = host.request(method.clone(), path).header("x-user", "ann");
        let response = request.send().await.unwrap();
        assert_eq!(
            response.status(),
            StatusCode::METHOD_NOT_ALLOWED,
            "{method} {path}"
        );
        assert_eq!(response.headers()[header::ALLOW], allowed);
        assert!(is_error(&response.json().await.unwrap(), "method_not_allowed"));
    }
    let others = ["/api/account/other", "/api/account/push-device-tokens"];
    let statuses = others.map(|path| host.request(Method::GET, path).send());
    let answers = futures_util::future::join_all(statuses).await;
    let statuses: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.unwrap().status())
        .collect();
    assert_eq!(statuses, [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND]);
}

#[actix_web::test]
async fn what_is_no_registration_is_refused_and_nothing_is_stored() {
    let host = Host::start().await;
    let off_the_curve = format!("BA{}", "A".repeat(86));
    let long = "a".repeat(5000);
    let mut wrong = vec![json!({}), json!([]), json!("text"), json!(null)];
    for (field, value) in [
        ("platform", json!("linux")),
        ("platform", json!("iOS")),
        ("platform", json!(7)),
        ("deviceToken", json!("")),
        ("deviceToken", json!("xyz")),
        ("deviceToken", json!("abc")),
        ("deviceToken", json!(long)),
        ("publicKey", json!("")),
        ("publicKey", json!("no base64")),
        ("publicKey", json!(off_the_curve)),
        ("publicKey", json!(public_key(1).trim_end_matches('='))),
        ("publicKey", json!(null)),
    ] {
        let mut body = iphone(1);
        body[field] = value;
        wrong.push(body);
    }
    for body in wrong {
        let (status, answer) = host.post("ann", DEVICES, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(is_error(&answer, "invalid_request"), "{answer}");
    }
    let channel =
        json!({ "platform": "windows", "deviceToken": "https://evil.example/x", "publicKey": public_key(1) });
    assert_eq!(
        host.post("ann", DEVICES, &channel).await.0,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(host.devices("ann").await, Vec::<Value>::new());
}

#[actix_web::test]
async fn a_refusal_quotes_nothing_of_what_was_sent() {
    let host = Host::start().await;
    for body in [
        r#"{"platform": "ios", "deviceToken": "secret-token"#,
        r#"{"deviceToken": ["secret-token"]}"#,
    ] {
        let request = host.request(Method::POST, DEVICES).header("x-user", "ann");
        let (status, answer) = answer(request.header("content-type", "application/json").body(body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
}

#[actix_web::test]
async fn bodies_that_are_too_large_or_no_json_are_refused() {
    let host = Host::start().await;
    let post = || host.request(Method::POST, DEVICES).header("x-user", "ann");
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(16 * 1024));
    let (status, body) = answer(
        post()
            .header("content-type", "application/json")
            .body(large.clone()),
    )
    .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(is_error(&body, "payload_too_large"), "{body}");
    for content_type in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let (status, body) = answer(
            post()
                .header("content-type", content_type)
                .body(iphone(1).to_string()),
        )
        .await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type}");
        assert!(is_error(&body, "unsupported_media_type"), "{body}");
    }
    let with_charset = post().header("content-type", "application/json; charset=utf-8");
    assert_eq!(
        answer(with_charset.body(iphone(1).to_string())).await.0,
        StatusCode::OK
    );
}

#[actix_web::test]
async fn who_registers_in_a_loop_is_slowed_down_and_nobody_else() {
    let host = Host::start().await;
    for _ in 0..crate::routes::pace::BURST {
        host.register("ann", DEVICES, &iphone(1)).await;
    }
    let loops = [(DEVICES, iphone(1)), (SUBSCRIPTIONS, browser(1))];
    for (path, body) in &loops {
        let response = host
            .request(Method::POST, path)
            .header("x-user", "ann")
            .json(body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "6");
        assert!(is_error(&response.json().await.unwrap(), "rate_limited"));
    }
    host.register("bob", DEVICES, &iphone(2)).await;
    host.pass_seconds(6);
    host.register("ann", DEVICES, &iphone(1)).await;
}

#[actix_web::test]
async fn nothing_but_a_sentence_is_said_when_the_database_fails() {
    let host = Host::start().await;
    host.store.close().await;
    let (status, body) = host.post("ann", DEVICES, &iphone(1)).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(is_error(&body, "internal_error"), "{body}");
}
