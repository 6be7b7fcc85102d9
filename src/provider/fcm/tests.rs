//! Over real sockets, against the simulator.

mod barren;
mod credentials;

use std::{sync::Arc, time::Duration};

use sovereign_relay_actors::{
    ports::{Clock as _, Failure, Health, Outcome, PushProvider as _},
    push::TurnKey,
};
use sovereign_relay_protocol::{
    envelope::CollapseTag,
    platform::{Environment, Priority},
    push::Reason,
    redacted::Redacted,
};
use sovereign_relay_simulator::{Behaviour, SimulatorOptions, Simulators, fcm::verdict};
use tokio::runtime::Handle;

use super::*;
use crate::{
    clock::SystemClock,
    config::{Config, Flags},
    entropy::SystemEntropy,
};

/// Of pushes and of what a test waits for: longer than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

struct World {
    simulators: Simulators,
    provider: Arc<FcmProvider>,
    clock: Arc<SystemClock>,
    _directory: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut environment = simulators.relay_environment(&simulators.write_ca(directory.path()).unwrap());
        environment.push(("RELAY_DATA_DIR".into(), directory.path().display().to_string()));
        let find = |wanted: &str| {
            environment
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, value)| value.clone())
        };
        let config = Config::load(&Flags::default(), &find).unwrap();
        let clock = Arc::new(SystemClock::new());
        let config = FcmConfig {
            account: Some(config.fcm.account.unwrap()),
            endpoint: config.fcm.endpoint,
            extra_ca: Some(simulators.ca_pem.clone()),
        };
        let provider = FcmProvider::new(
            config,
            (clock.clone(), Arc::new(SystemEntropy)),
            Handle::current(),
        )
        .unwrap();
        Self {
            simulators,
            provider: Arc::new(provider),
            clock,
            _directory: directory,
        }
    }

    fn account(&self) -> ServiceAccount {
        serde_json::from_str::<serde_json::Value>(&self.simulators.fcm.service_account_json())
            .map(|json| ServiceAccount {
                project_id: json["project_id"].as_str().unwrap().into(),
                client_email: json["client_email"].as_str().unwrap().into(),
                private_key: Redacted::new(json["private_key"].as_str().unwrap()),
                private_key_id: json["private_key_id"].as_str().map(str::to_owned),
                token_uri: Url::parse(json["token_uri"].as_str().unwrap()).unwrap(),
            })
            .unwrap()
    }

    fn config(&self, account: Option<ServiceAccount>) -> FcmConfig {
        FcmConfig {
            account,
            endpoint: Url::parse(&self.simulators.fcm.endpoint()).unwrap(),
            extra_ca: Some(self.simulators.ca_pem.clone()),
        }
    }

    /// With another FCM than the simulator, which still gives the access tokens.
    fn with_fcm_at(&self, endpoint: &str) -> FcmProvider {
        let config = FcmConfig {
            endpoint: Url::parse(endpoint).unwrap(),
            ..self.config(Some(self.account()))
        };
        let ports = (self.clock.clone() as _, Arc::new(SystemEntropy) as _);
        FcmProvider::new(config, ports, Handle::current()).unwrap()
    }

    fn delivery(&self, within: Duration) -> Delivery {
        Delivery {
            sender: TurnKey::Group(1),
            platform: Platform::Android,
            environment: Environment::Production,
            token: TargetToken::Fcm(Redacted::new(self.simulators.fcm.new_token())),
            payload: Redacted::new("sealed"),
            priority: Priority::High,
            ttl_seconds: 60,
            collapse: Some(CollapseTag::from_mac(&[1; 32])),
            message_id: uuid::Uuid::nil(),
            deadline: self.clock.now().mono + within,
        }
    }

    async fn push(&self) -> Outcome {
        self.provider.deliver(self.delivery(DEADLINE)).await
    }
}

/// Waits until so many pushes are with FCM.
async fn under_way(world: &World, count: u64) {
    let reached = async {
        while world.simulators.fcm.requests_under_way() < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, reached).await.unwrap();
}

fn reason(outcome: Outcome) -> Reason {
    match outcome {
        Outcome::Failed(failure) => failure.reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_push_is_a_data_message_with_its_ttl_priority_and_hashed_collapse_key() {
    let world = World::start().await;
    assert!(matches!(
        world.push().await,
        Outcome::Sent { message_id: Some(_) }
    ));
    let delivered = world.simulators.fcm.inbox().all().pop().unwrap();
    assert_eq!(delivered.data.get("encryptedPayload").unwrap(), "sealed");
    assert_eq!(
        (delivered.priority.as_deref(), delivered.ttl.as_deref()),
        (Some("HIGH"), Some("60s"))
    );
    assert_eq!(delivered.collapse_key.unwrap().len(), 22);
    assert_eq!(delivered.http_version, "HTTP/2.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_concurrent_pushes_across_an_expiry_make_exactly_one_token_request() {
    let world = Arc::new(World::start().await);
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    assert_eq!(world.simulators.fcm.oauth_requests(), 1);
    world.simulators.fcm.expire_tokens();
    let pushes: Vec<_> = (0..1000)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.push().await })
        })
        .collect();
    for push in pushes {
        assert!(matches!(push.await.unwrap(), Outcome::Sent { .. }));
    }
    assert_eq!(world.simulators.fcm.oauth_requests(), 2);
}

#[tokio::test]
async fn a_token_that_is_refused_again_is_the_relays_fault_and_no_stream_of_token_requests() {
    let world = World::start().await;
    world.simulators.fcm.script().always(verdict::unauthenticated());
    assert_eq!(reason(world.push().await), Reason::RelayMisconfigured);
    let before = world.simulators.fcm.oauth_requests();
    assert_eq!(before, 2);
    let outcome = world
        .provider
        .deliver(world.delivery(Duration::from_millis(200)))
        .await;
    assert_eq!(reason(outcome), Reason::RelayMisconfigured, "said at once");
    assert_eq!(world.simulators.fcm.oauth_requests(), before);
}

