//! A provider that is down, or lost behind dead connections.

use std::time::Instant;

use futures_util::future::{join, join_all, join3};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{ApnsOptions, Behaviour, Provider, Simulator, SimulatorOptions};

use super::{assert_all_sent, options, push, pushes, send_all, world};
use crate::support::{
    DEADLINE,
    grown::{grown_instance, grown_instances},
    relay::{Answer, Instance},
    until,
    world::World,
};

/// `relay_breaker_state` of an open one.
const OPEN: f64 = 2.0;
const H2_INTERNAL_ERROR: u32 = 2;
/// The longest step of the breaker, in seconds.
const LONGEST_STEP: u64 = 10;

// A provider is unreachable for a while, then back: callers are refused at once meanwhile, the first push that is let
// through after the recovery is sent, and nothing has to be restarted.
#[tokio::test(flavor = "multi_thread")]
async fn each_unreachable_provider_is_given_up_and_found_again_by_the_first_push_let_through() {
    let world = world("5s").await;
    join3(
        goes_and_comes_back(&world, &world.simulators.apns, Platform::Ios),
        goes_and_comes_back(&world, &world.simulators.fcm, Platform::Android),
        goes_and_comes_back(&world, &world.simulators.wns, Platform::Windows),
    )
    .await;
}

// Calls that end without an answer, one after the other and so each on a connection of its own, are so many faults, and
// so are streams that the provider resets.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_loses_or_resets_every_call_is_given_up() {
    for (platform, ending) in [
        (Platform::Windows, Behaviour::kill_connection()),
        (Platform::Android, Behaviour::kill_connection()),
        (Platform::Android, Behaviour::reset_stream(H2_INTERNAL_ERROR)),
    ] {
        let world = world("5s").await;
        let instance = grown_instance();
        let push_one = async || world.relay.push(&instance, &push(&world, platform)).await;
        assert_eq!(push_one().await.word(), "sent");
        world.simulators.fcm.script().always(ending.clone());
        world.simulators.wns.script().always(ending);
        until("the breaker is open", async || {
            let answer = push_one().await;
            assert!(["failed", "overloaded"].contains(&answer.word()), "{answer:?}");
            breaker(&world, platform).await == OPEN
        })
        .await;
    }
}

async fn goes_and_comes_back<P: Provider>(world: &World, provider: &Simulator<P>, platform: Platform) {
    let instance = grown_instance();
    let push_one = async || world.relay.push(&instance, &push(world, platform)).await;
    assert_eq!(push_one().await.word(), "sent");
    provider.refuse_connections(true).await.unwrap();
    provider.kill_connections();
    let first = join_all((0..40).map(|_| push_one())).await;
    assert!(count(&first, "send_failed") > 0, "{platform:?}: {first:?}");
    assert_eq!(count(&first, "sent"), 0);
    until("the breaker is open", async || {
        breaker(world, platform).await == OPEN
    })
    .await;
    let since = Instant::now();
    let refused = join_all((0..40).map(|_| push_one())).await;
    assert!(
        count(&refused, "overloaded") >= 40 - probes(since),
        "{platform:?}, all but a probe: {refused:?}"
    );

    let arrived = provider.requests().total();
    provider.refuse_connections(false).await.unwrap();
    until("a push is let through", async || {
        let answer = push_one().await;
        let is_in_step = answer.word() == "overloaded" && answer.retry_after() <= LONGEST_STEP;
        assert!(is_in_step || answer.word() == "sent", "{platform:?}: {answer:?}");
        !is_in_step
    })
    .await;
    assert_eq!(provider.requests().total(), arrived + 1, "{platform:?}");
    assert_all_sent(&join_all((0..40).map(|_| push_one())).await);
}

// A provider's connections, old and new, carry nothing any more. Pushes to the others don't wait behind hundreds that
// hang there, whose callers are answered by the deadline; when packets arrive again, so do pushes.
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_pushes_into_a_black_hole_hold_up_no_other_provider_and_are_all_answered() {
    let world = world("17s").await;
    let impatient = world.another_relay(options("3s")).await;
    let instances = grown_instances(2);
    let fcm = &world.simulators.fcm;
    assert_all_sent(&send_all(&world, &instances, &pushes(&world, Platform::Android, 2), 1).await);
    let first = impatient
        .push(&instances[0], &push(&world, Platform::Android))
        .await;
    assert_all_sent(&[first]);
    fcm.blackhole(true);
    fcm.blackhole_new_connections(true);
    let lost = pushes(&world, Platform::Android, 400);
    tokio::select! {
        answers = send_all(&world, &instances, &lost, 400) => panic!("the others waited until {answers:?}"),
        () = others_go_on(&world, &instances) => {}
    }
    // By a shorter deadline, so that nobody has to wait for the long one.
    let callers = instances.iter().cycle();
    let lost = callers
        .zip(&lost)
        .map(|(instance, body)| impatient.push(instance, body));
    for answer in join_all(lost).await {
        let in_time = answer.word() == "failed" && answer.body["retryable"] == true;
        let refused = ["send_failed", "overloaded"].contains(&answer.word());
        assert!(in_time || refused, "{answer:?}");
    }
    fcm.blackhole_new_connections(false);
    fcm.blackhole(false);
    until("FCM is used again", async || {
        world
            .relay
            .push(&instances[0], &push(&world, Platform::Android))
            .await
            .word()
            == "sent"
    })
    .await;
}

