//! The calls against a server on loopback that says what it is told.

use std::sync::Arc;

use sovereign_relay_protocol::{error::ErrorCode, limits, platform::Platform, push::Reason};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Mutex,
    task::JoinHandle,
};

use super::*;

/// Answers one request after the other with the same bytes, and keeps what it was asked.
struct Server {
    relay: Relay,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn answering(status: &str, headers: &str, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/below", listener.local_addr().unwrap());
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
        let answer = format!("{head}{body}");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(listener, answer, asked.clone()));
        let relay = Relay::new(&base, &Trust::system().unwrap()).unwrap();
        Self { relay, asked, task }
    }

    fn instance(&self) -> Instance {
        self.relay.instance(InstanceKey::new("the-key"))
    }

    /// Method, path and body of the only request.
    async fn request(&self) -> (String, String) {
        let asked = self.asked.lock().await;
        assert_eq!(asked.len(), 1);
        let (head, body) = asked[0].split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}

async fn serve(listener: TcpListener, answer: String, asked: Arc<Mutex<Vec<String>>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        while !is_whole(&request) {
            if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                break;
            }
        }
        asked.lock().await.push(String::from_utf8(request).unwrap());
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    body.len() >= length
}

fn message() -> PushMessage {
    PushMessage::new(Platform::Android, Redacted::new("token"), Redacted::new("sealed"))
}

#[tokio::test]
async fn a_push_carries_the_key_in_the_header_and_its_outcome_is_typed() {
    let body = r#"{"result":"failed","reason":"device_throttled","retryable":true,"retryAfterSeconds":4}"#;
    let server = Server::answering("200 OK", "", body).await;
    let outcome = server.instance().push(&message()).await.unwrap();
    let expected = PushOutcome::Failed {
        reason: Some(Reason::DeviceThrottled),
        retryable: true,
        retry_after: Some(Duration::from_secs(4)),
    };
    assert_eq!(outcome, expected);
    let (head, body) = server.request().await;
    assert!(head.starts_with("POST /below/v1/push HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer the-key"), "{head}");
    assert!(head.contains("content-type: application/json") && !body.contains("the-key"));
}

#[tokio::test]
async fn a_refusal_has_its_code_and_when_to_come_back() {
    let body = r#"{"error":"rate_limited","message":"slower, please"}"#;
    let server = Server::answering("429 Too Many Requests", "retry-after: 17\r\n", body).await;
    let error = server.instance().push(&message()).await.unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(17)));
    let CallError::Refused(refusal) = error else {
        panic!("a refusal, not {error}");
    };
    assert_eq!(
        (refusal.code, refusal.status),
        (Some(ErrorCode::RateLimited), 429)
    );
    assert_eq!(refusal.message, "slower, please");
}

#[tokio::test]
async fn what_is_no_answer_of_a_relay_is_not_taken_for_one() {
    for (status, body, expected) in [
        ("200 OK", "<html>", 200),
        (
            "200 OK",
            r#"{"result":"invalid_token","reason":"unregistered"}"#,
            200,
        ),
        ("502 Bad Gateway", "<html>", 502),
        ("302 Found", "", 302),
    ] {
        let server = Server::answering(status, "location: https://elsewhere.example\r\n", body).await;
        let error = server.instance().push(&message()).await.unwrap_err();
        assert!(
            matches!(error, CallError::Unreadable(status) if status == expected),
            "{error}"
        );
    }
    let server = Server::answering("200 OK", "", &"x".repeat(1024 * 1024 + 1)).await;
    let error = server.relay.capabilities().await.unwrap_err();
    assert!(matches!(error, CallError::Unreadable(200)), "{error}");
}

#[tokio::test]
async fn a_relay_that_is_not_there_never_had_the_push() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let relay = Relay::new(&base, &Trust::system().unwrap()).unwrap();
    let error = relay
        .instance(InstanceKey::new("k"))
        .push(&message())
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::NotSent(_)), "{error}");
}

#[tokio::test]
async fn a_relay_that_hangs_up_may_have_had_the_push() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !is_whole(&request) {
            stream.read_buf(&mut request).await.unwrap();
        }
    });
    let relay = Relay::new(&base, &Trust::system().unwrap()).unwrap();
    let error = relay
        .instance(InstanceKey::new("k"))
        .push(&message())
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::NoAnswer(_)), "{error}");
    assert!(!format!("{error} {error:?}").contains(&base));
    server.await.unwrap();
}

