//! Tokens of the relay itself: JWTs for APNs, access tokens for FCM and WNS.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join;
use serde_json::Value;
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{fcm::verdict as fcm, wns::verdict as wns};

use super::{assert_all_sent, push, pushes, send_all, world};
use crate::support::{grown::grown_instances, relay::Answer, world::World};

/// Long enough for some hundred pushes, short enough to wait for its end.
const SHORT_LIFE: Duration = Duration::from_secs(8);
/// One sender has the relay's token replaced once in so many seconds.
const REPLACED_ONCE_IN_SECONDS: u64 = 10;
const LONG_LIFE: Duration = Duration::from_secs(3600);
/// The relay signs one JWT for each stretch of so many seconds.
const JWT_SLOT_SECONDS: i64 = 45 * 60;

// 1,000 concurrent pushes while there is no token yet, and pushes without end across a token's expiry: one OAuth
// request each time, for FCM and for WNS, no push fails, and APNs is shown one JWT.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_pushes_at_once_and_across_an_expiry_cost_one_token_request_each() {
    let world = world("17s").await;
    let (fcm, wns) = (&world.simulators.fcm, &world.simulators.wns);
    let requests = || (fcm.oauth_requests(), wns.oauth_requests());
    let slot = || world.simulators.clock().unix_seconds() / JWT_SLOT_SECONDS;
    let first_slot = slot();
    for platform in [Platform::Ios, Platform::Android, Platform::Windows] {
        thousand(&world, platform).await;
    }
    assert_eq!(requests(), (1, 1));
    short_lived_tokens(&world).await;
    let before = requests();
    join(
        until_renewed(&world, Platform::Android, || fcm.oauth_requests() > before.0),
        until_renewed(&world, Platform::Windows, || wns.oauth_requests() > before.1),
    )
    .await;
    for platform in [Platform::Android, Platform::Windows] {
        thousand(&world, platform).await;
    }
    assert_eq!(requests(), (before.0 + 1, before.1 + 1));
    let shown = world.simulators.apns.jwts();
    let jwts: HashSet<&str> = shown.iter().map(|shown| &*shown.jwt).collect();
    assert!(jwts.len() as i64 <= 1 + slot() - first_slot);
}

// One instance pushes to one device after another whose address answers 401, and another one to good devices: that
// one's are all sent, also when the relay's access token really ends meanwhile, and few tokens are asked for.
#[tokio::test(flavor = "multi_thread")]
async fn devices_of_one_instance_that_answer_401_cost_no_other_push_and_few_token_requests() {
    for platform in [Platform::Windows, Platform::Android] {
        let world = world("17s").await;
        let began = world.simulators.clock().unix_seconds();
        let (odd, good) = (&grown_instances(1), &grown_instances(1));
        assert_all_sent(&send_all(&world, good, &pushes(&world, platform, 1), 1).await);
        for round in 0..20 {
            let body = push(&world, platform);
            always_refused(&world, platform, &body["deviceToken"]);
            let refused = send_all(&world, odd, std::slice::from_ref(&body), 1).await;
            assert_passing(&refused[0], &["provider_unavailable", "relay_misconfigured"]);
            assert_held(&world, send_all(&world, odd, &[body], 1)).await;
            if round == 10 {
                world.simulators.wns.expire_tokens();
                world.simulators.fcm.expire_tokens();
            }
            assert_all_sent(&send_all(&world, good, &pushes(&world, platform, 10), 5).await);
        }
        let seconds = world.simulators.clock().unix_seconds() - began;
        let (first, ended) = (1, 1);
        let for_the_odd_one = 1 + seconds.unsigned_abs() / REPLACED_ONCE_IN_SECONDS;
        let requests = token_requests(&world, platform);
        assert!(
            requests <= first + ended + for_the_odd_one,
            "{requests} in {seconds} s"
        );
    }
}

/// The relay gets tokens that soon expire; those after them don't.
async fn short_lived_tokens(world: &World) {
    let (fcm, wns) = (&world.simulators.fcm, &world.simulators.wns);
    fcm.set_token_lifetime(SHORT_LIFE);
    wns.set_token_lifetime(SHORT_LIFE);
    fcm.expire_tokens();
    wns.expire_tokens();
    for platform in [Platform::Android, Platform::Windows] {
        assert_all_sent(&send_all(world, &grown_instances(1), &pushes(world, platform, 1), 1).await);
    }
    fcm.set_token_lifetime(LONG_LIFE);
    wns.set_token_lifetime(LONG_LIFE);
}

async fn thousand(world: &World, platform: Platform) {
    assert_all_sent(&send_all(world, &grown_instances(5), &pushes(world, platform, 1000), 1000).await);
}

/// Pushes, a hundred at a time, until there was another token request.
async fn until_renewed(world: &World, platform: Platform, is_renewed: impl Fn() -> bool) {
    while !is_renewed() {
        assert_all_sent(&send_all(world, &grown_instances(1), &pushes(world, platform, 100), 100).await);
    }
}

fn always_refused(world: &World, platform: Platform, device: &Value) {
    let device = device.as_str().unwrap();
    let (fcm_script, wns_script) = (world.simulators.fcm.script(), world.simulators.wns.script());
    match platform {
        Platform::Android => fcm_script.device(device).always(fcm::unauthenticated()),
        _ => wns_script.device(device).always(wns::unauthorized()),
    }
}

/// Failed for a while, with a time to come again.
fn assert_passing(answer: &Answer, reasons: &[&str]) {
    assert_eq!(
        (answer.word(), &answer.body["retryable"]),
        ("failed", &true.into()),
        "{answer:?}"
    );
    assert!(reasons.contains(&answer.reason()), "{answer:?}");
    let rest = answer.body["retryAfterSeconds"].as_u64();
    assert!(rest.is_some_and(|rest| (1..=10).contains(&rest)), "{answer:?}");
}

/// A repeat, which the provider doesn't see.
async fn assert_held(world: &World, repeat: impl Future<Output = Vec<Answer>>) {
    let (fcm, wns) = (&world.simulators.fcm, &world.simulators.wns);
    let calls = || (fcm.requests().total(), wns.requests().total());
    let before = calls();
    assert_passing(&repeat.await[0], &["device_throttled"]);
    assert_eq!(calls(), before);
}

fn token_requests(world: &World, platform: Platform) -> u64 {
    match platform {
        Platform::Android => world.simulators.fcm.oauth_requests(),
        _ => world.simulators.wns.oauth_requests(),
    }
}