/// Once the lane of FCM is full of calls that hang, 200 pushes to APNs and WNS.
async fn others_go_on(world: &World, instances: &[Instance]) {
    until("the calls hang", async || {
        world
            .relay
            .metric("relay_lane_in_flight", "provider=\"fcm\"")
            .await
            >= 300.0
    })
    .await;
    let (to_apns, to_wns) = (
        pushes(world, Platform::Ios, 100),
        pushes(world, Platform::Windows, 100),
    );
    let (apns, wns) = join(
        send_all(world, instances, &to_apns, 20),
        send_all(world, instances, &to_wns, 20),
    )
    .await;
    assert_all_sent(&apns);
    assert_all_sent(&wns);
}

// Packets vanish both ways on an open connection: it is the unanswered PING that ends it, long before the pushes'
// own deadline. Those in flight may have been accepted, so they are not sent again; later ones go over a new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_apns_connection_is_replaced_after_a_ping_and_no_push_in_flight_hangs_or_is_doubled() {
    let world = world("17s").await;
    let instance = grown_instance();
    let apns = &world.simulators.apns;
    let first = push(&world, Platform::Ios);
    assert_all_sent(&[world.relay.push(&instance, &first).await]);
    let in_flight = pushes(&world, Platform::Ios, 100);
    apns.script().next(100, Behaviour::never_answer());
    let instances = [instance];
    let freeze = async {
        apns.requests().wait_for(101, DEADLINE).await.unwrap();
        apns.blackhole(true);
    };
    let (answers, ()) = join(send_all(&world, &instances, &in_flight, 100), freeze).await;
    for answer in &answers {
        assert_eq!((answer.word(), answer.reason()), ("failed", "unknown_outcome"));
        assert_eq!(answer.body["retryable"], true);
    }
    until("the connection has ended", async || {
        let ended = "relay_apns_connections_ended_total";
        world.relay.metric(ended, "reason=\"silent\"").await == 1.0
    })
    .await;
    assert_all_sent(&send_all(&world, &instances, &pushes(&world, Platform::Ios, 100), 100).await);
    assert_eq!(apns.requests().total(), 201, "none was sent twice");
    let delivered = apns.inbox().all();
    let old = delivered[0].connection;
    assert!(delivered[1..].iter().all(|delivery| delivery.connection != old));
}

// APNs takes connections and pushes and says nothing, not even how many streams it allows. It costs the pushes that wait
// for it at that moment; whoever comes later is refused at once, and it is found again by itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_apns_that_accepts_connections_and_never_answers_costs_one_wave_of_pushes() {
    let simulators = SimulatorOptions {
        apns: ApnsOptions {
            raised_stream_limit: 1,
            ..ApnsOptions::default()
        },
        ..SimulatorOptions::default()
    };
    let world = World::start_with(simulators, options("3s")).await;
    let instances = grown_instances(1);
    let apns = &world.simulators.apns;
    apns.script().always(Behaviour::never_answer());
    let first = send_all(&world, &instances, &pushes(&world, Platform::Ios, 100), 100).await;
    assert_eq!(count(&first, "sent"), 0);
    // How many of them came before it was given up is the machine's business.
    assert!(
        count(&first, "send_failed") > 0,
        "they were never written: {first:?}"
    );
    until("the breaker is open", async || {
        breaker(&world, Platform::Ios).await == OPEN
    })
    .await;
    let arrived = apns.requests().total();
    let since = Instant::now();
    let later = send_all(&world, &instances, &pushes(&world, Platform::Ios, 100), 100).await;
    // A probe waits for the whole deadline, others come after it: at most one in each second.
    let probes = probes(since);
    assert!(
        count(&later, "overloaded") >= 100 - probes,
        "all but a probe: {later:?}"
    );
    assert!(apns.requests().total() <= arrived + probes as u64);

    apns.script().clear();
    until("APNs is used again", async || {
        let answer = world
            .relay
            .push(&instances[0], &push(&world, Platform::Ios))
            .await;
        answer.word() == "sent"
    })
    .await;
}

/// The most pushes that an open breaker has let through since then: its shortest step is a second.
fn probes(since: Instant) -> usize {
    1 + since.elapsed().as_secs() as usize
}

fn count(answers: &[Answer], word: &str) -> usize {
    answers.iter().filter(|answer| answer.word() == word).count()
}

async fn breaker(world: &World, platform: Platform) -> f64 {
    let provider = match platform {
        Platform::Ios | Platform::Macos => "apns-production",
        Platform::Android => "fcm",
        Platform::Windows => "wns",
    };
    let labels = format!("provider=\"{provider}\"");
    world.relay.metric("relay_breaker_state", &labels).await
}
