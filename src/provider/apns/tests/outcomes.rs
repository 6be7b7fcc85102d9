//! What one push comes to.

use std::time::Duration;

use sovereign_relay_actors::ports::{Certainty, Health, Outcome, PushProvider as _};
use sovereign_relay_protocol::{
    envelope::CollapseTag,
    platform::{Environment, Platform},
    push::Reason,
    time::UnixMillis,
};
use sovereign_relay_simulator::{Behaviour, Pace, apns::verdict};

use super::kit::{Kit, SOON, failure, is_sent};
use crate::provider::{
    answer::failed,
    apns::{ApnsConfig, ApnsConfigError, Topics},
};

#[tokio::test]
async fn a_push_arrives_as_the_contract_says() {
    let kit = Kit::start().await;
    let mut delivery = kit.delivery(SOON);
    delivery.collapse = Some(CollapseTag::from_mac(&[1; 32]));
    let id = delivery.message_id.as_hyphenated().to_string();
    let outcome = kit.provider.deliver(delivery.clone()).await;
    assert_eq!(
        outcome,
        Outcome::Sent {
            message_id: Some(id.clone())
        }
    );
    let arrived = kit.apns().inbox().all().remove(0);
    assert_eq!(arrived.apns_id, id);
    assert_eq!(
        (arrived.push_type.as_str(), arrived.priority),
        ("alert", Some(10))
    );
    assert_eq!(arrived.topic, kit.apns().options().bundle_id);
    assert_eq!(
        arrived.collapse_id.as_deref(),
        Some(CollapseTag::from_mac(&[1; 32]).as_str())
    );
    assert!(arrived.payload.contains(r#""encryptedPayload":"sealed""#));
    assert!(arrived.expiration.unwrap() > 1_700_000_000);
    delivery.platform = Platform::Macos;
    assert!(is_sent(&kit.provider.deliver(delivery).await));
    assert_eq!(
        kit.apns().inbox().all().remove(1).topic,
        kit.apns().options().bundle_id_macos
    );
    kit.stop().await;
}

#[tokio::test]
async fn a_410_with_a_timestamp_says_since_when() {
    let kit = Kit::start().await;
    kit.apns()
        .script()
        .next(1, verdict::unregistered(1_600_000_000_123));
    let expected = Outcome::Gone {
        certainty: Certainty::Certain,
        reason: Reason::Unregistered,
        since: UnixMillis(1_600_000_000_123),
    };
    assert_eq!(kit.push().await, expected);
    kit.stop().await;
}

#[tokio::test]
async fn a_bad_token_is_conditional_and_dated_by_the_start_of_the_call() {
    let kit = Kit::start().await;
    let delivery = kit.delivery(SOON);
    kit.apns().script().always(verdict::bad_device_token());
    match kit.provider.deliver(delivery).await {
        Outcome::Gone {
            certainty: Certainty::Conditional,
            reason: Reason::BadToken,
            since,
        } => {
            assert!(since.0 > 1_700_000_000_000);
        }
        other => panic!("{other:?}"),
    }
    kit.stop().await;
}

#[tokio::test]
async fn a_503_is_tried_once_more_under_the_same_apns_id() {
    let kit = Kit::start().await;
    kit.apns()
        .script()
        .next(1, verdict::service_unavailable().delivered());
    assert!(is_sent(&kit.push().await));
    let ids: Vec<_> = kit
        .apns()
        .inbox()
        .all()
        .into_iter()
        .map(|arrived| arrived.apns_id)
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
    kit.stop().await;
}

#[tokio::test]
async fn a_second_503_is_the_answer() {
    let kit = Kit::start().await;
    kit.apns().script().next(2, verdict::service_unavailable());
    let failure = failure(kit.push().await);
    assert_eq!(
        (failure.reason, failure.health),
        (Reason::ProviderUnavailable, Health::Faulty)
    );
    assert!(failure.retryable);
    assert_eq!(kit.apns().answered_with(503), 2);
    kit.stop().await;
}

#[tokio::test]
async fn no_answer_by_the_deadline_is_a_timeout_and_frees_the_stream() {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    kit.apns().script().next(1, Behaviour::never_answer());
    let outcome = failure(kit.push_within(Duration::from_secs(1)).await);
    assert_eq!(
        (outcome.reason, outcome.health),
        (Reason::ProviderTimeout, Health::Faulty)
    );
    assert!(is_sent(&kit.push().await));
    assert_eq!(kit.apns().connections_accepted(), 1);
    kit.stop().await;
}

#[tokio::test]
async fn a_refused_stream_is_tried_again_and_a_reset_one_is_not() {
    let kit = Kit::start().await;
    kit.apns().script().next(3, Behaviour::refuse_stream());
    assert!(is_sent(&kit.push().await));
    kit.apns()
        .script()
        .next(1, Behaviour::reset_stream(2).delivered());
    assert_eq!(failure(kit.push().await).reason, Reason::UnknownOutcome);
    assert_eq!(kit.apns().inbox().total(), 2);
    kit.stop().await;
}

#[tokio::test]
async fn a_connection_cut_after_the_request_leaves_the_outcome_unknown_and_names_the_connection() {
    let kit = Kit::start().await;
    kit.apns().script().next(1, Behaviour::never_answer().delivered());
    let cut = async {
        kit.apns().inbox().wait_for(1, SOON).await.unwrap();
        kit.apns().kill_connections();
    };
    let (outcome, ()) = tokio::join!(kit.push(), cut);
    let failure = failure(outcome);
    assert_eq!(failure.reason, Reason::UnknownOutcome);
    assert!(failure.retryable);
    assert!(matches!(failure.health, Health::ConnectionLost { .. }));
    assert!(is_sent(&kit.push().await));
    assert_eq!(kit.apns().inbox().total(), 2, "it was not sent again");
    kit.stop().await;
}

#[tokio::test]
async fn a_refusal_that_is_cut_stalled_or_oversized_is_no_verdict_whatever_its_status() {
    let kit = Kit::start().await;
    let refusals = [
        verdict::unregistered(1),
        verdict::bad_device_token(),
        verdict::refused(400, "PayloadEmpty"),
        verdict::refused(403, "InvalidProviderToken"),
        verdict::refused(404, "BadPath"),
        verdict::refused(413, "PayloadTooLarge"),
    ];
    let damaged = refusals.into_iter().flat_map(|refusal| {
        [
            refusal.clone().paced(Pace::CutAfter { bytes: 5 }),
            refusal.padded_to(100_000),
        ]
    });
    let stalled = verdict::refused(403, "InvalidProviderToken").paced(Pace::StallAfter { bytes: 5 });
    let expected = failed(Reason::ProviderUnavailable, true, Health::Answered);
    for behaviour in damaged.chain([stalled]) {
        kit.apns().script().next(1, behaviour.clone());
        assert_eq!(kit.push().await, expected, "{behaviour:?}");
    }
    kit.stop().await;
}

#[tokio::test]
async fn a_410_that_is_not_apples_kills_no_device() {
    let kit = Kit::start().await;
    kit.apns().script().next(1, Behaviour::html(410));
    assert_eq!(failure(kit.push().await).reason, Reason::UnconfirmedToken);
    kit.stop().await;
}

#[tokio::test]
async fn a_slow_error_body_is_read_to_its_end() {
    let kit = Kit::start().await;
    let slow = Pace::Slow {
        chunk_bytes: 3,
        pause_ms: 1,
    };
    kit.apns()
        .script()
        .next(1, verdict::refused(400, "BadTopic").paced(slow));
    assert_eq!(failure(kit.push().await).reason, Reason::RelayMisconfigured);
    assert_eq!(kit.apns().resets_received(), 0);
    kit.stop().await;
}

#[tokio::test]
async fn an_unrelated_key_gets_another_connection_and_one_more_try() {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    kit.apns()
        .script()
        .next(1, verdict::refused(403, "UnrelatedKeyIdInToken"));
    assert!(is_sent(&kit.push().await));
    assert_eq!(kit.apns().connections_accepted(), 2);
    kit.apns()
        .script()
        .always(verdict::refused(403, "UnrelatedKeyIdInToken"));
    for _ in 0..20 {
        assert_eq!(failure(kit.push().await).reason, Reason::RelayMisconfigured);
    }
    assert!(
        kit.apns().connections_accepted() < 10,
        "a useless answer doesn't cost a handshake per push"
    );
    kit.stop().await;
}

#[tokio::test]
async fn a_platform_without_topic_or_key_has_no_scope() {
    let kit = Kit::start().await;
    let scope = kit.provider.scope(Platform::Ios).unwrap();
    assert_eq!(
        &*scope.name,
        format!("apns/production/{}", kit.apns().options().bundle_id)
    );
    assert_eq!(kit.provider.scope(Platform::Android), None);
    let ios_only = Topics {
        macos: None,
        ..kit.config.topics.clone()
    };
    kit.provider
        .reload(ApnsConfig {
            topics: ios_only,
            ..kit.config.clone()
        })
        .unwrap();
    assert_eq!(kit.provider.scope(Platform::Macos), None);
    kit.provider
        .reload(ApnsConfig {
            key: None,
            ..kit.config.clone()
        })
        .unwrap();
    assert_eq!(kit.provider.scope(Platform::Ios), None);
    kit.stop().await;
}

#[tokio::test]
async fn a_reload_that_moves_to_another_endpoint_is_refused_and_changes_nothing() {
    let kit = Kit::start().await;
    let elsewhere = ApnsConfig {
        environment: Environment::Sandbox,
        ..kit.config.clone()
    };
    assert_eq!(kit.provider.reload(elsewhere), Err(ApnsConfigError::Fixed));
    assert_eq!(kit.provider.scope(Platform::Ios).unwrap().generation, 0);
    kit.stop().await;
}

#[tokio::test]
async fn reloads_at_the_same_time_each_start_a_generation_of_their_own() {
    let kit = Kit::start().await;
    const RELOADS: u64 = 4 * 100;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let generation = || kit.provider.scope(Platform::Ios).unwrap().generation;
                for _ in 0..RELOADS / 4 {
                    let before = generation();
                    kit.provider.reload(kit.config.clone()).unwrap();
                    assert!(generation() > before, "it never goes back");
                }
            });
        }
    });
    assert_eq!(kit.provider.scope(Platform::Ios).unwrap().generation, RELOADS);
    kit.stop().await;
}
