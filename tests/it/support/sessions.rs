//! Sessions of the relay, and the ways into them.

use reqwest::Method;
use serde_json::{Value, json};
use sovereign_relay_client::{
    protocol::{
        limits::SESSION_SECONDS_MAX,
        redacted::Redacted,
        signal::{id::SessionId, seal::SessionSecret},
    },
    signal::{connection::Connection, invitation::Invitation},
    trust::Trust,
};

use super::{
    answer::{Answer, Instance},
    peer::{Dial, Peer},
    relay::Relay,
};

/// A session as its creator knows it.
#[derive(Clone)]
pub struct Made {
    pub id: String,
    pub url: String,
    /// Of slot a; empty where it is another instance's.
    pub a: String,
    /// Of slot b.
    pub b: String,
}

impl Relay {
    pub fn session_request(&self, instance: &Instance, settings: &Value) -> reqwest::RequestBuilder {
        self.request(Method::POST, "/v1/signal/sessions")
            .bearer_auth(&instance.key)
            .json(settings)
    }

    /// A session in which both slots are the instance's.
    pub async fn session(&self, instance: &Instance, settings: Value) -> Made {
        Made::read(&Answer::from(self.session_request(instance, &settings)).await)
    }

    /// A session whose content need not be sealed, and that outlasts a test on a slow machine.
    pub async fn open_session(&self, instance: &Instance) -> Made {
        self.session(instance, open()).await
    }

    /// What the API says of a session.
    pub async fn look_at(&self, instance: &Instance, session: &Made) -> Answer {
        let path = format!("/v1/signal/sessions/{}", session.id);
        Answer::from(self.request(Method::GET, &path).bearer_auth(&instance.key)).await
    }

    pub async fn delete_session(&self, instance: &Instance, session: &Made) -> Answer {
        let path = format!("/v1/signal/sessions/{}", session.id);
        Answer::from(self.request(Method::DELETE, &path).bearer_auth(&instance.key)).await
    }
}

/// A session at a relay that is no process of its own, made by a new instance.
pub async fn open_session_at(url: &str) -> Made {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let enrolled = Answer::from(http.post(format!("{url}/v1/enroll"))).await;
    let key = enrolled.body["instanceKey"].as_str().unwrap();
    let request = http.post(format!("{url}/v1/signal/sessions"));
    Made::read(&Answer::from(request.bearer_auth(key).json(&open())).await)
}

fn open() -> Value {
    json!({ "e2e": "optional", "ttlSeconds": SESSION_SECONDS_MAX })
}

impl Made {
    pub fn read(answer: &Answer) -> Self {
        assert!(matches!(answer.status.as_u16(), 200 | 201), "{answer:?}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            id: text(&answer.body["sessionId"]),
            url: text(&answer.body["url"]),
            a: text(&answer.body["tickets"]["a"]),
            b: text(&answer.body["tickets"]["b"]),
        }
    }

    pub fn ticket(&self, slot: &str) -> &str {
        if slot == "a" { &self.a } else { &self.b }
    }

    /// A peer that was welcomed, and the welcome.
    pub async fn join(&self, slot: &str, dial: Dial) -> (Peer, Value) {
        let mut peer = Peer::connect(&self.url).await;
        peer.hello(self.ticket(slot), dial).await;
        let welcome = peer.next().await;
        assert_eq!(welcome["t"], "welcome", "first of all: {welcome}");
        (peer, welcome)
    }

    /// How somebody is turned away.
    pub async fn refusal(&self, slot: &str, dial: Dial) -> u16 {
        let mut peer = Peer::connect(&self.url).await;
        peer.hello(self.ticket(slot), dial).await;
        match peer.next_or_end().await {
            Err(end) => end,
            Ok(frame) => panic!("{frame}"),
        }
    }

    /// A connection of the Rust client.
    pub fn open(&self, slot: &str, url: &str) -> Connection {
        let ticket = Redacted::new(self.ticket(slot));
        Connection::open(url, ticket, &Trust::system().unwrap()).unwrap()
    }

    /// What the Rust client joins with.
    pub fn invitation(&self, slot: &str, secret: &SessionSecret) -> Invitation {
        Invitation {
            url: self.url.clone(),
            session_id: SessionId::parse(&self.id).unwrap(),
            ticket: Redacted::new(self.ticket(slot)),
            secret: secret.clone(),
        }
    }
}
