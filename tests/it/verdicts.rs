//! Every row of the verdict tables, over the wire: what a provider answers, what the instance is told.
//!
//! The one thing that must never be wrong is `invalid_token`: it is listed here row by row, with and without the
//! guard's proof, and every other row must be something else.

use std::time::Duration;

use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{
    Behaviour, RetryAfter, apns::verdict as apns, fcm::verdict as fcm, wns::verdict as wns,
};

use crate::support::{
    relay::{Answer, Instance},
    world::World,
};

/// What is expected: `result` and `reason`.
type Expected = (&'static str, &'static str);

async fn push(world: &World, instance: &Instance, platform: Platform) -> Answer {
    let device = world.device(platform);
    world
        .relay
        .push(instance, &device.push(&json!({ "title": "Hello" })))
        .await
}

fn script(world: &World, platform: Platform, behaviour: Behaviour, times: u64) {
    match platform {
        Platform::Ios | Platform::Macos => world.simulators.apns.script().next(times, behaviour),
        Platform::Android => world.simulators.fcm.script().next(times, behaviour),
        Platform::Windows => world.simulators.wns.script().next(times, behaviour),
    }
}

/// Each row after a `sent`, so that the guard has its proof; each with a fresh device. `times`: how often the provider
/// is asked, the relay's own retry included.
async fn check(platform: Platform, rows: Vec<(&str, u64, Behaviour, Expected)>) {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    for (name, times, behaviour, (result, reason)) in rows {
        assert_eq!(
            push(&world, &instance, platform).await.word(),
            "sent",
            "before {name}"
        );
        script(&world, platform, behaviour, times);
        let answer = push(&world, &instance, platform).await;
        assert_eq!(
            (answer.status.as_u16(), answer.word(), answer.reason()),
            (200, result, reason),
            "{name}: {answer:?}"
        );
        assert_eq!(
            answer.body.get("invalidSince").is_some(),
            result == "invalid_token",
            "{name}: {answer:?}"
        );
        assert_eq!(
            answer.body.get("retryable").is_some(),
            result == "failed",
            "{name}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn every_answer_of_apns_has_its_verdict() {
    let refused = |status, reason| apns::refused(status, reason);
    check(
        Platform::Ios,
        vec![
            (
                "unregistered",
                1,
                apns::unregistered(1_700_000_000_000),
                ("invalid_token", "unregistered"),
            ),
            (
                "expired",
                1,
                apns::expired_token(1_700_000_000_000),
                ("invalid_token", "expired_token"),
            ),
            (
                "bad token",
                1,
                apns::bad_device_token(),
                ("invalid_token", "bad_token"),
            ),
            (
                "not for topic",
                1,
                apns::device_token_not_for_topic(),
                ("invalid_token", "wrong_app"),
            ),
            (
                "410, unknown",
                1,
                refused(410, "SomethingNew"),
                ("failed", "unconfirmed_token"),
            ),
            (
                "410, no body",
                1,
                Behaviour::status(410),
                ("failed", "unconfirmed_token"),
            ),
            (
                "400, unknown",
                1,
                refused(400, "SomethingNew"),
                ("failed", "payload_rejected"),
            ),
            (
                "400, html",
                1,
                Behaviour::html(400),
                ("failed", "payload_rejected"),
            ),
            (
                "collapse id",
                1,
                refused(400, "BadCollapseId"),
                ("failed", "payload_rejected"),
            ),
            (
                "topic",
                1,
                refused(400, "BadTopic"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "no topic",
                1,
                refused(400, "MissingTopic"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "topic disallowed",
                1,
                refused(400, "TopicDisallowed"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "priority",
                1,
                refused(400, "BadPriority"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "forbidden",
                1,
                refused(403, "Forbidden"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "key",
                1,
                refused(403, "InvalidProviderToken"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "clock",
                1,
                apns::expired_provider_token(),
                ("failed", "relay_misconfigured"),
            ),
            (
                "environment",
                1,
                refused(403, "BadEnvironmentKeyIdInToken"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "path",
                1,
                refused(404, "BadPath"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "404, unregistered",
                1,
                refused(404, "Unregistered"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "400, unregistered",
                1,
                refused(400, "Unregistered"),
                ("failed", "payload_rejected"),
            ),
            (
                "403, bad token",
                1,
                refused(403, "BadDeviceToken"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "method",
                1,
                refused(405, "MethodNotAllowed"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "too large",
                1,
                refused(413, "PayloadTooLarge"),
                ("failed", "payload_rejected"),
            ),
            (
                "device rate",
                1,
                apns::too_many_requests(),
                ("failed", "device_throttled"),
            ),
            (
                "jwt rate",
                1,
                apns::too_many_provider_token_updates(),
                ("failed", "relay_misconfigured"),
            ),
            (
                "500 twice",
                2,
                apns::internal_server_error(),
                ("failed", "provider_unavailable"),
            ),
            (
                "503 twice",
                2,
                apns::service_unavailable(),
                ("failed", "provider_unavailable"),
            ),
            (
                "502 page",
                1,
                Behaviour::html(502),
                ("failed", "provider_unavailable"),
            ),
            (
                "redirect",
                1,
                Behaviour::status(302),
                ("failed", "provider_unavailable"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn every_answer_of_fcm_has_its_verdict() {
    let hint = RetryAfter::Seconds(1);
    check(
        Platform::Android,
        vec![
            (
                "unregistered",
                1,
                fcm::unregistered(),
                ("invalid_token", "unregistered"),
            ),
            ("bad token", 1, fcm::bad_token(), ("invalid_token", "bad_token")),
            (
                "bad token, named",
                1,
                fcm::bad_token_with_violation(),
                ("invalid_token", "bad_token"),
            ),
            (
                "other project",
                1,
                fcm::sender_id_mismatch(),
                ("invalid_token", "wrong_app"),
            ),
            (
                "404 without detail",
                1,
                fcm::not_found_without_fcm_error(),
                ("failed", "relay_misconfigured"),
            ),
            ("data", 1, fcm::bad_data(), ("failed", "payload_rejected")),
            ("size", 1, fcm::too_large(), ("failed", "payload_rejected")),
            (
                "third party",
                1,
                fcm::third_party_auth_error(),
                ("failed", "relay_misconfigured"),
            ),
            (
                "403",
                1,
                fcm::permission_denied(),
                ("failed", "relay_misconfigured"),
            ),
            (
                "device rate",
                1,
                fcm::device_quota(hint),
                ("failed", "device_throttled"),
            ),
            ("500", 1, fcm::internal(), ("failed", "provider_unavailable")),
            (
                "503",
                1,
                fcm::unavailable(RetryAfter::Absent),
                ("failed", "provider_unavailable"),
            ),
            (
                "502 page",
                1,
                fcm::html_bad_gateway(),
                ("failed", "provider_unavailable"),
            ),
            (
                "429",
                1,
                fcm::project_quota(RetryAfter::Absent),
                ("failed", "provider_throttled"),
            ),
        ],
    )
    .await;
    // What follows a refused token that was fresh is refused too, for a while.
    let twice = (
        "401 twice",
        2,
        fcm::unauthenticated(),
        ("failed", "relay_misconfigured"),
    );
    check(Platform::Android, vec![twice]).await;
}

#[tokio::test]
async fn every_answer_of_wns_has_its_verdict() {
    check(
        Platform::Windows,
        vec![
            (
                "not found",
                1,
                wns::not_found(),
                ("invalid_token", "unregistered"),
            ),
            (
                "expired",
                1,
                wns::channel_expired(),
                ("invalid_token", "expired_token"),
            ),
            (
                "revoked",
                1,
                wns::channel_revoked(),
                ("invalid_token", "unregistered"),
            ),
            ("unclear 410", 1, wns::gone(), ("invalid_token", "unregistered")),
            ("other app", 1, wns::forbidden(), ("invalid_token", "wrong_app")),
            (
                "domain blocked",
                1,
                wns::domain_blocked(),
                ("failed", "relay_misconfigured"),
            ),
            (
                "404 of a proxy",
                1,
                wns::bare(404),
                ("failed", "provider_unavailable"),
            ),
            (
                "410 of a proxy",
                1,
                wns::bare(410),
                ("failed", "provider_unavailable"),
            ),
            (
                "403 of a proxy",
                1,
                wns::bare(403),
                ("failed", "provider_unavailable"),
            ),
            (
                "redirect",
                1,
                wns::redirect(307, "https://localhost/"),
                ("failed", "provider_unavailable"),
            ),
            (
                "throttled",
                1,
                wns::throttled(RetryAfter::Absent),
                ("failed", "device_throttled"),
            ),
            (
                "200, throttled",
                1,
                wns::channel_throttled(),
                ("failed", "device_throttled"),
            ),
            ("200, dropped", 1, wns::dropped(), ("failed", "dropped")),
            ("400", 1, wns::refused(400, "bad"), ("failed", "payload_rejected")),
            (
                "413",
                1,
                wns::refused(413, "too large"),
                ("failed", "payload_rejected"),
            ),
            (
                "405",
                1,
                wns::refused(405, "method"),
                ("failed", "relay_misconfigured"),
            ),
            (
                "401 twice",
                2,
                wns::unauthorized(),
                ("failed", "relay_misconfigured"),
            ),
        ],
    )
    .await;
    let rows = vec![(
        "503",
        1,
        wns::unavailable(RetryAfter::Absent),
        ("failed", "provider_unavailable"),
    )];
    check(Platform::Windows, rows).await;
}

#[tokio::test]
async fn without_a_sent_in_the_last_day_a_conditional_verdict_is_unconfirmed_and_a_certain_one_holds() {
    let rows = [
        (
            Platform::Ios,
            apns::bad_device_token(),
            "failed",
            "unconfirmed_token",
        ),
        (
            Platform::Ios,
            apns::device_token_not_for_topic(),
            "failed",
            "unconfirmed_token",
        ),
        (
            Platform::Ios,
            apns::unregistered(1_700_000_000_000),
            "invalid_token",
            "unregistered",
        ),
        (Platform::Android, fcm::bad_token(), "failed", "unconfirmed_token"),
        (
            Platform::Android,
            fcm::sender_id_mismatch(),
            "failed",
            "unconfirmed_token",
        ),
        (
            Platform::Android,
            fcm::unregistered(),
            "invalid_token",
            "unregistered",
        ),
        (Platform::Windows, wns::forbidden(), "failed", "unconfirmed_token"),
        (Platform::Windows, wns::gone(), "failed", "unconfirmed_token"),
        (
            Platform::Windows,
            wns::channel_expired(),
            "invalid_token",
            "expired_token",
        ),
    ];
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    for (platform, behaviour, result, reason) in rows {
        script(&world, platform, behaviour, 1);
        let answer = push(&world, &instance, platform).await;
        assert_eq!(
            (answer.word(), answer.reason()),
            (result, reason),
            "{platform:?} {answer:?}"
        );
    }
}

#[tokio::test]
async fn the_fourth_conditional_token_in_a_row_is_unconfirmed_until_the_next_sent() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    assert_eq!(push(&world, &instance, Platform::Ios).await.word(), "sent");
    script(&world, Platform::Ios, apns::bad_device_token(), 4);
    for expected in ["invalid_token", "invalid_token", "invalid_token", "failed"] {
        assert_eq!(push(&world, &instance, Platform::Ios).await.word(), expected);
    }
    assert_eq!(push(&world, &instance, Platform::Macos).await.word(), "sent");
    script(&world, Platform::Ios, apns::bad_device_token(), 1);
    assert_eq!(
        push(&world, &instance, Platform::Ios).await.reason(),
        "unconfirmed_token",
        "another topic proves nothing"
    );
    assert_eq!(push(&world, &instance, Platform::Ios).await.word(), "sent");
    script(&world, Platform::Ios, apns::bad_device_token(), 1);
    assert_eq!(
        push(&world, &instance, Platform::Ios).await.word(),
        "invalid_token"
    );
}

#[tokio::test]
async fn apns_own_timestamp_is_handed_on_to_the_millisecond() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    script(&world, Platform::Ios, apns::unregistered(1_700_000_000_123), 1);
    let answer = push(&world, &instance, Platform::Ios).await;
    assert_eq!(answer.body["invalidSince"], "2023-11-14T22:13:20.123Z");
}

#[tokio::test]
async fn a_malformed_token_reaches_no_provider() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    let body = |platform: &str, token: &str| -> Value {
        json!({ "platform": platform, "deviceToken": token, "encryptedPayload": "sealed" })
    };
    for (platform, token) in [
        ("ios", "not hexadecimal"),
        ("macos", "abc"),
        ("android", "two words"),
    ] {
        let answer = world.relay.push(&instance, &body(platform, token)).await;
        assert_eq!(
            (answer.word(), answer.reason()),
            ("invalid_token", "malformed_token"),
            "{platform}"
        );
    }
    let elsewhere = body("windows", "https://evil.example/?token=a");
    let answer = world.relay.push(&instance, &elsewhere).await;
    assert_eq!(
        (answer.word(), answer.reason()),
        ("failed", "unconfirmed_token"),
        "the host rule may be what is wrong"
    );
    assert_eq!(push(&world, &instance, Platform::Windows).await.word(), "sent");
    let answer = world
        .relay
        .push(&instance, &body("windows", "https://evil.example/?token=b"))
        .await;
    assert_eq!(
        (answer.word(), answer.reason()),
        ("invalid_token", "malformed_token")
    );
    let simulators = &world.simulators;
    assert_eq!(
        (
            simulators.apns.requests().total(),
            simulators.fcm.requests().total()
        ),
        (0, 0)
    );
    assert_eq!(simulators.wns.requests().total(), 1);
}

#[tokio::test]
async fn a_hint_of_the_provider_is_handed_on_and_a_burst_of_retries_costs_no_call() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    let dated = std::time::SystemTime::UNIX_EPOCH
        + Duration::from_secs(world.simulators.clock().unix_seconds() as u64 + 38);
    for hint in [
        RetryAfter::Seconds(37),
        RetryAfter::Text(httpdate::fmt_http_date(dated)),
    ] {
        let world = World::start().await;
        let other = world.relay.enroll().await;
        script(&world, Platform::Android, fcm::project_quota(hint), 1);
        let first = push(&world, &other, Platform::Android).await;
        assert_eq!(first.reason(), "provider_throttled");
        let seconds = first.body["retryAfterSeconds"].as_u64().unwrap();
        assert!((30..=38).contains(&seconds), "{first:?}");
        for _ in 0..50 {
            let held = push(&world, &other, Platform::Android).await;
            assert_eq!((held.word(), held.reason()), ("failed", "provider_throttled"));
            assert!(held.body["retryAfterSeconds"].as_u64().unwrap() <= seconds);
        }
        assert_eq!(world.simulators.fcm.requests().total(), 1);
        assert_eq!(
            push(&world, &other, Platform::Ios).await.word(),
            "sent",
            "other providers go on"
        );
    }
    let device = world.device(Platform::Android);
    let body = device.push(&json!({ "title": "Hello" }));
    script(
        &world,
        Platform::Android,
        fcm::device_quota(RetryAfter::Seconds(37)),
        1,
    );
    for _ in 0..5 {
        assert_eq!(
            world.relay.push(&instance, &body).await.reason(),
            "device_throttled"
        );
    }
    assert_eq!(world.simulators.fcm.requests().total(), 1);
    assert_eq!(
        push(&world, &instance, Platform::Android).await.word(),
        "sent",
        "other devices go on"
    );
}
