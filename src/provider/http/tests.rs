//! The proofs of "surely not seen", over real sockets.

use std::{net::Ipv4Addr, sync::atomic::AtomicUsize};

use sovereign_relay_actors::ports::Clock as _;
use sovereign_relay_simulator::{Behaviour, SimulatorOptions, Simulators};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Notify,
};

use super::*;
use crate::{clock::SystemClock, provider::transport};

const QUICK: Pings = Pings {
    silence: Duration::from_millis(200),
    limit: Duration::from_millis(200),
};

struct World {
    simulators: Simulators,
    client: reqwest::Client,
}

impl World {
    async fn start() -> Self {
        let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
        let tls = transport::tls_config(Some(&simulators.ca_pem)).unwrap();
        let options = Options {
            pings: QUICK,
            ..Options::http2()
        };
        Self {
            client: client(&tls, options).unwrap(),
            simulators,
        }
    }

    /// Any answer will do: without a bearer token it is a 401.
    async fn post(&self) -> Result<u16, SendError> {
        let url = format!("{}/v1/projects/p/messages:send", self.simulators.fcm.endpoint());
        post(&self.client, &url, "{}").await
    }
}

async fn post(client: &reqwest::Client, url: &str, text: &'static str) -> Result<u16, SendError> {
    let (body, custody) = watched_body(Bytes::from_static(text.as_bytes()));
    let request = client.post(url).header("content-length", text.len()).body(body);
    match request.send().await {
        Ok(response) => Ok(response.status().as_u16()),
        Err(error) => Err(classify(&error, &custody)),
    }
}

fn plain() -> reqwest::Client {
    client(&transport::tls_config(None).unwrap(), Options::tokens()).unwrap()
}

/// Serves one connection: reads until the request's end, then writes `answer` and closes.
async fn serve_once(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"end") {
            let mut bytes = [0; 1024];
            let read = socket.read(&mut bytes).await.unwrap();
            request.extend_from_slice(&bytes[..read]);
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    });
    (url, task)
}

#[tokio::test]
async fn a_half_open_connection_is_given_up_as_lost_and_replaced() {
    let world = World::start().await;
    assert_eq!(world.post().await, Ok(401));
    world.simulators.fcm.blackhole(true);
    assert_eq!(
        world.post().await,
        Err(SendError::Lost),
        "perhaps it was read, and it counts for the connection"
    );
    assert_eq!(world.post().await, Ok(401));
}

