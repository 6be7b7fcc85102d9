//! What holds on every route: the one form of an error, ids of requests, sizes and times, the order of reading.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use reqwest::{Method, header::HeaderMap};
use serde_json::json;
use sovereign_relay::{app::Ports, http::Tuning};
use sovereign_relay_protocol::limits;

use crate::support::{
    in_process::InProcess,
    raw,
    relay::{Answer, Instance, Relay, RelayOptions},
};

const PUSH: &str = r#"{"deviceToken":"abcd","platform":"ios","encryptedPayload":"sealed"}"#;

/// A push whose body never comes.
fn head_only(path: &str, headers: &[(&str, &str)]) -> String {
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("POST {path} HTTP/1.1\r\nhost: relay\r\n{lines}\r\n")
}

fn bearer(instance: &Instance) -> String {
    format!("Bearer {}", instance.key)
}

/// Status and code of an error in the one form that all have.
#[track_caller]
fn refusal(answer: &Answer) -> (u16, &str) {
    assert_eq!(answer.headers["content-type"], "application/json", "{answer:?}");
    assert!(answer.headers.contains_key("x-request-id"), "{answer:?}");
    let fields: HashSet<&str> = answer
        .body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(fields, HashSet::from(["error", "message"]));
    assert!(answer.body["message"].as_str().unwrap().len() > 10, "{answer:?}");
    (answer.status.as_u16(), answer.word())
}

#[tokio::test]
async fn a_path_that_is_no_route_is_a_404_in_json_whatever_the_method() {
    let relay = Relay::start(RelayOptions::new()).await;
    for path in [
        "/",
        "/v1",
        "/v1/push/",
        "/v1/nothing",
        "/V1/push",
        "//v1/push",
        "/admin/v1/instances",
        "/metrics",
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS] {
            let answer = Answer::from(relay.request(method.clone(), path)).await;
            assert_eq!(refusal(&answer), (404, "not_found"), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn an_error_in_the_body_is_told_without_repeating_it_and_a_wrong_type_is_a_415() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let push = || relay.request(Method::POST, "/v1/push").bearer_auth(&instance.key);
    for body in [
        "",
        "{",
        "null",
        "[]",
        "\"MARKED\"",
        r#"{"deviceToken":"MARKED"}"#,
        r#"{"platform":"MARKED"}"#,
    ] {
        let answer = Answer::from(push().body(body)).await;
        assert_eq!(refusal(&answer), (400, "invalid_request"), "{body}");
        assert!(!answer.body.to_string().contains("MARKED"), "{answer:?}");
    }
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let answer = Answer::from(push().header("content-type", content_type).body(PUSH)).await;
        assert_eq!(
            refusal(&answer),
            (415, "unsupported_media_type"),
            "{content_type}"
        );
    }
    let packed = push()
        .header("content-type", "application/json")
        .header("content-encoding", "gzip");
    assert_eq!(refusal(&Answer::from(packed.body(PUSH)).await).0, 415);
    let untyped = Answer::from(push().body(PUSH)).await;
    assert_eq!(
        untyped.word(),
        "platform_not_configured",
        "without a type it is JSON"
    );
}

#[tokio::test]
async fn a_body_over_the_limit_is_a_413_by_its_declared_length_and_where_a_chunk_crosses_it() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let key = bearer(&instance);
    let declared = [
        ("/v1/push", limits::BODY_BYTES),
        ("/v1/push/batch", limits::BATCH_BODY_BYTES),
        ("/v1/enroll", limits::BODY_BYTES),
        ("/v1/keys/rotate", limits::BODY_BYTES),
    ]
    .map(|(path, limit)| {
        let length = (limit + 1).to_string();
        let mut headers = vec![("content-length", &*length)];
        // An enrollment shows an invite there.
        headers.extend((path != "/v1/enroll").then_some(("authorization", &*key)));
        head_only(path, &headers)
    });
    let head = head_only(
        "/v1/push",
        &[("authorization", &key), ("transfer-encoding", "chunked")],
    );
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    let chunked = format!("{head}{}", chunk.repeat(5));
    let exchanges = declared.into_iter().chain([chunked]).map(async |request| {
        let answer = raw::exchange(&relay.url, &request).await;
        assert_eq!(refusal(&answer), (413, "payload_too_large"), "{request:.40}");
        assert_eq!(answer.headers["connection"], "close");
    });
    join_all(exchanges).await;
    let padded = format!("{PUSH}{}", " ".repeat(limits::BODY_BYTES - PUSH.len()));
    let push = relay.request(Method::POST, "/v1/push").bearer_auth(&instance.key);
    let fits = Answer::from(push.body(padded)).await;
    assert_eq!(
        fits.word(),
        "platform_not_configured",
        "exactly the limit is read"
    );
}

