use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::kit::{DEADLINE, NO_RELAY, Place, finish};

#[path = "../../../src/store/redis/kit/place.rs"]
mod place;

const DEVICES: &str = "/api/account/push-device-token";

/// An Android phone: FCM's tokens have no rules to break. The key is a point that is on the curve: its generator.
fn phone() -> Value {
    let generator =
        "BGsX0fLhLEJH+Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT+NC4v4af5uO5+tKfA+eFivOM1drMV7Oy7ZAaDe/UfU=";
    json!({ "platform": "android", "deviceToken": "phone:1", "publicKey": generator })
}

#[tokio::test]
async fn a_device_registers_and_a_command_beside_the_server_tells_it() {
    let place = Place::new();
    let token = place.user("ann").await;
    let server = place.serve().await;
    assert_eq!(
        server.ask(Method::POST, DEVICES, &token, Some(&phone())).await,
        (StatusCode::OK, json!({ "ok": true }))
    );
    let devices = place.run(&["devices", "ann", "--json"]).await.json();
    assert_eq!(
        (&devices[0]["platform"], &devices[0]["relayUrl"]),
        (&json!("android"), &json!(NO_RELAY))
    );
    // There is no relay: it waits, and the log says why.
    let ended = place
        .run(&["notify", "ann", "--title", "a secret", "--body", "of ann"])
        .await;
    assert_eq!(ended.out, "0 of 1 told, 1 waiting for another attempt\n");
    ended.complaint(3);
    let log = place.run(&["log", "ann"]).await.done();
    assert!(
        log.contains("android") && log.contains("retrying") && !log.contains("secret"),
        "{log}"
    );
    let (status, entries) = server.ask(Method::GET, "/api/me/log?limit=5", &token, None).await;
    assert_eq!(
        (status, &entries["entries"][0]["outcome"]),
        (StatusCode::OK, &json!("retrying"))
    );
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0));
    for secret in ["secret", "phone:1", token.as_str(), "BGsX0f"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    assert!(log.contains("stopping") && log.contains("stopped"), "{log}");
}

#[tokio::test]
async fn the_page_signs_in_with_a_cookie_that_changes_nothing_from_elsewhere() {
    let place = Place::new();
    let token = place.user("ann").await;
    let server = place.serve().await;
    let sign_in = |token: &str| {
        server
            .request(Method::POST, "/api/session")
            .json(&json!({ "token": token }))
    };
    let refused = sign_in("ann.wrong").send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.headers().get(header::SET_COOKIE).is_none());
    let answer = sign_in(&token).send().await.unwrap();
    let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let (pair, _) = cookie.split_once(';').unwrap();
    let me = server
        .request(Method::GET, "/api/me")
        .header(header::COOKIE, pair);
    assert_eq!(
        me.send().await.unwrap().json::<Value>().await.unwrap(),
        json!({ "user": "ann" })
    );
    let register = || {
        server
            .request(Method::POST, DEVICES)
            .header(header::COOKIE, pair)
            .json(&phone())
    };
    assert_eq!(
        register().send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
    let foreign = register().header(header::ORIGIN, "https://evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let own = register().header(header::ORIGIN, &server.url);
    assert_eq!(own.send().await.unwrap().status(), StatusCode::OK);
    let out = server
        .request(Method::DELETE, "/api/session")
        .send()
        .await
        .unwrap();
    assert!(
        out.headers()[header::SET_COOKIE]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
}

#[tokio::test]
async fn every_answer_has_the_strict_headers_and_unknown_paths_are_json() {
    let place = Place::new();
    let server = place.serve().await;
    for (path, status, kind) in [
        ("/", 200, "text/html; charset=utf-8"),
        ("/page.css", 200, "text/css; charset=utf-8"),
        ("/page.js", 200, "text/javascript; charset=utf-8"),
        ("/push-worker.js", 200, "text/javascript; charset=utf-8"),
        ("/healthz", 200, "application/json"),
        ("/nothing", 404, "application/json"),
        ("/api/me", 401, "application/json"),
        (DEVICES, 401, "application/json"),
    ] {
        let answer = server.request(Method::GET, path).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (status, &kind.parse().unwrap()),
            "{path}"
        );
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    }
}

#[tokio::test]
async fn notifications_are_checked_and_sent_to_oneself_alone() {
    let place = Place::new();
    let (ann, bob) = (place.user("ann").await, place.user("bob").await);
    let server = place.serve().await;
    server.ask(Method::POST, DEVICES, &bob, Some(&phone())).await;
    let send = async |body: Value| {
        server
            .ask(Method::POST, "/api/me/notifications", &ann, Some(&body))
            .await
    };
    assert_eq!(send(json!({ "title": "to myself" })).await.1["targets"], 0);
    for wrong in [
        json!({}),
        json!({ "title": "x", "body": "x".repeat(3000) }),
        json!({ "title": "x", "ttlSeconds": 9_999_999 }),
        json!({ "title": "x", "user": "bob" }),
    ] {
        let (status, answer) = send(wrong).await;
        assert_eq!(
            (status, &answer["error"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_request"))
        );
    }
}

#[tokio::test]
async fn a_server_that_runs_follows_the_word_of_relay_off() {
    let place = Place::new();
    let token = place.user("ann").await;
    let server = place.serve().await;
    let enabled = async || server.ask(Method::GET, DEVICES, &token, None).await.1["relayEnabled"] == true;
    assert!(enabled().await);
    place.run(&["relay", "off"]).await.done();
    let followed = async {
        while enabled().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, followed).await.expect("it follows");
    let (status, _) = server.ask(Method::POST, DEVICES, &token, Some(&phone())).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_in_one_line() {
    let place = Place::new();
    let server = place.serve().await;
    let address = server.url.strip_prefix("http://").unwrap();
    let ended = finish(place.command(&["serve", "--listen", address])).await;
    assert!(ended.complaint(1).contains(address), "{ended:?}");
}

#[tokio::test]
async fn a_log_that_cannot_be_written_ends_no_server() {
    let place = Place::new();
    let address = place::own_place().to_string();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = place.command(&["serve", "--listen", &address]);
    let mut child = command.stderr(full).spawn().unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let answered = timeout(DEADLINE, async {
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
        loop {
            looks.tick().await;
            assert_eq!(child.try_wait().unwrap(), None, "it ended");
            if let Ok(answer) = http.get(format!("http://{address}/api/me")).send().await {
                return answer.status();
            }
        }
    });
    assert_eq!(answered.await.unwrap(), StatusCode::UNAUTHORIZED);
    child.kill().await.unwrap();
}
