//! A bug in one instance's actor costs that caller a 500 and nobody else anything.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use sovereign_relay::{
    app::{self, Ports},
    config::{Config, Flags},
};
use sovereign_relay_actors::ports::{Delivery, Outcome, Providers, PushProvider, Scope};
use sovereign_relay_protocol::{
    platform::{Environment, Platform},
    token::ChannelRule,
};
use tokio::sync::watch;

/// Delivers everything, but panics once when asked, inside the actor that asks it.
struct Treacherous {
    panic_next: Arc<AtomicBool>,
    capacity: watch::Sender<usize>,
}

impl PushProvider for Treacherous {
    fn name(&self) -> &'static str {
        "treacherous"
    }

    fn scope(&self, _platform: Platform) -> Option<Scope> {
        assert!(
            !self.panic_next.swap(false, Ordering::SeqCst),
            "injected by the test"
        );
        Some(Scope {
            name: Arc::from("treacherous"),
            generation: 0,
        })
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.capacity.subscribe()
    }

    fn deliver(&self, _delivery: Delivery) -> BoxFuture<'static, Outcome> {
        Box::pin(std::future::ready(Outcome::Sent { message_id: None }))
    }
}

fn providers(panic_next: &Arc<AtomicBool>) -> Providers {
    let one = || -> Arc<dyn PushProvider> {
        Arc::new(Treacherous {
            panic_next: panic_next.clone(),
            capacity: watch::Sender::new(100),
        })
    };
    Providers {
        apns_production: one(),
        apns_sandbox: one(),
        fcm: one(),
        wns: one(),
        default_environment: Environment::Production,
        channel_rule: ChannelRule::default(),
    }
}

async fn push(url: &str, key: &str) -> (u16, Value) {
    let body = json!({ "deviceToken": "abcd", "platform": "ios", "encryptedPayload": "sealed" });
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let response = client
        .post(format!("{url}/v1/push"))
        .bearer_auth(key)
        .json(&body)
        .send()
        .await
        .unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn enroll(url: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer: Value = client
        .post(format!("{url}/v1/enroll"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    answer["instanceKey"].as_str().unwrap().to_owned()
}

#[test]
fn a_panic_in_one_actor_is_a_500_with_a_body_and_neither_the_next_push_nor_another_instance_notices() {
    actix_rt::System::new().block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let panic_next = Arc::new(AtomicBool::new(false));
        let data_dir = directory.path().display().to_string();
        let find = |name: &str| match name {
            "RELAY_LISTEN" | "RELAY_ADMIN_LISTEN" => Some("127.0.0.1:0".to_owned()),
            "RELAY_DRAIN_GRACE" => Some("0s".to_owned()),
            "RELAY_DATA_DIR" => Some(data_dir.clone()),
            _ => None,
        };
        let config = Config::load(&Flags::default(), &find).unwrap();
        let ports = Ports {
            providers: Some(providers(&panic_next)),
            ..Ports::default()
        };
        let relay = app::start_with(config, ports).await.unwrap();
        let url = format!("http://{}", relay.public_addr);
        let (unlucky, other) = (enroll(&url).await, enroll(&url).await);
        assert_eq!(push(&url, &unlucky).await.0, 200);
        assert_eq!(push(&url, &other).await.0, 200);

        panic_next.store(true, Ordering::SeqCst);
        let (status, body) = push(&url, &unlucky).await;
        assert_eq!(
            (status, &body["error"]),
            (500, &json!("internal_error")),
            "{body}"
        );
        assert!(
            !body.to_string().contains("injected"),
            "a fault's text is not for callers"
        );
        assert!(
            !panic_next.load(Ordering::SeqCst),
            "it was the actor that panicked"
        );

        let all = (0..40)
            .map(|number| if number % 2 == 0 { &unlucky } else { &other })
            .map(|key| push(&url, key));
        for (status, body) in futures_util::future::join_all(all).await {
            assert_eq!((status, &body["result"]), (200, &json!("sent")));
        }
        relay.stop().await;
    });
}