#[tokio::test]
async fn refused_dials_and_names_that_do_not_resolve_are_not_sent() {
    let port = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        listener.local_addr().unwrap().port()
    };
    for host in ["127.0.0.1", "no-such-name.invalid"] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(
            post(&plain(), &url, "end").await,
            Err(SendError::NotSent),
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_not_sent_and_its_cause_is_told() {
    let world = World::start().await;
    let url = world.simulators.fcm.endpoint();
    let stranger = client(&transport::tls_config(None).unwrap(), Options::http2()).unwrap();
    assert_eq!(post(&stranger, &url, "end").await, Err(SendError::NotSent));
    let cause = causes(stranger.post(&url).send().await.unwrap_err());
    assert!(
        cause.contains("certificate") && !cause.contains(&world.simulators.fcm.port().to_string()),
        "{cause}"
    );
}

#[tokio::test]
async fn a_connection_cut_after_the_request_may_have_been_read() {
    let (url, server) = serve_once("").await;
    assert_eq!(post(&plain(), &url, "end").await, Err(SendError::Lost));
    server.await.unwrap();
}

#[tokio::test]
async fn an_answer_that_is_no_http_may_have_been_read_too() {
    let (url, server) = serve_once("SSH-2.0-OpenSSH\r\n").await;
    assert_eq!(post(&plain(), &url, "end").await, Err(SendError::Lost));
    server.await.unwrap();
}

#[tokio::test]
async fn a_watched_body_goes_out_whole_with_its_length_and_not_in_chunks() {
    let (url, server) = serve_once("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(post(&plain(), &url, "to the end").await, Ok(204));
    let request = server.await.unwrap().to_ascii_lowercase();
    assert!(request.contains("\r\ncontent-length: 10\r\n"), "{request}");
    assert!(
        request.ends_with("\r\n\r\nto the end") && !request.contains("chunked"),
        "{request}"
    );
}

#[tokio::test]
async fn a_refused_stream_was_not_sent_and_a_stream_that_is_reset_may_have_been() {
    let world = World::start().await;
    let token = access_token(&world).await;
    for (behaviour, expected) in [
        (Behaviour::refuse_stream(), SendError::Refused),
        (Behaviour::reset_stream(2), SendError::Reset),
        (Behaviour::reset_stream(8), SendError::Reset),
        (Behaviour::kill_connection(), SendError::Lost),
    ] {
        world.simulators.fcm.script().next(1, behaviour.clone());
        let device = world.simulators.fcm.new_token();
        let text = format!(r#"{{"message":{{"token":"{device}","data":{{"encryptedPayload":"x"}}}}}}"#);
        let project = &world.simulators.fcm.options().project_id;
        let url = format!(
            "{}/v1/projects/{project}/messages:send",
            world.simulators.fcm.endpoint()
        );
        let (body, custody) = watched_body(text.into());
        let request = world.client.post(url).bearer_auth(&token).body(body);
        let error = request
            .header("content-type", "application/json")
            .send()
            .await
            .unwrap_err();
        assert_eq!(classify(&error, &custody), expected, "{behaviour:?}");
    }
}

/// An access token of the simulator, by its service account.
async fn access_token(world: &World) -> String {
    use jsonwebtoken::{Algorithm, EncodingKey, Header};
    let account: serde_json::Value =
        serde_json::from_str(&world.simulators.fcm.service_account_json()).unwrap();
    let seconds = SystemClock::new().now().unix.seconds();
    let claims = serde_json::json!({
        "iss": account["client_email"], "aud": account["token_uri"], "iat": seconds, "exp": seconds + 3600,
        "scope": "https://www.googleapis.com/auth/firebase.messaging",
    });
    let key = EncodingKey::from_rsa_pem(account["private_key"].as_str().unwrap().as_bytes()).unwrap();
    let header = Header {
        kid: account["private_key_id"].as_str().map(str::to_owned),
        ..Header::new(Algorithm::RS256)
    };
    let form = [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned(),
        ),
        ("assertion", jsonwebtoken::encode(&header, &claims, &key).unwrap()),
    ];
    let url = account["token_uri"].as_str().unwrap();
    let answer = world.client.post(url).form(&form).send().await.unwrap();
    let answer: serde_json::Value = answer.json().await.unwrap();
    answer["access_token"].as_str().unwrap().to_owned()
}

/// An HTTP/2 server that allows one stream at a time and answers it when told to.
struct OneStream {
    url: String,
    answer: Arc<Notify>,
    /// Requests that came with their bodies.
    whole: Arc<AtomicUsize>,
}

impl OneStream {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let server = Self {
            url: format!("http://{}/", listener.local_addr().unwrap()),
            answer: Arc::default(),
            whole: Arc::default(),
        };
        let (answer, whole) = (Arc::clone(&server.answer), Arc::clone(&server.whole));
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::Builder::new()
                .max_concurrent_streams(1)
                .handshake::<_, Bytes>(socket)
                .await
                .unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let (answer, whole) = (Arc::clone(&answer), Arc::clone(&whole));
                tokio::spawn(async move {
                    let mut body = request.into_body();
                    while let Some(chunk) = body.data().await {
                        if chunk.is_err() {
                            return;
                        }
                    }
                    whole.fetch_add(1, Ordering::SeqCst);
                    answer.notified().await;
                    respond.send_response(::http::Response::new(()), true).unwrap();
                });
            }
        });
        server
    }
}

// The head of one that waited may still go out when the stream is free; the body must not.
#[tokio::test]
async fn a_request_that_waits_for_a_stream_until_its_deadline_is_not_sent_and_never_will_be() {
    let server = OneStream::start().await;
    let client = client(&transport::tls_config(None).unwrap(), Options::http2()).unwrap();
    let first = async {
        let answered = post(&client, &server.url, "first").await;
        server.answer.notify_one();
        (answered, post(&client, &server.url, "next").await)
    };
    let waiting = async {
        while server.whole.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let one = || async {
            let (body, custody) = watched_body(Bytes::from_static(b"late"));
            let request = client.post(&server.url).body(body).send();
            let too_late = timeout(Duration::from_millis(100), request).await.is_err();
            (too_late, custody.withdraw())
        };
        let waited = futures_util::future::join_all((0..5).map(|_| one())).await;
        server.answer.notify_one();
        waited
    };
    let ((first, next), waited) = tokio::join!(first, waiting);
    assert_eq!(waited, [(true, true); 5]);
    assert_eq!((first, next), (Ok(200), Ok(200)));
    assert_eq!(server.whole.load(Ordering::SeqCst), 2);
}
