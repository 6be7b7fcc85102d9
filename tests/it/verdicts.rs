//! Every row of the verdict tables, over the wire: what a provider answers, what the instance is told.
//!
//! The one thing that must never be wrong is `invalid_token`: callers delete a device on it. So each provider's table
//! (`apns`, `fcm`, `wns`) is held twice, after a `sent` that proves the relay's own setting right and without any, and
//! each answer is compared whole. What changes the course of later pushes (a wait for everybody, a refused token) has a
//! relay of its own.
//!
//! Beside the instance there is the operator: of each refusal of the relay itself, and of nothing else, the metric
//! counts one and the log tells its reason (`alarm`).

mod alarm;
mod apns;
mod fcm;
mod guard;
mod hints;
mod wns;

use serde_json::{Map, Value, json};
use sovereign_relay_protocol::{platform::Platform, time::UnixMillis};
use sovereign_relay_simulator::{Behaviour, Ending, Provider, Simulator};

use self::alarm::{Alarm, Refusal};
use crate::support::{
    relay::{Answer, Instance},
    world::World,
};

/// When a verdict without proof is worth asking for again, in seconds.
const UNCONFIRMED_RETRY: u64 = 600;
/// What an instance is told when its relay is refused.
const MISCONFIGURED: &str = "relay_misconfigured";

/// One answer of a provider and what it means.
struct Row {
    name: &'static str,
    answer: Behaviour,
    /// How often the provider is asked, the relay's own retry included.
    calls: u64,
    expected: Expected,
    /// The operator hears of it though the instance is told of a passing failure.
    alarms: bool,
}

enum Expected {
    Sent,
    /// Said with and without proof.
    Gone(&'static str, Since),
    /// Said with proof only.
    GoneIfProven(&'static str),
    Failed {
        reason: &'static str,
        retryable: bool,
        retry_after: Option<u64>,
    },
}

/// `invalidSince`.
#[derive(Clone, Copy)]
enum Since {
    /// The provider's own moment, in milliseconds.
    Told(u64),
    /// When the relay began to ask.
    Asked,
}

/// Whether the relay has proof that its setting is right.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Proof {
    /// A `sent` just before.
    Fresh,
    /// Not one `sent` since the relay started.
    None,
}

fn row(name: &'static str, answer: Behaviour, expected: Expected) -> Row {
    Row {
        name,
        answer,
        calls: 1,
        expected,
        alarms: false,
    }
}

impl Row {
    fn asked(self, calls: u64) -> Self {
        Self { calls, ..self }
    }

    fn alarming(self) -> Self {
        Self { alarms: true, ..self }
    }

