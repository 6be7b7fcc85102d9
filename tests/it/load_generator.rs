//! What `loadtest push --black-hole` and `loadtest push --hang-ups` do with very many pushes, with a few: the loads are
//! the same, and what they say is true. No time and no memory is judged here.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use serde_json::{Value, json};
use sovereign_relay_simulator::{Behaviour, SimulatorOptions};

use self::{
    load::{HangUps, Pushes, Tally},
    rounds::{Counts, Plan, Round},
    run::Call,
};
use crate::support::{
    device::random,
    grown::grown_instances,
    relay::{Instance, RelayOptions},
    until,
    world::World,
};

#[path = "../../loadtest/src/push/hang_ups/load.rs"]
mod load;
#[path = "../../loadtest/src/push/black_hole/rounds.rs"]
mod rounds;
#[allow(dead_code, reason = "only the load generator makes a table")]
#[path = "../../loadtest/src/run.rs"]
mod run;

const INSTANCES: usize = 8;
/// Side by side.
const CALLERS: usize = 16;
/// Of the provider, so that callers can hang up before it.
const ANSWER_AFTER: Duration = Duration::from_millis(20);

/// Instances that push to ever new devices.
struct Owners {
    world: Arc<World>,
    instances: Vec<Instance>,
    platform: &'static str,
}

impl Owners {
    fn new(world: &Arc<World>, platform: &'static str) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            instances: grown_instances(INSTANCES),
            platform,
        })
    }

    fn owner_and_push(&self, number: u64) -> (&Instance, Value) {
        let owner = &self.instances[number as usize % INSTANCES];
        let token = format!("{number:064x}");
        let push = json!({ "deviceToken": token, "platform": self.platform, "encryptedPayload": "sealed" });
        (owner, push)
    }
}

impl Call for Owners {
    async fn call(&self, number: u64) -> bool {
        let (owner, push) = self.owner_and_push(number);
        self.world.relay.push(owner, &push).await.word() == "sent"
    }
}

impl Pushes for Owners {
    fn request(&self, number: u64) -> anyhow::Result<Vec<u8>> {
        let (owner, push) = self.owner_and_push(number);
        let body = push.to_string();
        let head = format!(
            "POST /v1/push HTTP/1.1\r\nhost: relay\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            owner.key,
            body.len()
        );
        Ok([head, body].concat().into_bytes())
    }

    fn relay(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.world.relay.url.trim_start_matches("http://").parse()?)
    }
}

async fn world(options: RelayOptions) -> Arc<World> {
    let options = options
        .with_grown_instances()
        .set("RELAY_LOG", "warn,sovereign_relay::app=info");
    Arc::new(World::start_with(SimulatorOptions::default(), options).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_black_holed_provider_every_push_to_the_other_is_sent_and_each_round_begins_with_both() {
    let options = RelayOptions::new()
        .set("RELAY_PUSH_DEADLINE", "2s")
        .set("RELAY_DRAIN_GRACE", "0s");
    let world = world(options).await;
    let plan = Plan {
        rate: 40,
        beside: 30,
        duration: Duration::from_secs(1),
        rounds: 2,
    };
    let (apns, fcm) = (Owners::new(&world, "ios"), Owners::new(&world, "android"));
    let rounds = rounds::measure(&apns, &fcm, world.simulators.fcm.script(), &plan).await;
    let rounds: Vec<Round> = rounds.unwrap();
    assert_eq!(rounds.len(), 2);
    for round in &rounds {
        assert_eq!(round.failed(), 0);
        for measured in [&round.answering.apns, &round.black_holed.apns] {
            assert_eq!(hdrhistogram::Histogram::len(&measured.latency), 40);
        }
        assert_eq!(round.answering.beside, Counts { sent: 30, failed: 0 });
        assert_eq!(round.black_holed.beside, Counts { sent: 0, failed: 30 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_answers_all_the_same_is_no_black_hole_and_gives_no_figure() {
    let options = RelayOptions::new()
        .set("RELAY_PUSH_DEADLINE", "1s")
        .set("RELAY_DRAIN_GRACE", "0s");
    let world = world(options).await;
    let plan = Plan {
        rate: 10,
        beside: 10,
        duration: Duration::from_secs(1),
        rounds: 1,
    };
    let (apns, fcm) = (Owners::new(&world, "ios"), Owners::new(&world, "android"));
    // Another one is told not to answer.
    let script = world.simulators.wns.script();
    let error = rounds::measure(&apns, &fcm, script, &plan).await.err().unwrap();
    assert!(error.to_string().starts_with("no black hole"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_hang_up_at_random_moments_are_counted_and_leave_no_push_and_no_socket() {
    let world = world(RelayOptions::new()).await;
    let slow = Behaviour::accept().after(ANSWER_AFTER);
    world.simulators.apns.script().always(slow);
    let owners = Owners::new(&world, "ios");
    let nobody = HangUps::new(Arc::clone(&owners), 0.0, ANSWER_AFTER);
    let all_sent = Tally {
        sent: 20,
        ..Tally::default()
    };
    assert_eq!(nobody.push(600..620, CALLERS).await.unwrap(), all_sent);
    // By now the relay has what it opens once, and both it and this test what they keep for each caller.
    let files = world.relay.open_files();
    let third = HangUps::new(Arc::clone(&owners), 0.3, ANSWER_AFTER);
    let tally = third.push(0..600, CALLERS).await.unwrap();
    assert_eq!((tally.sent + tally.hung_up, tally.failed), (600, 0), "{tally:?}");
    assert!((60..400).contains(&tally.hung_up), "{tally:?}");
    assert!(tally.before_the_answer > 0, "{tally:?}");
    let everybody = HangUps::new(owners, 1.0, ANSWER_AFTER);
    assert_eq!(everybody.push(620..720, CALLERS).await.unwrap().hung_up, 100);
    let left = 100 + tally.hung_up as usize;
    until("no push stays open", async || {
        world.relay.metric("relay_pushes_in_flight", "").await == 0.0
    })
    .await;
    // A pool may keep a few more than before; those of hang-ups would be far more.
    until("sockets of those who left are closed", async || {
        world.relay.open_files() < files + left / 4
    })
    .await;
}
