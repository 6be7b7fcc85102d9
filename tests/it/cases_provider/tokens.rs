//! Tokens of the relay itself: JWTs for APNs, access tokens for FCM and WNS.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join;
use sovereign_relay_protocol::platform::Platform;

use super::{assert_all_sent, pushes, send_all, world};
use crate::support::{grown::grown_instances, world::World};

/// Long enough for some hundred pushes, short enough to wait for its end.
const SHORT_LIFE: Duration = Duration::from_secs(8);
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
