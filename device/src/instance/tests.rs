//! The calls against a server on loopback that says what it is told.

use std::sync::Arc;

use sovereign_relay_protocol::seal::DevicePublicKey;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Mutex,
    task::JoinHandle,
};

use super::{call::refusal, *};
use crate::Store;

const LOOPBACK: Trust<'_> = Trust {
    extra_certificates: None,
    plain_loopback: true,
};

/// Answers each request with the same bytes, and keeps what it was asked.
struct Server {
    base: String,
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
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n");
        Self::saying(format!("{head}{headers}\r\n{body}")).await
    }

    async fn saying(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(listener, answer, asked.clone()));
        Self { base, asked, task }
    }

    fn instance(&self) -> Instance {
        Instance::new(&self.base, bearer(), LOOPBACK).unwrap()
    }

    async fn only_request(&self) -> String {
        let asked = self.asked.lock().await;
        assert_eq!(asked.len(), 1);
        asked[0].clone()
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

fn bearer() -> Session {
    Session::Bearer(Redacted::new("the-session"))
}

fn token() -> DeviceToken {
    DeviceToken::android("the-token").unwrap()
}

fn keys() -> Keys {
    Keys::open_or_make(Store::memory()).unwrap()
}

#[tokio::test]
async fn a_registration_carries_token_key_and_session() {
    let server = Server::answering("200 OK", "", r#"{"ok":true}"#).await;
    let keys = keys();
    server.instance().register(&token(), &keys).await.unwrap();
    let request = server.only_request().await;
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /api/account/push-device-token HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("authorization: Bearer the-session"), "{head}");
    assert!(
        head.contains("content-type: application/json") && !head.contains("the-token"),
        "{head}"
    );
    let body: Value = serde_json::from_str(body).unwrap();
    let expected = serde_json::json!({
        "platform": "android", "deviceToken": "the-token", "publicKey": keys.public_key()
    });
    assert_eq!(body, expected);
    assert!(DevicePublicKey::from_base64(body["publicKey"].as_str().unwrap()).is_ok());
}

#[tokio::test]
async fn the_environment_that_an_app_has_named_is_registered() {
    let server = Server::answering("200 OK", "", r#"{"ok":true}"#).await;
    let token = DeviceToken::ios(&[0xab]).unwrap();
    let token = token.in_environment(Environment::Sandbox);
    server.instance().register(&token, &keys()).await.unwrap();
    let request = server.only_request().await;
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["environment"], "sandbox");
}

#[tokio::test]
async fn an_instance_may_be_below_a_path_and_know_its_user_by_a_cookie() {
    let server = Server::answering("200 OK", "", r#"{"relayEnabled":true}"#).await;
    let session = Session::Cookie(Redacted::new("sid=abc; theme=dark"));
    for base in ["/below", "/below/"] {
        let base = format!("{}{base}", server.base);
        let instance = Instance::new(&base, session.clone(), LOOPBACK).unwrap();
        let list = instance.registrations().await.unwrap();
        assert!(list.relay_enabled && list.devices.is_empty());
    }
    for request in server.asked.lock().await.iter() {
        assert!(
            request.starts_with("GET /below/api/account/push-device-token HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(request.contains("cookie: sid=abc; theme=dark\r\n"), "{request}");
        assert!(!request.contains("authorization"), "{request}");
    }
}

#[tokio::test]
async fn the_list_is_read_as_deployed_instances_write_it_and_a_later_version_may_add_to_it() {
    let body = r#"{"relayEnabled":false,"extra":1,"devices":[
        {"id":"a","platform":"ios","createdAt":1700000000,"lastUsedAt":null},
        {"id":"b","platform":"toaster","createdAt":"2026-01-01T00:00:00Z","lastUsedAt":1700000001,"x":{}}]}"#;
    let server = Server::answering("200 OK", "", body).await;
    let list = server.instance().registrations().await.unwrap();
    assert!(!list.relay_enabled);
    let expected = [
        ("a", Some(Platform::Ios), Some(1_700_000_000), None),
        ("b", None, None, Some(1_700_000_001)),
    ];
    let devices = list.devices.iter();
    let devices: Vec<_> = devices
        .map(|device| {
            (
                &*device.id,
                device.platform,
                device.created_at,
                device.last_used_at,
            )
        })
        .collect();
    assert_eq!(devices, expected);
}

#[tokio::test]
async fn a_device_is_revoked_by_its_id_and_one_that_is_not_there_is_no_failure() {
    let server = Server::answering("200 OK", "", r#"{"ok":true}"#).await;
    assert!(server.instance().revoke("../a b/c?d").await.unwrap());
    let request = server.only_request().await;
    let path = "/api/account/push-device-token/..%2Fa%20b%2Fc%3Fd";
    assert!(
        request.starts_with(&format!("DELETE {path} HTTP/1.1\r\n")),
        "{request}"
    );
    for nothing in ["", ".", "..", "\t", ".\n."] {
        assert!(!server.instance().revoke(nothing).await.unwrap());
    }
    server.only_request().await;
    let gone = Server::answering("404 Not Found", "", r#"{"error":"not_found","message":"x"}"#).await;
    assert!(!gone.instance().revoke("id").await.unwrap());
    let elsewhere = Server::answering("404 Not Found", "", "<html>").await;
    let error = elsewhere.instance().revoke("id").await.unwrap_err();
    assert!(matches!(error, CallError::Unreadable(404)), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_session() {
    let target = Server::answering("200 OK", "", "{}").await;
    for status in [
        "301 Moved",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let location = format!("location: {}/\r\n", target.base);
        let server = Server::answering(status, &location, "").await;
        let error = server.instance().register(&token(), &keys()).await.unwrap_err();
        assert!(matches!(error, CallError::Unreadable(_)), "{error}");
    }
    assert!(target.asked.lock().await.is_empty());
}

#[tokio::test]
async fn what_is_no_answer_of_an_instance_is_not_taken_for_one() {
    for (status, body) in [
        ("200 OK", "<html>sign in to the airport</html>"),
        ("200 OK", "true"),
        ("200 OK", ""),
        ("502 Bad Gateway", "<html>"),
    ] {
        let server = Server::answering(status, "", body).await;
        let error = server.instance().register(&token(), &keys()).await.unwrap_err();
        assert!(
            matches!(error, CallError::Unreadable(_)) && error.is_retryable(),
            "{body}: {error}"
        );
    }
    let server = Server::answering("200 OK", "", r#"{"relayEnabled":"yes"}"#).await;
    let error = server.instance().registrations().await.unwrap_err();
    assert!(matches!(error, CallError::Unreadable(200)), "{error}");
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut() {
    let body = format!(r#"{{"x":"{}"}}"#, "x".repeat(300 * 1024));
    let server = Server::answering("200 OK", "", &body).await;
    let error = server.instance().registrations().await.unwrap_err();
    assert!(matches!(error, CallError::Unreadable(200)), "{error}");
}

#[tokio::test]
async fn nobody_there_or_a_connection_lost_is_unreachable_and_says_no_address() {
    let silent = Server::saying(String::new()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for base in [&silent.base, &nobody] {
        let instance = Instance::new(base, bearer(), LOOPBACK).unwrap();
        let error = instance.register(&token(), &keys()).await.unwrap_err();
        assert!(
            matches!(error, CallError::Unreachable(_)) && error.is_retryable(),
            "{error}"
        );
        assert!(!error.to_string().contains("api/account"), "{error}");
    }
}

#[tokio::test]
async fn an_instance_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let instance = Instance::new(&base, bearer(), LOOPBACK).unwrap();
    let call = tokio::spawn(async move { instance.registrations().await });
    let (_held, _) = listener.accept().await.unwrap();
    tokio::time::pause();
    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, CallError::Unreachable(cause) if cause.is_timeout()),
        "{error}"
    );
}

#[test]
fn each_no_has_its_kind() {
    let said = |code: &str| format!(r#"{{"error":"{code}","message":"m"}}"#).into_bytes();
    let wait = Some(Duration::from_secs(7));
    assert!(matches!(
        refusal(401, &said("unauthorized"), None),
        CallError::Unauthenticated
    ));
    assert!(matches!(refusal(401, b"", None), CallError::Unauthenticated));
    let off = refusal(503, &said("not_configured"), None);
    assert!(matches!(off, CallError::PushOff) && !off.is_retryable());
    assert!(matches!(
        refusal(503, b"<html>", None),
        CallError::Unreadable(503)
    ));
    for (status, code, retry_after, is_retryable) in [
        (400, "invalid_request", None, false),
        (403, "origin_not_allowed", None, false),
        (429, "rate_limited", wait, true),
        (500, "internal_error", None, true),
        (503, "unavailable", None, true),
        (503, "anything", wait, true),
    ] {
        let error = refusal(status, &said(code), retry_after);
        assert_eq!(
            (error.is_retryable(), error.retry_after()),
            (is_retryable, retry_after),
            "{status} {code}"
        );
        let CallError::Refused(refusal) = error else {
            panic!("{status} {code}: {error}");
        };
        assert_eq!(
            (refusal.status, &*refusal.code, &*refusal.message),
            (status, code, "m")
        );
    }
    let long = format!(r#"{{"error":"x","message":"{}"}}"#, "ü".repeat(4000));
    assert!(refusal(400, long.as_bytes(), None).to_string().chars().count() < 400);
}

#[test]
fn a_session_goes_to_https_alone_but_for_loopback_when_that_is_allowed() {
    let error = |base: &str, trust| Instance::new(base, bearer(), trust).map(|_| ()).unwrap_err();
    assert!(Instance::new("https://example.org/sovereign", bearer(), Trust::default()).is_ok());
    for good in ["http://127.0.0.1:9", "http://[::1]:9/x", "http://localhost"] {
        assert!(Instance::new(good, bearer(), LOOPBACK).is_ok(), "{good}");
        assert!(
            matches!(error(good, Trust::default()), SetupError::Plaintext),
            "{good}"
        );
    }
    for plain in [
        "http://example.org",
        "http://127.0.0.1.example.org",
        "http://10.0.0.1",
    ] {
        assert!(matches!(error(plain, LOOPBACK), SetupError::Plaintext), "{plain}");
    }
    for wrong in [
        "",
        "example.org",
        "ftp://example.org",
        "https://",
        "https://u:p@example.org",
        "https://a.example/?q",
        "https://a.example/#f",
    ] {
        assert!(matches!(error(wrong, LOOPBACK), SetupError::Address), "{wrong}");
    }
}

#[test]
fn a_session_that_a_header_cant_carry_is_refused_and_none_is_printed() {
    for wrong in ["", "a\r\nx: y", "a\nb", "ünicode", "tab\t"] {
        for session in [
            Session::Cookie(Redacted::new(wrong)),
            Session::Bearer(Redacted::new(wrong)),
        ] {
            let refused = Instance::new("https://example.org", session, Trust::default());
            assert!(matches!(refused, Err(SetupError::Session)), "{wrong:?}");
        }
    }
    let instance = Instance::new("https://example.org", bearer(), Trust::default()).unwrap();
    assert!(!format!("{instance:?} {:?}", bearer()).contains("the-session"));
}

#[test]
fn extra_certificates_must_be_some() {
    let with = |pem| Trust {
        extra_certificates: Some(pem),
        plain_loopback: false,
    };
    for wrong in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n"] {
        let refused = Instance::new("https://example.org", bearer(), with(wrong));
        assert!(
            matches!(
                refused,
                Err(SetupError::Certificates(_) | SetupError::NoCertificate)
            ),
            "{wrong}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_body_of_a_refusal_is_read_without_a_panic(status in 300_u16..600, body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let error = refusal(status, &body, None);
        proptest::prop_assert!(matches!(error, CallError::Unreadable(_) | CallError::Unauthenticated));
    }

    #[test]
    fn any_id_stays_below_the_path(id in "\\PC{1,40}") {
        let instance = Instance::new("https://example.org", bearer(), Trust::default()).unwrap();
        proptest::prop_assume!(id != "." && id != "..");
        let request = instance.request(Method::DELETE, Some(&id)).build().unwrap();
        let path = request.url().path().strip_prefix("/api/account/push-device-token/").unwrap();
        proptest::prop_assert!(!path.is_empty() && !path.contains('/'));
        proptest::prop_assert_eq!(request.url().query(), None);
    }
}