#[tokio::test]
async fn a_token_endpoint_that_never_answers_ends_pushes_by_their_deadline() {
    let world = World::start().await;
    world
        .simulators
        .fcm
        .oauth_script()
        .always(Behaviour::never_answer());
    let outcome = world
        .provider
        .deliver(world.delivery(Duration::from_millis(300)))
        .await;
    assert_eq!(outcome, Outcome::Unreachable);
}

#[tokio::test]
async fn refused_credentials_are_the_relays_fault() {
    let world = World::start().await;
    let refusal = Behaviour::status(400).body(r#"{"error":"invalid_grant"}"#);
    world.simulators.fcm.oauth_script().always(refusal);
    assert_eq!(reason(world.push().await), Reason::RelayMisconfigured);
    assert_eq!(reason(world.push().await), Reason::RelayMisconfigured);
    assert_eq!(
        world.simulators.fcm.oauth_requests(),
        1,
        "the second push asked nobody"
    );
}

#[tokio::test]
async fn no_answer_by_the_deadline_is_a_timeout_and_a_lost_connection_an_unknown_outcome() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    world.simulators.fcm.script().next(1, Behaviour::never_answer());
    let slow = world
        .provider
        .deliver(world.delivery(Duration::from_millis(300)))
        .await;
    assert_eq!(reason(slow), Reason::ProviderTimeout);
    world
        .simulators
        .fcm
        .script()
        .next(1, Behaviour::kill_connection());
    assert_eq!(reason(world.push().await), Reason::UnknownOutcome);
    assert!(
        matches!(world.push().await, Outcome::Sent { .. }),
        "the next one dials anew"
    );
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_and_delivered_once() {
    let world = World::start().await;
    world.simulators.fcm.script().next(1, Behaviour::refuse_stream());
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    assert_eq!(world.simulators.fcm.inbox().total(), 1);
}

#[tokio::test]
async fn a_provider_that_refuses_every_stream_is_there_and_takes_none() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    world.simulators.fcm.script().always(Behaviour::refuse_stream());
    let outcome = world
        .provider
        .deliver(world.delivery(Duration::from_secs(1)))
        .await;
    assert_eq!(reason(outcome), Reason::ProviderUnavailable);
}

#[tokio::test]
async fn an_unreachable_provider_ends_at_the_deadline_and_is_used_again_at_once_when_it_is_back() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    world.simulators.fcm.refuse_connections(true).await.unwrap();
    world.simulators.fcm.kill_connections();
    // This one may still be written to the connection that was just killed.
    let _ = world
        .provider
        .deliver(world.delivery(Duration::from_millis(400)))
        .await;
    let outcome = world
        .provider
        .deliver(world.delivery(Duration::from_millis(400)))
        .await;
    assert_eq!(outcome, Outcome::Unreachable);
    world.simulators.fcm.refuse_connections(false).await.unwrap();
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
}

#[tokio::test]
async fn a_connection_that_never_comes_is_no_connection_and_not_a_slow_answer() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    world.simulators.fcm.blackhole_new_connections(true);
    world.simulators.fcm.kill_connections();
    // The push connection that was just cut may not be known to be yet; the one after it has to dial.
    let _ = world
        .provider
        .deliver(world.delivery(Duration::from_millis(400)))
        .await;
    let outcome = world
        .provider
        .deliver(world.delivery(Duration::from_millis(400)))
        .await;
    assert_eq!(outcome, Outcome::Unreachable);
}

#[tokio::test]
async fn a_burst_at_a_cold_start_opens_no_more_connections_than_its_streams_need() {
    let world = World::start().await;
    world.simulators.fcm.script().always(Behaviour::never_answer());
    let pushes = (0..250).map(|_| world.provider.deliver(world.delivery(DEADLINE)));
    tokio::select! {
        outcomes = futures_util::future::join_all(pushes) => panic!("{outcomes:?}"),
        () = under_way(&world, 250) => {}
    }
    let for_the_access_token = 1;
    assert_eq!(
        world.simulators.fcm.connections_accepted(),
        for_the_access_token + 3
    );
}

#[tokio::test]
async fn a_lost_connection_is_one_loss_whatever_its_streams() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    world.simulators.fcm.script().always(Behaviour::never_answer());
    let pushes = futures_util::future::join_all(
        (0..50).map(|_| world.provider.deliver(world.delivery(Duration::from_secs(60)))),
    );
    let cut = async {
        under_way(&world, 50).await;
        world.simulators.fcm.kill_connections();
    };
    let (outcomes, ()) = tokio::join!(pushes, cut);
    let mut lost = outcomes.into_iter().map(|outcome| match outcome {
        Outcome::Failed(Failure {
            reason: Reason::UnknownOutcome,
            health: Health::ConnectionLost { connection },
            ..
        }) => connection,
        other => panic!("{other:?}"),
    });
    let first = lost.next().unwrap();
    assert!(lost.all(|connection| connection == first));
}

#[tokio::test]
async fn html_and_endless_answers_are_handled() {
    let world = World::start().await;
    world.simulators.fcm.script().next(1, verdict::html_bad_gateway());
    assert_eq!(reason(world.push().await), Reason::ProviderUnavailable);
    world
        .simulators
        .fcm
        .script()
        .next(1, verdict::unregistered().padded_to(200_000));
    assert!(
        !matches!(world.push().await, Outcome::Gone { .. }),
        "an answer too long to be FCM's is no verdict"
    );
}
