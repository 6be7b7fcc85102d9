//! The operator's commands against a listener that answers what a test tells it to.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    thread::JoinHandle,
};

use clap::Parser as _;

use reqwest::StatusCode;

use super::{ADDRESS, ErrorBody, reachable, refusal, unreachable};
use crate::cli::{Cli, exit::Exit};

const INSTANCE: &str = "6f1c2f0e-6f1c-4f0e-8f1c-6f1c2f0e6f1c";
const TOKEN: &str = "an-admin-token-of-32-characters!";

/// Answers one request with `status` and `body`, and gives back what was asked.
fn answer_once(status: &str, body: &str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        while !is_complete(&request) {
            let mut buffer = [0_u8; 4096];
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the request ended early: {request}");
            request.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        stream.write_all(answer.as_bytes()).unwrap();
        request
    });
    (address, asked)
}

fn is_complete(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.to_ascii_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length:")
            .map(|value| value.trim().parse::<usize>().unwrap())
    });
    body.len() >= length.unwrap_or(0)
}

fn run(words: &[&str], address: SocketAddr) -> Exit {
    let listen = address.to_string();
    let admin = ["--relay-admin-listen", &listen, "--relay-admin-token", TOKEN];
    let words = ["sovereign-relay"].iter().chain(words).chain(&admin).copied();
    Cli::try_parse_from(words.collect::<Vec<_>>()).unwrap().run()
}

/// Nothing listens there any more.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_suspension_is_posted_with_the_token_its_reason_and_its_seconds() {
    let view = format!("{{\"instanceId\":\"{INSTANCE}\",\"sent\":3}}");
    let (address, asked) = answer_once("200 OK", &view);
    let exit = run(
        &[
            "instances",
            "suspend",
            INSTANCE,
            "--reason",
            "dead tokens",
            "--for",
            "1h",
        ],
        address,
    );
    assert_eq!(exit, Exit::Done);
    let request = asked.join().unwrap();
    assert!(
        request.starts_with(&format!("POST /admin/v1/instances/{INSTANCE}/suspend HTTP/1.1")),
        "{request}"
    );
    assert!(
        request.contains(&format!("authorization: Bearer {TOKEN}")),
        "{request}"
    );
    assert!(
        request.ends_with("{\"reason\":\"dead tokens\",\"seconds\":3600}"),
        "{request}"
    );
}

#[test]
fn a_limit_of_default_is_sent_as_null() {
    let view = format!("{{\"instanceId\":\"{INSTANCE}\",\"sent\":3}}");
    let (address, asked) = answer_once("200 OK", &view);
    assert_eq!(
        run(&["instances", "limit", INSTANCE, "default"], address),
        Exit::Done
    );
    assert!(asked.join().unwrap().ends_with("{\"perMinute\":null}"));
}

#[test]
fn an_invite_is_asked_for_with_its_lifetime_in_seconds() {
    let created = "{\"invite\":\"inv_x\",\"expiresAt\":\"2026-12-01T00:00:00Z\"}";
    let (address, asked) = answer_once("200 OK", created);
    assert_eq!(run(&["invite", "create", "--ttl", "7d"], address), Exit::Done);
    assert!(asked.join().unwrap().ends_with("{\"ttlSeconds\":604800}"));
}

#[test]
fn revocations_come_out_byte_for_byte_and_go_in_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.json");
    let list = "{\"version\":1,\"entries\":[]}";
    let (address, asked) = answer_once("200 OK", list);
    assert_eq!(
        run(
            &["revocations", "export", "--output", path.to_str().unwrap()],
            address
        ),
        Exit::Done
    );
    asked.join().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), list);
    let (address, asked) = answer_once("200 OK", "{\"imported\":0}");
    assert_eq!(
        run(&["revocations", "import", path.to_str().unwrap()], address),
        Exit::Done
    );
    let request = asked.join().unwrap();
    assert!(
        request.starts_with("PUT /admin/v1/revocations") && request.ends_with(list),
        "{request}"
    );
}

#[test]
fn a_refusal_ends_with_code_4_an_absent_relay_with_3_a_strange_answer_with_1() {
    let refusal = "{\"error\":\"not_found\",\"message\":\"no instance is known by this id\"}";
    let (address, asked) = answer_once("404 Not Found", refusal);
    assert_eq!(run(&["instances", "show", INSTANCE], address), Exit::Refused);
    asked.join().unwrap();
    assert_eq!(run(&["instances", "show", INSTANCE], nobody()), Exit::Unreachable);
    let (address, asked) = answer_once("200 OK", "<html>");
    assert_eq!(run(&["instances", "show", INSTANCE], address), Exit::Failed);
    asked.join().unwrap();
}

#[tokio::test]
async fn who_is_not_reached_hears_which_address_was_tried_and_which_setting_names_it() {
    let address = nobody();
    let sent = super::client().unwrap().get(format!("http://{address}/")).send();
    let said = unreachable(&sent.await.unwrap_err(), address, ADDRESS).to_string();
    assert!(
        said.contains(&address.to_string()) && said.contains("RELAY_ADMIN_LISTEN"),
        "{said}"
    );
    assert!(said.contains("refused") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_refused_token_is_told_with_the_settings_it_comes_from_and_no_other_refusal_is() {
    let body = || {
        Some(ErrorBody {
            error: "unauthorized".to_owned(),
            message: "the token is wrong".to_owned(),
        })
    };
    let said = |status| refusal(status, body()).to_string();
    let token = said(StatusCode::UNAUTHORIZED);
    for part in [
        "the token is wrong",
        "RELAY_ADMIN_TOKEN",
        "RELAY_DATA_DIR",
        "admin-token",
    ] {
        assert!(token.contains(part), "{part} in {token}");
    }
    assert!(!said(StatusCode::NOT_FOUND).contains("RELAY_"));
}

#[test]
fn the_health_check_tells_alive_from_ill_from_absent() {
    let check = |address: SocketAddr| {
        let listen = address.to_string();
        Cli::try_parse_from(["sovereign-relay", "healthcheck", "--relay-listen", &listen])
            .unwrap()
            .run()
    };
    let (address, asked) = answer_once("200 OK", "{\"status\":\"ok\"}");
    assert_eq!(check(address), Exit::Done);
    assert!(asked.join().unwrap().starts_with("GET /livez "));
    let (address, asked) = answer_once("500 Internal Server Error", "{}");
    assert_eq!(check(address), Exit::Failed);
    asked.join().unwrap();
    assert_eq!(check(nobody()), Exit::Unreachable);
}

#[test]
fn a_listener_on_all_addresses_is_reached_at_loopback() {
    let at = |text: &str| reachable(text.parse().unwrap()).to_string();
    assert_eq!(at("0.0.0.0:4003"), "127.0.0.1:4003");
    assert_eq!(at("[::]:4003"), "[::1]:4003");
    assert_eq!(at("10.0.0.5:4003"), "10.0.0.5:4003");
}
