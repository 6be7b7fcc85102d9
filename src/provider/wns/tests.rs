//! Over real sockets, against the simulator.

mod desync;
mod hosts;

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use sovereign_relay_actors::ports::{Clock as _, Failure, Health, Hold, Outcome, PushProvider as _};
use sovereign_relay_protocol::{
    platform::{Environment, Priority},
    push::Reason,
    redacted::Redacted,
    token::{ChannelRule, ChannelUri},
};
use sovereign_relay_simulator::{Behaviour, RetryAfter, SimulatorOptions, Simulators, wns::verdict};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    runtime::Handle,
};

use super::*;
use crate::{clock::SystemClock, entropy::SystemEntropy};

struct World {
    simulators: Simulators,
    provider: WnsProvider,
    clock: Arc<SystemClock>,
}

impl World {
    async fn start() -> Self {
        let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
        let options = simulators.wns.options();
        let credential = WnsCredential {
            identity: WnsIdentity::PackageSid(options.package_sid.clone()),
            client_secret: Redacted::new(options.client_secret.clone()),
        };
        let endpoint = simulators.wns.token_endpoint();
        Self::with(simulators, credential, &endpoint)
    }

    fn with(simulators: Simulators, credential: WnsCredential, token_endpoint: &str) -> Self {
        let clock = Arc::new(SystemClock::new());
        let config = WnsConfig {
            credential: Some(credential),
            token_endpoint: Url::parse(token_endpoint).unwrap(),
            extra_ca: Some(simulators.ca_pem.clone()),
            allow_test_endpoints: true,
        };
        Self {
            provider: provider(&clock, config),
            simulators,
            clock,
        }
    }

    fn provider_with(&self, allow_test_endpoints: bool) -> WnsProvider {
        let options = self.simulators.wns.options();
        let config = WnsConfig {
            credential: Some(WnsCredential {
                identity: WnsIdentity::PackageSid(options.package_sid.clone()),
                client_secret: Redacted::new(options.client_secret.clone()),
            }),
            token_endpoint: Url::parse(&self.simulators.wns.token_endpoint()).unwrap(),
            extra_ca: Some(self.simulators.ca_pem.clone()),
            allow_test_endpoints,
        };
        provider(&self.clock, config)
    }

    async fn push(&self) -> Outcome {
        let channel = self.simulators.wns.new_channel();
        self.push_to(&channel, 60).await
    }

    async fn push_to(&self, channel: &str, ttl_seconds: u32) -> Outcome {
        self.push_within(channel, ttl_seconds, Duration::from_secs(60))
            .await
    }

    async fn push_within(&self, channel: &str, ttl_seconds: u32, within: Duration) -> Outcome {
        let delivery = self.delivery(channel, ttl_seconds, within);
        self.provider.deliver(delivery).await
    }

    fn delivery(&self, channel: &str, ttl_seconds: u32, within: Duration) -> Delivery {
        let rule = ChannelRule {
            host_suffix: "localhost".into(),
            allow_test_endpoints: true,
        };
        Delivery {
            sender: TurnKey::Group(1),
            platform: Platform::Windows,
            environment: Environment::Production,
            token: TargetToken::Channel(ChannelUri::parse(&Redacted::new(channel), &rule).unwrap()),
            payload: Redacted::new("sealed"),
            priority: Priority::High,
            ttl_seconds,
            collapse: None,
            message_id: uuid::Uuid::nil(),
            deadline: self.clock.now().mono + within,
        }
    }
}

fn provider(clock: &Arc<SystemClock>, config: WnsConfig) -> WnsProvider {
    let ports = (clock.clone() as _, Arc::new(SystemEntropy) as _);
    WnsProvider::new(config, ports, Handle::current()).unwrap()
}

fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

fn reason(outcome: Outcome) -> Reason {
    failure(outcome).reason
}

