//! Callers that go away in every stage of a request leave nothing behind: no push, no actor, no socket, no memory.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use serde_json::{Value, json};
use sovereign_relay_simulator::{Behaviour, SimulatorOptions};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::JoinSet};

use crate::support::{
    relay::{Instance, RelayOptions},
    until,
    world::World,
};

/// Each of an own address, so that none is held to the budget of young neighbours.
const INSTANCES: usize = 8;
/// Below an instance's 600 a minute.
const PUSHES_PER_INSTANCE: usize = 500;
const ROUNDS: usize = 8;
/// After these the allocator and the pools have what they keep.
const WARM_UP: usize = 4;

/// How a caller goes away.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// In the middle of the body.
    WhileSending,
    /// With all sent, before the provider has answered.
    WhileWaiting,
    /// The same, with a reset in place of an orderly end.
    WithAReset,
}

impl Leaves {
    const ALL: [Self; 3] = [Self::WhileSending, Self::WhileWaiting, Self::WithAReset];

    async fn push(self, relay: SocketAddr, owner: &Instance, body: &Value) {
        let body = body.to_string();
        let head = format!(
            "POST /v1/push HTTP/1.1\r\nhost: relay\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            owner.key,
            body.len()
        );
        let sent = match self {
            Self::WhileSending => &body[..body.len() / 2],
            Self::WhileWaiting | Self::WithAReset => &body[..],
        };
        let mut stream = TcpStream::connect(relay).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        if matches!(self, Self::WithAReset) {
            stream.set_zero_linger().unwrap();
        }
    }
}

fn message(token: usize) -> Value {
    json!({ "deviceToken": format!("{token:064x}"), "platform": "ios", "encryptedPayload": "sealed" })
}

/// A third of the callers go away; the others are answered.
async fn round(world: &Arc<World>, owners: &[Instance], number: usize) {
    let relay: SocketAddr = world.relay.url.trim_start_matches("http://").parse().unwrap();
    let mut callers = JoinSet::new();
    for call in 0..INSTANCES * PUSHES_PER_INSTANCE / ROUNDS {
        let (world, owner) = (Arc::clone(world), owners[call % INSTANCES].clone());
        let body = message(number * INSTANCES * PUSHES_PER_INSTANCE + call);
        callers.spawn(async move {
            if call % 3 == 0 {
                Leaves::ALL[call / 3 % 3].push(relay, &owner, &body).await;
            } else {
                assert_eq!(world.relay.push(&owner, &body).await.word(), "sent");
            }
        });
    }
    callers.join_all().await;
    until("no push stays open", async || {
        world.relay.metric("relay_pushes_in_flight", "").await == 0.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_hang_up_leave_nothing_behind() {
    let options = RelayOptions::new().set("RELAY_LOG", "warn,sovereign_relay::app=info");
    let world = Arc::new(World::start_with(SimulatorOptions::default(), options).await);
    world.simulators.set_recording(false);
    let slow = Behaviour::accept().after(Duration::from_millis(30));
    world.simulators.apns.script().always(slow);
    let mut owners = Vec::new();
    for number in 0..INSTANCES {
        owners.push(
            world
                .relay
                .enroll_from(&format!("203.0.113.{}", number + 1))
                .await,
        );
    }
    let mut resident = Vec::new();
    for number in 0..ROUNDS {
        round(&world, &owners, number).await;
        resident.push(world.relay.resident_kib());
    }
    let (early, last) = (resident[WARM_UP - 1], resident[ROUNDS - 1]);
    assert!(
        last < early + early / 10,
        "resident KiB after each round: {resident:?}"
    );
    assert_eq!(world.relay.metric("relay_instance_actors", "").await, 8.0);
    let simulator = &world.simulators.apns;
    assert_eq!(simulator.resets_received(), 0, "a hang-up resets no stream");
    until("no request stays open", async || {
        simulator.requests_under_way() == 0
    })
    .await;
    // What this test itself holds open: its kept connections, one for each push at the same time.
    until("sockets of those who left are closed", async || {
        world.relay.open_files() <= INSTANCES * PUSHES_PER_INSTANCE / ROUNDS + 100
    })
    .await;
}
