//! kill -9 at any moment loses nothing that was acknowledged, and locks nobody out by what was not.

use std::sync::Arc;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::{
    DEADLINE,
    relay::{Answer, Instance, Relay, RelayOptions},
};

const ROUNDS: usize = 4;
const INSTANCES: usize = 45;
/// Of a round's calls, this many are acknowledged before the kill; the rest are under way.
const ACKNOWLEDGED_FIRST: usize = 12;
/// A relay without credentials says this to a valid key, and only to a valid one.
const VALID: &str = "platform_not_configured";

/// What is done to an instance while the relay is about to be killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Revoke,
    Withdraw,
    Rotate,
    Suspend,
}

impl Change {
    const ALL: [Self; 4] = [Self::Revoke, Self::Withdraw, Self::Rotate, Self::Suspend];

    fn request(self, relay: &Relay, instance: &Instance, address: &str) -> RequestBuilder {
        let operate = |action: &str| {
            let path = format!("/admin/v1/instances/{}/{action}", instance.id);
            relay.admin_request(Method::POST, &path)
        };
        let own = |method: Method, path: &str| {
            let request = relay.request(method, path).header("x-forwarded-for", address);
            request.bearer_auth(&instance.key)
        };
        match self {
            Self::Revoke => operate("revoke"),
            Self::Withdraw => own(Method::DELETE, "/v1/enrollment"),
            Self::Rotate => own(Method::POST, "/v1/keys/rotate").json(&json!({ "graceSeconds": 0 })),
            Self::Suspend => operate("suspend").json(&json!({ "reason": "tested" })),
        }
    }

    /// What the key says once the change holds.
    fn word(self) -> &'static str {
        match self {
            Self::Revoke | Self::Withdraw | Self::Rotate => "revoked",
            Self::Suspend => "suspended",
        }
    }
}

/// A change that was asked for, and the answer if one came.
#[derive(Clone)]
struct Asked {
    change: Change,
    instance: Instance,
    answer: Option<Value>,
}

impl Asked {
    async fn of(relay: Arc<Relay>, instance: Instance, change: Change, address: String) -> Self {
        let request = change.request(&relay, &instance, &address);
        let answer = answer(request.timeout(DEADLINE)).await;
        Self {
            change,
            instance,
            answer,
        }
    }

    /// Holds what was acknowledged; of the rest, one or the other, and nobody is left without a key.
    async fn check(&self, relay: &Relay, address: &str) {
        let word = refusal(relay, &self.instance).await;
        match &self.answer {
            Some(answer) => {
                assert_eq!(word, self.change.word(), "{:?} was acknowledged", self.change);
                if self.change == Change::Rotate {
                    assert_eq!(refusal(relay, &successor(answer)).await, VALID);
                }
            }
            None => {
                assert!([VALID, self.change.word()].contains(&word.as_str()), "{word}");
                if self.change == Change::Rotate {
                    let again = Change::Rotate.request(relay, &self.instance, address);
                    let again = Answer::from(again).await;
                    assert_eq!(again.status, 200, "the old key may ask again: {again:?}");
                }
            }
        }
    }
}

/// The body of a successful answer; `None` where there was none, or not all of it.
async fn answer(request: RequestBuilder) -> Option<Value> {
    let response = request.send().await.ok()?;
    assert!(response.status().is_success(), "{response:?}");
    if response.status() == StatusCode::NO_CONTENT {
        return Some(Value::Null);
    }
    response.json().await.ok()
}

fn successor(rotated: &Value) -> Instance {
    let text = |name: &str| rotated[name].as_str().unwrap().to_owned();
    Instance {
        id: text("instanceId"),
        key: text("instanceKey"),
    }
}

async fn refusal(relay: &Relay, instance: &Instance) -> String {
    let push = json!({ "deviceToken": "ab", "platform": "ios", "encryptedPayload": "x" });
    relay.push(instance, &push).await.word().to_owned()
}

/// A different one each time, since one address may enroll ten a minute.
fn address(number: usize) -> String {
    format!("198.51.{}.{}", number / 200, number % 200 + 1)
}

