//! Provider tokens and credentials on the wire.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use sovereign_relay_actors::ports::{Clock as _, PushProvider as _};
use sovereign_relay_protocol::{platform::Platform, push::Reason};
use sovereign_relay_simulator::{Behaviour, apns::verdict};

use super::kit::{Kit, SOON, failure, is_sent, key, until};
use crate::provider::apns::{ApnsConfig, token::SLOT_SECONDS};

impl Kit {
    /// Moves both ends to `before` the end of a slot, a few slots from now.
    fn approach_slot_end(&self, before: Duration) {
        let now = Duration::from_millis(self.clock.now().unix.0);
        let slot = Duration::from_secs(SLOT_SECONDS);
        let rest = slot - Duration::from_secs(now.as_secs() % SLOT_SECONDS);
        self.advance(rest + slot - before);
    }

    fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
        self.simulators.clock().advance(duration);
    }

    fn distinct_tokens(&self) -> HashSet<String> {
        self.apns().jwts().into_iter().map(|jwt| jwt.jwt).collect()
    }
}

#[tokio::test]
async fn a_thousand_pushes_across_a_change_of_slot_show_two_tokens_and_one_change_per_connection() {
    let kit = Kit::start().await;
    kit.approach_slot_end(Duration::from_secs(60));
    assert!(is_sent(&kit.push().await));
    let first = kit.push_many(500);
    let second = async {
        tokio::task::yield_now().await;
        kit.advance(Duration::from_secs(120));
        kit.push_many(500).await
    };
    let (before, after) = tokio::join!(first, second);
    assert!(before.iter().chain(&after).all(is_sent));
    assert_eq!(kit.distinct_tokens().len(), 2);
    assert!(kit.apns().jwt_changes() <= kit.apns().connections_accepted());
    kit.stop().await;
}

#[tokio::test]
async fn four_replicas_show_the_provider_one_token_per_slot_through_two_hours() {
    let kit = Kit::start().await;
    let replicas = [kit.replica(), kit.replica(), kit.replica(), kit.replica()];
    kit.approach_slot_end(Duration::from_secs(30));
    for _ in 0..24 {
        let pushes = replicas.iter().map(|replica| replica.deliver(kit.delivery(SOON)));
        assert!(
            join_all(pushes).await.iter().all(is_sent),
            "the simulator refuses a change within 20 minutes"
        );
        kit.advance(Duration::from_secs(300));
    }
    assert_eq!(kit.distinct_tokens().len(), 4);
    join_all(replicas.iter().map(|replica| replica.close())).await;
    kit.stop().await;
}

#[tokio::test]
async fn too_many_token_updates_mint_nothing() {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    kit.apns()
        .script()
        .next(5, verdict::too_many_provider_token_updates());
    for _ in 0..5 {
        let failure = failure(kit.push().await);
        assert_eq!(
            (failure.reason, failure.retryable),
            (Reason::RelayMisconfigured, false)
        );
    }
    assert!(is_sent(&kit.push().await));
    assert_eq!(kit.distinct_tokens().len(), 1);
    assert_eq!(kit.apns().connections_accepted(), 1);
    kit.stop().await;
}

#[tokio::test]
async fn a_clock_that_is_hours_off_is_the_relays_misconfiguration() {
    let kit = Kit::start().await;
    kit.simulators.clock().advance(Duration::from_secs(3 * 3600));
    assert_eq!(failure(kit.push().await).reason, Reason::RelayMisconfigured);
    kit.stop().await;
}

#[tokio::test]
async fn a_reload_changes_the_key_without_a_failed_push_and_retires_the_old_connections() {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    kit.apns()
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(20)));
    let under_way = kit.push_many(300);
    let reloaded = async {
        until(|| kit.apns().requests_under_way() > 0).await;
        let new = key(kit.apns().new_key().unwrap(), &kit.apns().options().team_id);
        kit.provider
            .reload(ApnsConfig {
                key: Some(new),
                ..kit.config.clone()
            })
            .unwrap();
        kit.push_many(100).await
    };
    let (before, after) = tokio::join!(under_way, reloaded);
    assert!(before.iter().chain(&after).all(is_sent));
    assert_eq!(kit.provider.scope(Platform::Ios).unwrap().generation, 1);
    assert_eq!(kit.apns().jwt_changes(), 0, "a connection sees one key only");
    assert_eq!(kit.distinct_tokens().len(), 2);
    let newest = kit.apns().jwts().pop().unwrap().jwt;
    let under_new_key = kit.apns().jwts().iter().filter(|jwt| jwt.jwt == newest).count();
    until(|| kit.apns().connections_open() == under_new_key).await;
    kit.stop().await;
}
