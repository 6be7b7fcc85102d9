//! Relays behind Caddy, as `deploy/` has them: one enrollment secret, a fixed address for each, only Caddy trusted.

use std::{net::SocketAddrV4, process::ExitStatus};

use reqwest::Method;
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;

use super::{
    answer::Answer,
    caddy::{self, Caddy},
    grown,
    redis::{self, own_place},
    relay::{Caller, Relay, RelayOptions},
    sessions::{Made, open_session_at},
};

pub struct Fleet {
    pub simulators: Simulators,
    pub caddy: Caddy,
    pub replicas: Vec<Replica>,
    http: reqwest::Client,
    _redis: redis::Server,
    _ca_dir: TempDir,
}

/// A relay that comes back at the same address.
pub struct Replica {
    place: SocketAddrV4,
    options: RelayOptions,
    relay: Option<Relay>,
    _data_dir: TempDir,
}

impl Fleet {
    /// So many relays and the simulators they push to, behind one Caddy.
    pub async fn start(count: usize) -> Self {
        Self::start_with(count, |_| RelayOptions::new()).await
    }

    /// The same, with options for each relay.
    pub async fn start_with(count: usize, more: impl FnOnce(&Simulators) -> RelayOptions) -> Self {
        let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
        let (front, ca_dir) = (Caddy::choose(), TempDir::new().unwrap());
        let ca_file = simulators.write_ca(ca_dir.path()).unwrap();
        let environment = simulators.relay_environment(&ca_file);
        let (more, redis, mut replicas) = (more(&simulators), redis::Server::start(), Vec::new());
        for _ in 0..count {
            let options = more
                .clone()
                .under(shared(front, &redis))
                .under(environment.clone());
            replicas.push(Replica::start(options).await);
        }
        let places: Vec<SocketAddrV4> = replicas.iter().map(|replica| replica.place).collect();
        Self {
            caddy: Caddy::start(front, &places).await,
            simulators,
            replicas,
            http: client(None),
            _redis: redis,
            _ca_dir: ca_dir,
        }
    }

    /// A request through Caddy.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.caddy.url()))
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::from(self.request(Method::GET, path)).await
    }

    /// Something that pushes through Caddy.
    pub fn caller(&self) -> Caller {
        Caller::of(&self.caddy.url())
    }

    /// A session made through Caddy, by a new instance.
    pub async fn session(&self) -> Made {
        open_session_at(&self.caddy.url()).await
    }
}

impl Replica {
    async fn start(options: RelayOptions) -> Self {
        let (place, data_dir) = (own_place(), TempDir::new().unwrap());
        let options = options
            .set("RELAY_LISTEN", place.to_string())
            .data_dir(data_dir.path());
        Self {
            relay: Some(Relay::start(options.clone()).await),
            place,
            options,
            _data_dir: data_dir,
        }
    }

    pub fn place(&self) -> SocketAddrV4 {
        self.place
    }

    pub fn relay(&self) -> &Relay {
        self.relay.as_ref().expect("it runs")
    }

    /// An orderly stop, to its end; its exit status and its whole log.
    pub async fn stop(&mut self) -> (ExitStatus, String) {
        let relay = self.relay.take().expect("it runs");
        relay.terminate();
        relay.ended().await
    }

    /// kill -9.
    pub async fn kill(&mut self) {
        self.relay.take().expect("it runs").kill().await;
    }

    /// Back at the same address, with what it has kept.
    pub async fn start_again(&mut self) {
        self.relay = Some(Relay::start(self.options.clone()).await);
    }
}

/// A client that connects from an address of its own.
pub fn client(address: Option<&str>) -> reqwest::Client {
    let address = address.map(|address| address.parse().unwrap());
    let builder = reqwest::Client::builder().no_proxy().local_address(address);
    builder.build().unwrap()
}

/// What all relays of a fleet are told.
fn shared(front: SocketAddrV4, redis: &redis::Server) -> Vec<(String, String)> {
    [
        ("RELAY_ENROLLMENT_SECRET", grown::SECRET.to_owned()),
        ("RELAY_TRUSTED_PROXIES", caddy::ADDRESS.to_owned()),
        ("RELAY_PUBLIC_URL", format!("http://{front}")),
        ("REDIS_URL", redis.url()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