/// Asks for one change of each new instance at once and kills the relay in the middle.
async fn round(relay: Relay, first: usize) -> Vec<Asked> {
    let relay = Arc::new(relay);
    let mut instances = Vec::new();
    for number in first..first + INSTANCES {
        instances.push(relay.enroll_from(&address(number)).await);
    }
    let mut calls = JoinSet::new();
    for (number, instance) in instances.into_iter().enumerate() {
        let change = Change::ALL[number % Change::ALL.len()];
        calls.spawn(Asked::of(
            relay.clone(),
            instance,
            change,
            address(first + number),
        ));
    }
    let mut asked = Vec::new();
    while !are_enough(&asked) {
        asked.push(calls.join_next().await.unwrap().unwrap());
    }
    relay.kill_now();
    asked.extend(calls.join_all().await);
    gone(relay).await;
    asked
}

/// Waits until the process that was killed has let go of its data directory, as whoever restarts it does.
async fn gone(relay: Arc<Relay>) {
    Arc::into_inner(relay)
        .expect("no call is under way")
        .ended()
        .await;
}

/// Whether so many were acknowledged that it may be killed, and one of each change.
fn are_enough(asked: &[Asked]) -> bool {
    let acknowledged = || asked.iter().filter(|asked| asked.answer.is_some());
    let has_each = Change::ALL
        .iter()
        .all(|change| acknowledged().any(|asked| asked.change == *change));
    has_each && acknowledged().count() >= ACKNOWLEDGED_FIRST
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_was_acknowledged_holds_after_kill_9_and_whatever_was_not_is_either() {
    let directory = TempDir::new().unwrap();
    let options = || RelayOptions::new().data_dir(directory.path());
    let mut asked: Vec<Asked> = Vec::new();
    for number in 0..ROUNDS {
        let relay = Relay::start(options()).await;
        // Rounds before this one have survived every kill since.
        for (index, before) in asked.iter().enumerate() {
            if before.answer.is_some() {
                before.check(&relay, &address(index)).await;
            }
        }
        asked.extend(round(relay, number * INSTANCES).await);
    }
    let relay = Relay::start(options()).await;
    for (index, asked) in asked.iter().enumerate() {
        asked.check(&relay, &address(index)).await;
    }
    let fresh = relay.enroll_from(&address(ROUNDS * INSTANCES)).await;
    assert_eq!(refusal(&relay, &fresh).await, VALID, "others go on");
    assert!(!relay.log().contains("\"ERROR\""), "{}", relay.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_that_was_used_before_kill_9_is_used_after_it() {
    let directory = TempDir::new().unwrap();
    let options = || {
        let options = RelayOptions::new().data_dir(directory.path());
        options.set("RELAY_ENROLLMENT", "invite")
    };
    let relay = Arc::new(Relay::start(options()).await);
    let mut invites = Vec::new();
    for _ in 0..20 {
        let body = Some(json!({ "ttlSeconds": 3600 }));
        let created = relay.admin(Method::POST, "/admin/v1/invites", body).await;
        invites.push(created.body["invite"].as_str().unwrap().to_owned());
    }
    let unused = invites.pop().unwrap();
    let enroll = |relay: &Relay, invite: &str, number: usize| {
        let request = relay.request(Method::POST, "/v1/enroll").bearer_auth(invite);
        request.header("x-forwarded-for", address(number))
    };
    let mut calls = JoinSet::new();
    for (number, invite) in invites.iter().cloned().enumerate() {
        let request = enroll(&relay, &invite, number);
        calls.spawn(async move { (answer(request).await, invite) });
    }
    let mut used = vec![calls.join_next().await.unwrap().unwrap()];
    relay.kill_now();
    used.extend(calls.join_all().await);
    gone(relay).await;
    let relay = Relay::start(options()).await;
    for (number, (enrolled, invite)) in used.iter().enumerate() {
        let again = Answer::from(enroll(&relay, invite, number)).await;
        match enrolled {
            Some(enrolled) => {
                assert_eq!((again.status.as_u16(), again.word()), (401, "unauthorized"));
                assert_eq!(refusal(&relay, &successor(enrolled)).await, VALID);
            }
            None => assert!([200, 401].contains(&again.status.as_u16()), "{again:?}"),
        }
    }
    let late = Answer::from(enroll(&relay, &unused, used.len())).await;
    assert_eq!(late.status, 200, "an invite nobody used is still good: {late:?}");
}
