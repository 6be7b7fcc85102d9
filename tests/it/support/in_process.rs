//! A whole relay in this process, for what the binary has no setting for: the times of its listeners, and a provider
//! with a bug in it. It is put together as the binary is, by [`app::start_with`], and answers on real sockets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use sovereign_relay::{
    app::{self, Ports},
    config::{Config, Flags},
};
use sovereign_relay_actors::ports::{Delivery, Outcome, Providers, PushProvider, Scope};
use sovereign_relay_protocol::{
    platform::{Environment, Platform},
    token::ChannelRule,
};
use tokio::sync::{oneshot, watch};

/// Stopped when dropped.
pub struct InProcess {
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl InProcess {
    /// Starts it on a thread of its own, which is its actix system.
    pub async fn start(ports: Ports) -> Self {
        let (started, url) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(|| actix_rt::System::new().block_on(serve(ports, started, stopped)));
        Self {
            url: url.await.expect("it starts"),
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            thread::panicking() || matches!(ended, Some(Ok(()))),
            "it ended with a panic"
        );
    }
}

async fn serve(ports: Ports, started: oneshot::Sender<String>, stopped: oneshot::Receiver<()>) {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().display().to_string();
    let find = |name: &str| match name {
        "RELAY_LISTEN" | "RELAY_ADMIN_LISTEN" => Some("127.0.0.1:0".to_owned()),
        "RELAY_DRAIN_GRACE" => Some("0s".to_owned()),
        "RELAY_DATA_DIR" => Some(data_dir.clone()),
        _ => None,
    };
    let config = Config::load(&Flags::default(), &find).unwrap();
    let relay = app::start_with(config, ports).await.unwrap();
    started.send(format!("http://{}", relay.public_addr)).unwrap();
    let _ = stopped.await;
    relay.stop().await;
}

/// Delivers everything, when it is let; panics once when asked to, inside the actor that asks it something.
pub struct Treacherous {
    panic_next: AtomicBool,
    under_way: watch::Sender<usize>,
    held: watch::Sender<bool>,
    capacity: watch::Sender<usize>,
}

impl Treacherous {
    /// One that behaves.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            panic_next: AtomicBool::new(false),
            under_way: watch::Sender::new(0),
            held: watch::Sender::new(false),
            capacity: watch::Sender::new(1000),
        })
    }

    /// The next actor that asks panics.
    pub fn panic_next(&self) {
        self.panic_next.store(true, Ordering::SeqCst);
    }

    /// Whether the panic is still to come.
    pub fn is_armed(&self) -> bool {
        self.panic_next.load(Ordering::SeqCst)
    }

    /// From now on answers wait until this is called with `false`.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Waits until `count` deliveries wait for their answers.
    pub async fn holds(&self, count: usize) {
        let mut under_way = self.under_way.subscribe();
        let waited = tokio::time::timeout(super::DEADLINE, under_way.wait_for(|now| *now >= count)).await;
        assert!(waited.is_ok(), "{count} deliveries");
    }

    /// As all four platforms' provider.
    pub fn everywhere(self: &Arc<Self>) -> Providers {
        let one = || -> Arc<dyn PushProvider> { Arc::new(Handle(Arc::clone(self))) };
        Providers {
            apns_production: one(),
            apns_sandbox: one(),
            fcm: one(),
            wns: one(),
            default_environment: Environment::Production,
            channel_rule: ChannelRule::default(),
        }
    }
}

struct Handle(Arc<Treacherous>);

impl PushProvider for Handle {
    fn name(&self) -> &'static str {
        "treacherous"
    }

    fn scope(&self, _platform: Platform) -> Option<Scope> {
        assert!(
            !self.0.panic_next.swap(false, Ordering::SeqCst),
            "injected by the test"
        );
        Some(Scope {
            name: Arc::from("treacherous"),
            generation: 0,
        })
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.0.capacity.subscribe()
    }

    fn deliver(&self, _delivery: Delivery) -> BoxFuture<'static, Outcome> {
        let provider = Arc::clone(&self.0);
        async move {
            provider.under_way.send_modify(|count| *count += 1);
            let _ = provider.held.subscribe().wait_for(|held| !held).await;
            provider.under_way.send_modify(|count| *count -= 1);
            Outcome::Sent { message_id: None }
        }
        .boxed()
    }
}
