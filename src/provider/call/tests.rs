//! One push against small servers that damage their answers.

use std::net::Ipv4Addr;

use futures_util::future::{BoxFuture, join_all};
use reqwest::RequestBuilder;
use sovereign_relay_actors::ports::{Certainty, Failure, Hold};
use sovereign_relay_protocol::time::UnixMillis;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    runtime::Handle,
    task::JoinHandle,
};

use super::*;
use crate::{
    clock::SystemClock,
    entropy::SystemEntropy,
    provider::{
        answer::{not_the_providers, perhaps_taken},
        http::{self, Options, causes},
        oauth::{Issued, TokenError, TokenSource, issued},
        transport,
    },
};

/// For a body that never comes whole. Its head must come within, so it is longer than that takes anywhere.
const FOR_A_STALLED_BODY: Duration = Duration::from_secs(2);
/// For whatever ends by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// How an answer's body is lost.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Cut,
    CutBetweenChunks,
    TooLong,
    Stalls,
}

const DAMAGES: [Damage; 4] = [
    Damage::Cut,
    Damage::CutBetweenChunks,
    Damage::TooLong,
    Damage::Stalls,
];

impl Damage {
    fn answer(self, status: u16) -> String {
        let start = r#"{"error":"#;
        let (length, body) = match self {
            Self::Cut | Self::Stalls => ("content-length: 100".to_owned(), start.to_owned()),
            Self::CutBetweenChunks => (
                "transfer-encoding: chunked".to_owned(),
                format!("9\r\n{start}\r\n"),
            ),
            Self::TooLong => {
                let body = format!("{start}{}", " ".repeat(ANSWER_LIMIT));
                (format!("content-length: {}", body.len()), body)
            }
        };
        format!("HTTP/1.1 {status} Some\r\nretry-after: 37\r\n{length}\r\n\r\n{body}")
    }
}

/// Gives one answer and, if that stalls, keeps the connection.
async fn serve(answer: String, stalls: bool) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"end") {
            request.push(socket.read_u8().await.unwrap());
        }
        // The client may have seen enough before all is written.
        let _ = socket.write_all(answer.as_bytes()).await;
        let _ = socket.flush().await;
        if stalls {
            std::future::pending::<()>().await;
        }
    });
    (url, server)
}

struct OneToken;

impl TokenSource for OneToken {
    fn fetch(&self, _: UnixMillis) -> BoxFuture<'_, Result<Issued, TokenError>> {
        let token = issued(br#"{"access_token":"t","expires_in":3600}"#).unwrap();
        Box::pin(std::future::ready(Ok(token)))
    }
}

/// A push whose answer, if it is a whole 4xx, is the end of the device.
struct Fragile {
    http: reqwest::Client,
    url: String,
}

impl Push for Fragile {
    fn body(&self) -> Bytes {
        Bytes::from_static(b"end")
    }

    fn request(&self, _: Over) -> RequestBuilder {
        self.http.post(&self.url)
    }

    fn read(&self, answer: &Answer) -> Reading {
        Reading::Outcome(match answer.status {
            400..=499 => gone(),
            _ => perhaps_taken(),
        })
    }

    fn is_own(&self, _: &Answer) -> bool {
        true
    }

    fn sender(&self) -> TurnKey {
        TurnKey::Group(1)
    }
}

/// Made before anybody's patience begins: reading the system's certificates takes long.
fn client() -> reqwest::Client {
    http::client(&transport::tls_config(None).unwrap(), Options::tokens()).unwrap()
}

async fn deliver(http: &reqwest::Client, url: &str, patience: Duration) -> Outcome {
    let ports: (Arc<dyn Clock>, Arc<dyn Entropy>) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let deadline = ports.0.now().mono + patience;
    let keeper = TokenKeeper::start(OneToken, ports.clone(), &Handle::current());
    let push = Fragile {
        http: http.clone(),
        url: url.to_owned(),
    };
    Caller::new("fcm", ports, causes)
        .deliver(&keeper, deadline, &push)
        .await
}

fn gone() -> Outcome {
    Outcome::Gone {
        certainty: Certainty::Certain,
        reason: Reason::Unregistered,
        since: UnixMillis(0),
    }
}