#[tokio::test]
async fn a_key_in_the_header_is_judged_before_the_body_arrives() {
    let relay = Relay::start(RelayOptions::new()).await;
    let stranger = Relay::start(RelayOptions::new()).await.enroll().await;
    let stranger = bearer(&stranger);
    let mut cases = Vec::new();
    for path in ["/v1/push", "/v1/push/batch", "/v1/keys/rotate"] {
        cases.extend([&*stranger, "Bearer no-key", "Basic YTpi"].map(|credential| (path, credential)));
    }
    let exchanges = cases.into_iter().map(async |(path, credential)| {
        let headers = [("authorization", credential), ("content-length", "100")];
        let answer = raw::exchange(&relay.url, &head_only(path, &headers)).await;
        assert_eq!(refusal(&answer), (401, "unauthorized"), "{path}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    });
    join_all(exchanges).await;
    let keyless = [
        (Method::POST, "/v1/push/batch"),
        (Method::POST, "/v1/keys/rotate"),
        (Method::DELETE, "/v1/enrollment"),
    ];
    for (method, path) in keyless {
        let request = relay.request(method, path).body(r#"{"instanceKey":"here"}"#);
        assert_eq!(
            refusal(&Answer::from(request).await),
            (401, "unauthorized"),
            "{path}: no key at all"
        );
    }
}

#[tokio::test]
async fn a_body_or_a_head_that_does_not_come_is_cut_in_time() {
    let hurried = async |tuning| {
        InProcess::start(Ports {
            tuning,
            ..Ports::default()
        })
        .await
    };
    // One time each, or a head that comes late would be cut in place of the body.
    let relay = hurried(Tuning {
        body_time: Duration::from_millis(100),
        ..Tuning::default()
    })
    .await;
    let begun = format!(
        "{}{{\"deviceToken\":",
        head_only("/v1/push", &[("content-length", "100")])
    );
    let answer = raw::exchange(&relay.url, &begun).await;
    assert_eq!(refusal(&answer), (408, "request_timeout"));
    assert_eq!(answer.headers["connection"], "close");
    let relay = hurried(Tuning {
        head_time: Duration::from_millis(100),
        ..Tuning::default()
    })
    .await;
    // The server below answers this one: there is no request yet, so no id and no JSON.
    let headless = raw::exchange(&relay.url, "POST /v1/push HTTP/1.1\r\nhost: re").await;
    assert_eq!(headless.status, 408);
}

#[tokio::test]
async fn a_refused_request_whose_chunks_never_end_holds_no_connection() {
    let tuning = Tuning {
        body_time: Duration::from_millis(100),
        ..Tuning::default()
    };
    let relay = InProcess::start(Ports {
        tuning,
        ..Ports::default()
    })
    .await;
    let chunked = ("transfer-encoding", "chunked");
    let text = ("content-type", "text/plain");
    let refused = [
        ("/v1/enroll", vec![chunked], "a\r\n{", 408),
        ("/v1/enroll", vec![chunked, text], "1\r\n{\r\n", 415),
        (
            "/v1/push",
            vec![chunked, ("authorization", "Bearer x")],
            "1\r\n{\r\n",
            401,
        ),
        ("/v1/nothing", vec![chunked], "1\r\n{\r\n", 404),
        ("/livez", vec![chunked], "1\r\n{\r\n", 405),
    ];
    let exchanges = refused.map(async |(path, headers, chunks, status)| {
        let request = format!("{}{chunks}", head_only(path, &headers));
        let answer = raw::exchange(&relay.url, &request).await;
        assert_eq!(refusal(&answer).0, status, "{path}");
        assert_eq!(answer.headers["connection"], "close", "{path}");
    });
    join_all(exchanges).await;
}

#[tokio::test]
async fn a_callers_request_id_is_echoed_and_logged_and_one_that_may_be_a_credential_is_replaced() {
    let mut relay = Relay::start(RelayOptions::new()).await;
    let longest = "a-".repeat(32);
    for given in [
        "order-66",
        "A.b_c-9",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        &*longest,
    ] {
        let answer = Answer::from(
            relay
                .request(Method::GET, "/v1/capabilities")
                .header("x-request-id", given),
        )
        .await;
        assert_eq!(answer.headers["x-request-id"], *given);
        let line = relay.logged(&format!("\"request_id\":\"{given}\"")).await;
        assert!(line.contains("request answered"), "{line}");
    }
    let instance = relay.enroll().await;
    let too_long = "a-".repeat(33);
    let mut made = HashSet::new();
    for given in ["", "two words", "per%cent", &*too_long, &*instance.key] {
        let request = relay
            .request(Method::POST, "/v1/push")
            .header("x-request-id", given);
        let answer = Answer::from(request).await;
        let id = answer.headers["x-request-id"].to_str().unwrap().to_owned();
        assert_ne!(id, given);
        assert_eq!(id.len(), 32, "{id}");
        made.insert(id);
    }
    made.insert(
        relay.get("/nothing").await.headers["x-request-id"]
            .to_str()
            .unwrap()
            .to_owned(),
    );
    assert_eq!(made.len(), 6, "each request has its own: {made:?}");
    assert!(!relay.log().contains(&instance.key));
}

#[tokio::test]
async fn no_answer_has_a_cors_header() {
    let relay = Relay::start(RelayOptions::new()).await;
    let document = relay.get("/openapi.json").await.body;
    let paths = document["paths"].as_object().unwrap();
    let named = |headers: &HeaderMap| {
        headers
            .keys()
            .any(|name| name.as_str().starts_with("access-control-"))
    };
    for path in paths.keys().map(String::as_str).chain(["/nothing"]) {
        for method in [Method::OPTIONS, Method::GET, Method::POST, Method::DELETE] {
            let request = relay
                .request(method.clone(), path)
                .header("origin", "https://page.example")
                .header("access-control-request-method", "POST")
                .header("access-control-request-headers", "authorization");
            let answer = Answer::from(request.body("{}")).await;
            assert!(!named(&answer.headers), "{method} {path}: {answer:?}");
            assert!(
                method != Method::OPTIONS || matches!(answer.status.as_u16(), 404 | 405),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn every_documented_route_answers_and_every_other_method_is_a_405_that_names_what_would() {
    let relay = Relay::start(RelayOptions::new()).await;
    let document = relay.get("/openapi.json").await.body;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths = document["paths"].as_object().unwrap();
    for route in [
        "/v1/enroll",
        "/v1/keys/rotate",
        "/v1/enrollment",
        "/v1/capabilities",
        "/v1/push",
        "/v1/push/batch",
        "/api/health",
        "/livez",
        "/readyz",
        "/openapi.json",
    ] {
        assert!(paths.contains_key(route), "{route} is not documented");
    }
    for (path, item) in paths {
        let documented: HashSet<String> = item
            .as_object()
            .unwrap()
            .keys()
            .map(|name| name.to_uppercase())
            .collect();
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let answer = Answer::from(relay.request(method.parse().unwrap(), path)).await;
            if documented.contains(method) {
                assert!(
                    !matches!(answer.status.as_u16(), 404 | 405 | 500),
                    "{method} {path}: {answer:?}"
                );
                let listed = &item[method.to_lowercase()]["responses"][answer.status.as_str()];
                assert!(
                    !listed.is_null(),
                    "{method} {path}: {} is not documented",
                    answer.status
                );
                continue;
            }
            assert_eq!(refusal(&answer), (405, "method_not_allowed"), "{method} {path}");
            let allow = answer.headers["allow"].to_str().unwrap();
            let allowed: HashSet<String> = allow.split(", ").map(str::to_owned).collect();
            let head = documented.contains("GET").then(|| "HEAD".to_owned());
            assert_eq!(
                allowed,
                documented.iter().cloned().chain(head).collect(),
                "{path}"
            );
        }
    }
    let head = Answer::from(relay.request(Method::HEAD, "/livez")).await;
    assert_eq!((head.status.as_u16(), head.body), (200, json!("")));
}
