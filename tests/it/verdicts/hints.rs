//! A provider that asks to wait: how long, for whom, and that a burst of retries costs it no call.

use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{
    Behaviour, RetryAfter, apns::verdict as apns, fcm::verdict as fcm, wns::verdict as wns,
};

use super::{now_seconds, push, requests, script};
use crate::support::{until, world::World};

const HINT: u64 = 37;
const BURST: usize = 50;

#[tokio::test]
async fn a_wait_for_everybody_in_either_form_costs_no_call_until_it_is_over_and_holds_no_other_provider() {
    for hint in [in_seconds, as_date] {
        let world = World::start().await;
        let instance = world.relay.enroll().await;
        let asked = Instant::now();
        script(&world, Platform::Android, fcm::project_quota(hint(&world)), 1);
        let first = push(&world, &instance, Platform::Android).await;
        let mut left = first.body["retryAfterSeconds"].as_u64().unwrap();
        assert!((least(asked)..=HINT + 1).contains(&left), "{first:?}");
        for _ in 0..BURST {
            let held = push(&world, &instance, Platform::Android).await;
            assert_eq!((held.word(), held.reason()), ("failed", "provider_throttled"));
            assert_eq!(held.body["retryable"], true);
            let now_left = held.body["retryAfterSeconds"].as_u64().unwrap();
            assert!(now_left <= left, "it only gets less: {held:?}");
            left = now_left;
        }
        assert_eq!(requests(&world, Platform::Android), 1);
        for platform in [Platform::Ios, Platform::Windows] {
            assert_eq!(
                push(&world, &instance, platform).await.word(),
                "sent",
                "{platform:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_wait_for_one_device_holds_that_device_for_all_instances_and_nobody_else() {
    let world = World::start().await;
    let (first, second) = (world.relay.enroll().await, world.relay.enroll().await);
    let hint = || RetryAfter::Seconds(HINT);
    let cases: [(Platform, Behaviour); 3] = [
        (Platform::Ios, apns::too_many_requests().retry_after(hint())),
        (Platform::Android, fcm::device_quota(hint())),
        (Platform::Windows, wns::throttled(hint())),
    ];
    for (platform, behaviour) in cases {
        let body = world.device(platform).push(&json!({ "title": "Hello" }));
        script(&world, platform, behaviour, 1);
        let asked = Instant::now();
        for instance in [&first, &first, &second] {
            let answer = world.relay.push(instance, &body).await;
            assert_eq!((answer.word(), answer.reason()), ("failed", "device_throttled"));
            let seconds = answer.body["retryAfterSeconds"].as_u64().unwrap();
            assert!((least(asked)..=HINT).contains(&seconds), "{answer:?}");
        }
        assert_eq!(requests(&world, platform), 1, "{platform:?}");
        assert_eq!(
            push(&world, &first, platform).await.word(),
            "sent",
            "{platform:?}"
        );
    }
}

#[tokio::test]
async fn a_wait_is_over_when_it_said() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    let quota = fcm::project_quota(RetryAfter::Seconds(1));
    script(&world, Platform::Android, quota, 1);
    assert_eq!(
        push(&world, &instance, Platform::Android).await.reason(),
        "provider_throttled"
    );
    until("the wait is over", async || {
        let answer = push(&world, &instance, Platform::Android).await;
        let is_sent = answer.word() == "sent";
        assert!(is_sent || answer.body["retryAfterSeconds"] == 1, "{answer:?}");
        is_sent
    })
    .await;
    assert_eq!(requests(&world, Platform::Android), 2);
}

/// What is left of the wait at least.
fn least(asked: Instant) -> u64 {
    HINT.saturating_sub(2 + asked.elapsed().as_secs())
}

/// One form of the header (RFC 9110, 10.2.3).
fn in_seconds(_: &World) -> RetryAfter {
    RetryAfter::Seconds(HINT)
}

/// The other. A date has whole seconds, so it may lie up to one later.
fn as_date(world: &World) -> RetryAfter {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(now_seconds(world) + HINT + 1);
    RetryAfter::Text(httpdate::fmt_http_date(at))
}