    /// What the operator has to hear of.
    fn refusal(&self, platform: Platform, request_id: &str) -> Option<Refusal> {
        let Ending::Answer(answer) = &self.answer.ending else {
            return None;
        };
        let is_one = self.alarms
            || matches!(
                self.expected,
                Expected::Failed {
                    reason: MISCONFIGURED,
                    ..
                }
            );
        is_one.then(|| Refusal {
            provider: provider(platform),
            status: answer.status,
            request_id: request_id.to_owned(),
        })
    }
}

fn gone(reason: &'static str, since: Since) -> Expected {
    Expected::Gone(reason, since)
}

fn gone_if_proven(reason: &'static str) -> Expected {
    Expected::GoneIfProven(reason)
}

/// A retry may help, at no particular time.
fn passing(reason: &'static str) -> Expected {
    Expected::Failed {
        reason,
        retryable: true,
        retry_after: None,
    }
}

/// A retry may help after `seconds`.
fn passing_after(reason: &'static str, seconds: u64) -> Expected {
    Expected::Failed {
        reason,
        retryable: true,
        retry_after: Some(seconds),
    }
}

/// The same push fails again.
fn lasting(reason: &'static str) -> Expected {
    Expected::Failed {
        reason,
        retryable: false,
        retry_after: None,
    }
}

/// Holds all rows against one relay, each with a fresh device.
async fn check(platform: Platform, proof: Proof, rows: Vec<Row>) {
    let mut world = World::start().await;
    let instance = world.relay.enroll().await;
    let mut alarm = Alarm::of(&world.relay).await;
    for (number, row) in rows.into_iter().enumerate() {
        // A `sent` would be the proof that must be lacking.
        if proof == Proof::None && matches!(row.expected, Expected::Sent) {
            continue;
        }
        let request_id = format!("row-{number}");
        let (name, refusal) = (row.name, row.refusal(platform, &request_id));
        check_row(&world, &instance, (platform, proof), row, &request_id).await;
        alarm.tells(&mut world.relay, refusal, name).await;
    }
}

/// Holds each row against a relay of its own.
async fn check_apart(platform: Platform, rows: Vec<Row>) {
    for row in rows {
        check(platform, Proof::Fresh, vec![row]).await;
    }
}

async fn check_row(
    world: &World,
    instance: &Instance,
    (platform, proof): (Platform, Proof),
    row: Row,
    request_id: &str,
) {
    if proof == Proof::Fresh {
        let before = push(world, instance, platform).await;
        assert_eq!(before.word(), "sent", "before {}: {before:?}", row.name);
    }
    let asked = requests(world, platform);
    script(world, platform, row.answer, row.calls);
    let began = now_seconds(world);
    let request = world.relay.push_request(instance, &to_a_device(world, platform));
    let answer = Answer::from(request.header("x-request-id", request_id)).await;
    let ended = now_seconds(world);
    let context = format!("{platform:?}, {proof:?}, {}: {answer:?}", row.name);
    assert_eq!(answer.status, 200, "{context}");
    assert_eq!(requests(world, platform) - asked, row.calls, "calls of {context}");
    let mut body = answer.body.as_object().unwrap().clone();
    if matches!(row.expected, Expected::Sent) {
        body.remove("messageId");
    }
    check_since(&mut body, &row.expected, (began, ended), &context);
    check_hint(&mut body, &row.expected, proof, ended - began, &context);
    assert_eq!(Value::from(body), rest(&row.expected, proof), "{context}");
}

/// Takes `invalidSince` out of the answer, if it is the right one.
fn check_since(body: &mut Map<String, Value>, expected: &Expected, asked: (u64, u64), context: &str) {
    let since = match expected {
        Expected::Gone(_, since) => *since,
        Expected::GoneIfProven(_) if body["result"] == "invalid_token" => Since::Asked,
        Expected::Sent | Expected::GoneIfProven(_) | Expected::Failed { .. } => return,
    };
    let said = body
        .remove("invalidSince")
        .and_then(|said| UnixMillis::from_rfc3339(said.as_str()?));
    let said = said.unwrap_or_else(|| panic!("no invalidSince: {context}"));
    match since {
        Since::Told(millis) => assert_eq!(said.0, millis, "{context}"),
        Since::Asked => assert!((asked.0..=asked.1).contains(&said.seconds()), "{context}"),
    }
}

/// Takes `retryAfterSeconds` out of the answer, if it is the right one: the rest of a wait that began `took` seconds ago
/// or later.
fn check_hint(body: &mut Map<String, Value>, expected: &Expected, proof: Proof, took: u64, context: &str) {
    let hint = match (expected, proof) {
        (Expected::Failed { retry_after, .. }, _) => *retry_after,
        (Expected::GoneIfProven(_), Proof::None) => Some(UNCONFIRMED_RETRY),
        (Expected::GoneIfProven(_), Proof::Fresh) | (Expected::Gone(..) | Expected::Sent, _) => None,
    };
    let said = body.remove("retryAfterSeconds").and_then(|said| said.as_u64());
    match hint {
        None => assert_eq!(said, None, "{context}"),
        Some(hint) => {
            let bounds = hint.saturating_sub(took + 1).max(1)..=hint;
            assert!(said.is_some_and(|said| bounds.contains(&said)), "{context}");
        }
    }
}

/// The answer without its times.
fn rest(expected: &Expected, proof: Proof) -> Value {
    match (expected, proof) {
        (Expected::Sent, _) => json!({ "result": "sent" }),
        (Expected::Gone(reason, _), _) | (Expected::GoneIfProven(reason), Proof::Fresh) => {
            json!({ "result": "invalid_token", "reason": reason })
        }
        (Expected::GoneIfProven(_), Proof::None) => {
            json!({ "result": "failed", "reason": "unconfirmed_token", "retryable": true })
        }
        (
            Expected::Failed {
                reason, retryable, ..
            },
            _,
        ) => {
            json!({ "result": "failed", "reason": reason, "retryable": retryable })
        }
    }
}

/// A push to a fresh device.
async fn push(world: &World, instance: &Instance, platform: Platform) -> Answer {
    world.relay.push(instance, &to_a_device(world, platform)).await
}

fn to_a_device(world: &World, platform: Platform) -> Value {
    world.device(platform).push(&json!({ "title": "Hello" }))
}

/// As metrics and log name it, in the environment that all rows are pushed in.
fn provider(platform: Platform) -> &'static str {
    match platform {
        Platform::Ios | Platform::Macos => "apns-production",
        Platform::Android => "fcm",
        Platform::Windows => "wns",
    }
}

fn script(world: &World, platform: Platform, behaviour: Behaviour, times: u64) {
    match platform {
        Platform::Ios | Platform::Macos => world.simulators.apns.script().next(times, behaviour),
        Platform::Android => world.simulators.fcm.script().next(times, behaviour),
        Platform::Windows => world.simulators.wns.script().next(times, behaviour),
    }
}

fn requests(world: &World, platform: Platform) -> u64 {
    fn total<P: Provider>(simulator: &Simulator<P>) -> u64 {
        simulator.requests().total()
    }
    match platform {
        Platform::Ios | Platform::Macos => total(&world.simulators.apns),
        Platform::Android => total(&world.simulators.fcm),
        Platform::Windows => total(&world.simulators.wns),
    }
}

/// The wall clock, which the simulators share with the relay as long as nobody moves theirs.
fn now_seconds(world: &World) -> u64 {
    u64::try_from(world.simulators.clock().unix_seconds()).unwrap()
}
