//! What is logged of a request, and what never is.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use actix_web::{App, http::header, middleware::from_fn, test::TestRequest, web::Data};
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use super::kit::{Relay, message};
use crate::{
    http::{context, observer, routes},
    shutdown::Phase,
};

/// Planted wherever content goes in; no line may have it.
const MARK: &str = "planted-content-mark";

/// Collects what is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self, message: &str) -> Vec<Value> {
        let lines: Vec<Value> = self
            .text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        lines
            .into_iter()
            .filter(|line| line["message"] == message)
            .collect()
    }
}

/// Calls the routes on this thread with everything logged, down to trace.
async fn logged(relay: &Relay, requests: Vec<TestRequest>) -> Log {
    let observer = observer(&relay.services, "public");
    let app = App::new()
        .app_data(Data::clone(&relay.services))
        .configure(routes)
        .wrap(from_fn(move |request, next| {
            context::observe(observer.clone(), request, next)
        }));
    let app = actix_web::test::init_service(app).await;
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    for request in requests {
        let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let _ = actix_web::test::try_call_service(&app, request.peer_addr(peer).to_request()).await;
    }
    log
}

fn post(path: &str, key: Option<&str>, body: &Value) -> TestRequest {
    let request = TestRequest::post().uri(path).set_payload(body.to_string());
    let request = request.insert_header((header::CONTENT_LENGTH, body.to_string().len()));
    key.into_iter().fold(request, |request, key| {
        request.insert_header((header::AUTHORIZATION, format!("Bearer {key}")))
    })
}

fn marked() -> Value {
    let mut body = message();
    for field in ["deviceToken", "encryptedPayload", "collapseId", "idempotencyKey"] {
        body[field] = json!(MARK);
    }
    body
}

#[actix_web::test]
async fn one_line_a_request_names_route_status_instance_and_outcome() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let push = post("/v1/push", Some(&key), &message()).insert_header(("x-request-id", "trace-7"));
    let lines = logged(&relay, vec![push]).await.lines("request answered");
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!(
        (&line["method"], &line["route"]),
        (&json!("POST"), &json!("/v1/push"))
    );
    assert_eq!((&line["status"], &line["result"]), (&json!(200), &json!("sent")));
    assert_eq!(line["instance"].as_str().unwrap().len(), 36);
    assert_eq!(line["span"]["request_id"], "trace-7");
    assert!(line["duration_ms"].is_u64());
}

#[actix_web::test]
async fn probes_are_logged_at_debug_and_a_change_of_readiness_once() {
    let relay = Relay::start().await;
    let probes = ["/readyz", "/livez", "/api/health"].map(|path| TestRequest::get().uri(path));
    let log = logged(&relay, probes.into()).await;
    let lines = log.lines("request answered");
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line["level"] == "DEBUG"), "{lines:?}");
    assert_eq!(
        log.text().matches("the relay is").count(),
        0,
        "it was ready before"
    );
    relay.services.lifecycle.advance(Phase::Draining);
    let log = logged(&relay, [(); 2].map(|()| TestRequest::get().uri("/readyz")).into()).await;
    let levels: Vec<_> = log
        .lines("request answered")
        .iter()
        .map(|line| line["level"].clone())
        .collect();
    assert_eq!(levels, ["INFO", "INFO"], "refusals");
    let told = log.lines("the relay is not ready");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["reasons"], "the relay is stopping");
}

#[actix_web::test]
async fn an_unknown_path_and_an_error_are_logged_by_template_and_code() {
    let relay = Relay::start().await;
    let unknown = TestRequest::get().uri(&format!("/{MARK}?{MARK}"));
    let log = logged(&relay, vec![unknown, post("/v1/push", None, &json!({}))]).await;
    let lines = log.lines("request answered");
    assert_eq!(lines[0]["route"], "none");
    assert_eq!(
        (&lines[1]["status"], &lines[1]["error"]),
        (&json!(400), &json!("invalid_request"))
    );
}

#[actix_web::test]
async fn no_line_at_any_level_has_content_keys_names_or_addresses() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let enrollment = json!({"name": MARK, "contact": format!("{MARK}@example.org")});
    let requests = vec![
        post("/v1/push", Some(&key), &marked()).insert_header(("x-forwarded-for", "203.0.113.77")),
        post(
            "/v1/push/batch",
            Some(&key),
            &json!({"messages": [marked(), {"platform": MARK}]}),
        ),
        post("/v1/push", Some(MARK), &marked()),
        post("/v1/enroll", None, &enrollment).insert_header(("x-forwarded-for", "203.0.113.77")),
        post("/v1/enroll", None, &json!({"name": MARK.repeat(9)})),
        TestRequest::get().uri(&format!("/v1/push/{MARK}")),
    ];
    let log = logged(&relay, requests).await;
    assert_eq!(log.lines("request answered").len(), 6);
    let text = log.text();
    let own: Vec<_> = text
        .lines()
        .filter(|line| line.contains("\"target\":\"sovereign_relay"))
        .collect();
    assert!(own.len() >= 6, "{text}");
    for line in own {
        for forbidden in [MARK, key.as_str(), "203.0.113.77", "127.0.0.1"] {
            assert!(!line.contains(forbidden), "{line}");
        }
    }
}

#[actix_web::test]
async fn a_panic_is_logged_once_by_its_place_and_request_and_without_its_message() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    relay.pushes.answer(|_| panic!("{MARK}"));
    crate::app::log_panics();
    let push = post("/v1/push", Some(&key), &message()).insert_header(("x-request-id", "trace-8"));
    let log = logged(&relay, vec![push]).await;
    let lines = log.lines("panicked");
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["span"]["request_id"], "trace-8");
    assert!(lines[0]["location"].as_str().unwrap().contains("logs.rs:"));
    assert_eq!(log.lines("request answered")[0]["error"], "internal_error");
    assert!(!log.text().contains(MARK));
}