#[tokio::test]
async fn an_enrollment_shows_the_invite_and_prints_no_key() {
    let id = InstanceId::from_random([1; 16]);
    let body = format!(r#"{{"instanceId":"{id}","instanceKey":"marked"}}"#);
    let server = Server::answering("200 OK", "", &body).await;
    let request = EnrollRequest {
        name: Some(Redacted::new("home")),
        contact: None,
    };
    let invite = Redacted::new("the-invite");
    let enrollment = server.relay.enroll(&request, Some(&invite)).await.unwrap();
    assert_eq!(enrollment.instance_id, id);
    assert_eq!(enrollment.instance_key.expose(), "marked");
    assert!(!format!("{enrollment:?}").contains("marked"));
    let (head, body) = server.request().await;
    assert!(head.starts_with("POST /below/v1/enroll ") && head.contains("Bearer the-invite"));
    assert_eq!(body, r#"{"name":"home"}"#);
}

#[tokio::test]
async fn a_rotation_a_withdrawal_and_a_deleted_session_go_where_they_belong() {
    let id = InstanceId::from_random([1; 16]);
    let until = "2026-01-01T00:00:00Z";
    let body = format!(r#"{{"instanceId":"{id}","instanceKey":"new","previousValidUntil":"{until}"}}"#);
    let server = Server::answering("200 OK", "", &body).await;
    let rotation = server.instance().rotate(Some(Duration::ZERO)).await.unwrap();
    assert_eq!(rotation.previous_valid_until.to_rfc3339(), until);
    let (head, body) = server.request().await;
    assert!(head.starts_with("POST /below/v1/keys/rotate "));
    assert_eq!(body, r#"{"graceSeconds":0}"#);

    let server = Server::answering("204 No Content", "", "").await;
    server.instance().withdraw().await.unwrap();
    assert!(
        server
            .request()
            .await
            .0
            .starts_with("DELETE /below/v1/enrollment ")
    );

    let server = Server::answering("204 No Content", "", "").await;
    let session = SessionId::from_bytes([0xfb; 16]);
    server.instance().delete_session(session).await.unwrap();
    let expected = format!("DELETE /below/v1/signal/sessions/{session} ");
    assert!(server.request().await.0.starts_with(&expected));
}

#[test]
fn a_key_is_not_sent_to_any_address() {
    let trust = Trust::system().unwrap();
    for wrong in [
        "http://relay.example",
        "ftp://relay.example",
        "relay.example",
        "https://relay.example/?a=b",
    ] {
        assert!(
            matches!(Relay::new(wrong, &trust), Err(SetupError::Address(_))),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_key_that_no_header_can_carry_is_no_answer() {
    let long = "k".repeat(KEY_BYTES + 1);
    for key in ["", "two words", r"line\n", r"nul\u0000", "\u{fc}", &long] {
        let id = "0b9f2b6e-6e0e-4c4e-9d53-2e7f3f1d8a11";
        let body = format!(r#"{{"instanceId":"{id}","instanceKey":"{key}"}}"#);
        let server = Server::answering("200 OK", "", &body).await;
        let enrolled = server.relay.enroll(&EnrollRequest::default(), None).await;
        assert!(matches!(enrolled, Err(CallError::Unreadable(200))), "{key}");
    }
}

/// In a process of its own, since the environment is the process's.
#[tokio::test]
async fn a_proxy_of_the_environment_is_not_told_the_key_of_a_relay_on_this_machine() {
    const TEST: &str =
        "http::tests::a_proxy_of_the_environment_is_not_told_the_key_of_a_relay_on_this_machine";
    const INSIDE: &str = "RELAY_CLIENT_PROXY_TEST";
    if std::env::var_os(INSIDE).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        // Nobody listens there: whoever goes that way fails.
        let proxied = again.env(INSIDE, "1").env("HTTP_PROXY", "http://127.0.0.1:9");
        let output = proxied.args([TEST, "--exact"]).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    let server = Server::answering("204 No Content", "", "").await;
    server.instance().withdraw().await.unwrap();
}

#[tokio::test]
async fn calls_wait_longer_than_the_slowest_relay_takes() {
    let longest_push = Duration::from_secs(17);
    let turns = limits::BATCH_MESSAGES.div_ceil(limits::BATCH_PARALLEL);
    let relay = Relay::new("https://relay.example", &Trust::system().unwrap()).unwrap();
    let batch = relay.instance(InstanceKey::new("the-key")).batch_call(&[]);
    let patience = *batch.build().unwrap().timeout().unwrap();
    assert!(
        patience > longest_push * u32::try_from(turns).unwrap(),
        "{patience:?}"
    );
    assert!(CALL_LIMIT > longest_push);
}
