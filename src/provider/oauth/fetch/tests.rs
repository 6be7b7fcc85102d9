//! Against small servers of one answer.

use std::net::Ipv4Addr;

use sovereign_relay_protocol::redacted::Redacted;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::provider::{http, transport};

/// What one answer of the endpoint comes to, and the request it was given to.
async fn ask(answer: &'static str) -> (Result<Issued, TokenError>, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"done") {
            let mut bytes = [0; 4096];
            let read = socket.read(&mut bytes).await.unwrap();
            request.extend_from_slice(&bytes[..read]);
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    };
    let endpoint = endpoint(&url);
    tokio::join!(endpoint.fetch(UnixMillis(0)), server)
}

fn endpoint(url: &str) -> TokenEndpoint {
    let tls = transport::tls_config(None).unwrap();
    TokenEndpoint {
        provider: "wns",
        grant: Grant::ClientCredentials {
            client_id: "ms-app://S-1-15-2".into(),
            client_secret: Redacted::new("a+b/c&d"),
            scope: "done",
        },
        url: Url::parse(url).unwrap(),
        http: http::client(&tls, http::Options::tokens()).unwrap(),
    }
}

#[tokio::test]
async fn credentials_go_out_as_an_encoded_form() {
    let (issued, request) =
        ask("HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{\"access_token\":\"t\",\"expires_in\":86400 }")
            .await;
    assert!(issued.is_ok());
    assert!(request.starts_with("POST /token HTTP/1.1\r\n"), "{request}");
    let form = "grant_type=client_credentials&client_id=ms-app%3A%2F%2FS-1-15-2&client_secret=a%2Bb%2Fc%26d&scope=done";
    assert!(request.ends_with(form), "{request}");
}

async fn answered_as(answers: &[(&'static str, TokenError)]) {
    for (answer, expected) in answers {
        assert_eq!(ask(answer).await.0.unwrap_err(), *expected, "{answer}");
    }
}

#[tokio::test]
async fn credentials_are_refused_by_a_word_of_rfc_6749_and_by_no_page_of_a_proxy() {
    answered_as(&[
        (
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 25\r\n\r\n{\"error\":\"invalid_grant\"} ",
            TokenError::Refused,
        ),
        (
            "HTTP/1.1 401 No\r\ncontent-length: 26\r\n\r\n{\"error\":\"invalid_client\"}",
            TokenError::Refused,
        ),
        (
            "HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n",
            TokenError::Unusable,
        ),
        (
            "HTTP/1.1 403 No\r\ncontent-length: 13\r\n\r\n<html></html>",
            TokenError::Unusable,
        ),
        (
            "HTTP/1.1 400 No\r\ncontent-length: 22\r\n\r\n{\"error\":{\"code\":400}}",
            TokenError::Unusable,
        ),
        (
            "HTTP/1.1 503 No\r\ncontent-length: 35\r\n\r\n{\"error\":\"temporarily_unavailable\"}",
            TokenError::Unavailable,
        ),
    ])
    .await;
}

#[tokio::test]
async fn whatever_else_is_answered_is_never_a_token() {
    answered_as(&[
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>",
            TokenError::Unusable,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"access_token\":\"t\"}",
            TokenError::Unusable,
        ),
        (
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 99\r\n\r\n{\"error\":\"invalid_grant\"",
            TokenError::Unusable,
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            TokenError::Unusable,
        ),
        (
            "HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n\r\n",
            TokenError::Throttled {
                wait: Duration::from_secs(1),
            },
        ),
        (
            "HTTP/1.1 429 Slow\r\nretry-after: 37\r\ncontent-length: 9\r\n\r\ncut",
            TokenError::Throttled {
                wait: Duration::from_secs(37),
            },
        ),
        (
            "HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n",
            TokenError::Unavailable,
        ),
        ("", TokenError::Unreachable),
        ("garbage\r\n\r\n", TokenError::Unreachable),
    ])
    .await;
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_dialled_is_unreachable() {
    let port = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let outcome = endpoint(&format!("http://127.0.0.1:{port}/"))
        .fetch(UnixMillis(0))
        .await;
    assert_eq!(outcome.unwrap_err(), TokenError::Unreachable);
}