async fn damaged(http: &reqwest::Client, status: u16, damage: Damage) -> Outcome {
    let stalls = matches!(damage, Damage::Stalls);
    let (url, server) = serve(damage.answer(status), stalls).await;
    let patience = if stalls { FOR_A_STALLED_BODY } else { PATIENCE };
    let outcome = deliver(http, &url, patience).await;
    server.abort();
    outcome
}

#[tokio::test]
async fn a_4xx_whose_body_is_lost_says_nothing_final_of_anybody() {
    let statuses = [400, 401, 403, 404, 410, 413, 418];
    let all = statuses
        .iter()
        .flat_map(|&status| DAMAGES.map(|damage| (status, damage)));
    let http = client();
    let deliveries = all.map(async |(status, damage)| {
        let outcome = damaged(&http, status, damage).await;
        assert_eq!(outcome, not_the_providers(), "{status} {damage:?}");
    });
    join_all(deliveries).await;
}

#[tokio::test]
async fn a_429_whose_body_is_lost_throttles_this_push_and_holds_nobody() {
    let http = client();
    for damage in DAMAGES {
        let throttled = Outcome::Failed(Failure {
            reason: Reason::ProviderThrottled,
            retryable: true,
            retry_after: Some(Duration::from_secs(37)),
            hold: Hold::Nothing,
            health: Health::Answered,
        });
        assert_eq!(damaged(&http, 429, damage).await, throttled, "{damage:?}");
    }
}

#[tokio::test]
async fn a_success_whose_body_is_lost_is_still_read_by_its_head() {
    let http = client();
    for damage in DAMAGES {
        assert_eq!(damaged(&http, 200, damage).await, perhaps_taken(), "{damage:?}");
    }
}

#[tokio::test]
async fn a_4xx_that_is_whole_is_read() {
    let (url, server) = serve(
        "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
        false,
    )
    .await;
    assert_eq!(deliver(&client(), &url, PATIENCE).await, gone());
    server.await.unwrap();
}

fn told(error: TokenError, wait: Option<Duration>) -> Outcome {
    without_token(NoToken::NotIssued { error, wait })
}

fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_trouble_of_the_token_endpoint_itself_counts_against_the_provider() {
    let wait = Duration::from_secs(37);
    let throttled = failure(told(TokenError::Throttled { wait }, None));
    assert_eq!(
        (throttled.reason, throttled.retry_after),
        (Reason::ProviderThrottled, Some(wait))
    );
    assert_eq!(
        (throttled.hold, throttled.health),
        (Hold::Nothing, Health::Answered)
    );
    assert_eq!(told(TokenError::Unusable, None), not_the_providers());
    assert_eq!(told(TokenError::Unreachable, Some(wait)), Outcome::Unreachable);
    assert_eq!(
        told(TokenError::Unavailable, None),
        failed(Reason::ProviderUnavailable, true, Health::Faulty)
    );
}

#[test]
fn what_is_told_only_because_the_keeper_waits_is_retryable_after_the_rest_but_for_refused_credentials() {
    let rest = Duration::from_secs(7);
    let asked = TokenError::Throttled { wait: rest * 2 };
    let errors = [TokenError::Unusable, TokenError::Unavailable, asked];
    let waits = errors.map(|error| NoToken::NotIssued {
        error,
        wait: Some(rest),
    });
    for told in waits.into_iter().chain([NoToken::Doubted { wait: rest }]) {
        let failure = failure(without_token(told));
        assert_eq!(
            (failure.retryable, failure.retry_after),
            (true, Some(rest)),
            "{told:?}"
        );
    }
    assert_eq!(told(TokenError::Refused, Some(rest)), misconfigured());
}

#[test]
fn a_refused_access_token_holds_its_device_and_is_the_relays_fault_only_if_nobody_is_accepted_with_it() {
    for (others_are_accepted, reason) in [
        (true, Reason::ProviderUnavailable),
        (false, Reason::RelayMisconfigured),
    ] {
        let failure = failure(token_refused(others_are_accepted));
        assert_eq!((failure.reason, failure.retryable), (reason, true));
        assert_eq!(failure.hold, Hold::Token);
        assert!(failure.retry_after.is_some());
    }
}