/// Answers one request and ends.
async fn answer_once(listener: TcpListener, answer: &str) {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut head = vec![0; 4096];
    let _ = socket.read(&mut head).await.unwrap();
    socket.write_all(answer.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_push_is_a_raw_notification_with_the_documented_headers() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    let cached = world.simulators.wns.inbox().all().pop().unwrap();
    assert_eq!(
        (cached.notification_type.as_str(), cached.content_type.as_str()),
        ("wns/raw", "application/octet-stream")
    );
    assert_eq!(
        (cached.cache_policy.as_deref(), cached.ttl, cached.priority),
        (Some("cache"), Some(60), Some(1))
    );
    assert_eq!(cached.body, "sealed");
    let channel = world.simulators.wns.new_channel();
    assert!(matches!(world.push_to(&channel, 0).await, Outcome::Sent { .. }));
    let uncached = world.simulators.wns.inbox().all().pop().unwrap();
    assert_eq!(
        (uncached.cache_policy.as_deref(), uncached.ttl),
        (Some("no-cache"), None)
    );
}

#[tokio::test]
async fn entra_credentials_work_though_their_lifetimes_are_strings() {
    let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
    let options = simulators.wns.options();
    let credential = WnsCredential {
        identity: WnsIdentity::Entra {
            tenant_id: options.tenant_id.clone(),
            client_id: options.client_id.clone(),
        },
        client_secret: Redacted::new(options.client_secret.clone()),
    };
    let endpoint = simulators.wns.entra_token_endpoint();
    let world = World::with(simulators, credential, &endpoint);
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
}

#[tokio::test]
async fn a_401_is_mended_once_with_a_new_token() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    world.simulators.wns.expire_tokens();
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    assert_eq!(world.simulators.wns.oauth_requests(), 2);
    world.simulators.wns.script().always(verdict::unauthorized());
    let alone = failure(world.push().await);
    assert_eq!(
        (alone.reason, alone.hold),
        (Reason::ProviderUnavailable, Hold::Token)
    );
    assert_eq!(world.simulators.wns.oauth_requests(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_pushes_across_an_expiry_make_exactly_one_token_request() {
    let world = Arc::new(World::start().await);
    let first = world.push().await;
    assert!(matches!(first, Outcome::Sent { .. }), "{first:?}");
    world.simulators.wns.expire_tokens();
    // As many at once as the lane lets under way, and the next as soon as one is done.
    let turns = Arc::new(tokio::sync::Semaphore::new(Wns::CAPACITY));
    let pushes: Vec<_> = (0..1000)
        .map(|_| {
            let (world, turns) = (Arc::clone(&world), Arc::clone(&turns));
            tokio::spawn(async move {
                let _turn = turns.acquire().await.unwrap();
                world.push().await
            })
        })
        .collect();
    for push in pushes {
        let outcome = push.await.unwrap();
        assert!(matches!(outcome, Outcome::Sent { .. }), "{outcome:?}");
    }
    assert_eq!(world.simulators.wns.oauth_requests(), 2);
}

#[tokio::test]
async fn the_relays_credential_goes_to_no_address_inside_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let channel = format!(
        "http://localhost:{}/?token=x",
        listener.local_addr().unwrap().port()
    );
    let mut world = World::start().await;
    // The access token comes from a simulator on loopback, which is the operator's word; the channel is a device's.
    world.provider = world.provider_with(false);
    let outcome = world.push_within(&channel, 60, Duration::from_secs(5)).await;
    assert_eq!(outcome, Outcome::HostUnreachable);
    // A connection would wait there.
    let connected = listener.accept().now_or_never();
    assert!(connected.is_none(), "nobody was dialled");
    assert_eq!(world.simulators.wns.oauth_requests(), 1);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let world = World::start().await;
    let elsewhere = world.simulators.wns.new_channel();
    for status in [301, 302, 307, 308] {
        world
            .simulators
            .wns
            .script()
            .next(1, verdict::redirect(status, &elsewhere));
        assert_eq!(reason(world.push().await), Reason::ProviderUnavailable);
    }
    assert_eq!(world.simulators.wns.inbox().total(), 0);
}

#[tokio::test]
async fn an_answer_that_never_comes_is_a_timeout() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    world.simulators.wns.script().always(Behaviour::never_answer());
    let channel = world.simulators.wns.new_channel();
    let outcome = world.push_within(&channel, 60, Duration::from_secs(1)).await;
    assert_eq!(reason(outcome), Reason::ProviderTimeout);
}

#[tokio::test]
async fn the_channel_uri_goes_out_byte_for_byte() {
    let world = World::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = "/?token=AwYAAAB%2fx%2Fy%3d%3D+~!$()*,;:";
    let channel = format!(
        "http://localhost:{}{target}",
        listener.local_addr().unwrap().port()
    );
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let read = socket.read(&mut head).await.unwrap();
        socket
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    };
    let (outcome, head) = tokio::join!(world.push_to(&channel, 60), server);
    assert!(matches!(outcome, Outcome::Sent { .. }));
    assert!(head.starts_with(&format!("POST {target} HTTP/1.1\r\n")), "{head}");
    assert!(
        head.to_ascii_lowercase().contains("content-length: 6\r\n") && !head.contains("chunked"),
        "{head}"
    );
}
