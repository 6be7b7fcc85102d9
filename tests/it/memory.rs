//! The whole process's memory under callers that send half of a body and then nothing.

use reqwest::Method;
use serde_json::json;
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::SimulatorOptions;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::support::{
    grown::grown_instances,
    relay::{Instance, Relay, RelayOptions},
    world::World,
};

const MIB: usize = 1024 * 1024;
/// What batches may hold together.
const BATCHES: usize = 96 * MIB;

/// A batch that announces 4 MiB and stops after 3.
async fn half_sent(relay: &Relay, instance: &Instance, three_mib: &[u8]) -> TcpStream {
    let address = relay.url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/push/batch HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        instance.key,
        4 * MIB
    );
    // The relay may have refused it before everything was sent.
    let _ = async {
        socket.write_all(head.as_bytes()).await?;
        socket.write_all(three_mib).await
    }
    .await;
    socket
}

#[tokio::test]
async fn hundreds_of_half_sent_batches_take_no_more_than_their_bound_and_single_pushes_go_on() {
    let options = RelayOptions::new().with_grown_instances();
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let instances = grown_instances(20);
    let before_kib = world.relay.resident_kib();
    let body = vec![b' '; 3 * MIB];
    let mut sockets = Vec::new();
    for nth in 0..200 {
        sockets.push(half_sent(&world.relay, &instances[nth % instances.len()], &body).await);
    }
    let held = world.relay.metric("relay_request_body_bytes", "").await;
    assert!(held <= BATCHES as f64, "{held}");
    let refused = world
        .relay
        .metric("relay_request_bodies_refused_total", "relay")
        .await;
    assert!(refused > 0.0, "600 MiB did not fit");
    let grown_kib = world.relay.resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < 2 * BATCHES as u64 / 1024, "grown by {grown_kib} KiB");
    let push = json!({
        "platform": "ios",
        "deviceToken": world.address(Platform::Ios),
        "encryptedPayload": "sealed",
    });
    assert_eq!(world.relay.push(&instances[0], &push).await.word(), "sent");
    let health = world.relay.request(Method::GET, "/livez").send().await.unwrap();
    assert_eq!(health.status(), 200);
}

/// The most resident memory the process ever had.
fn peak_kib(relay: &Relay) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", relay.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[tokio::test]
async fn a_batch_of_many_tiny_or_deeply_filled_values_takes_little_more_memory_than_its_bytes() {
    let options = RelayOptions::new().with_grown_instances();
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let instance = &grown_instances(1)[0];
    let filled = |unit: &str| unit.repeat((4 * MIB - 100) / unit.len());
    let before_kib = peak_kib(&world.relay);
    for body in [
        format!("{{\"messages\":[{}{{}}]}}", filled("{},")),
        format!("{{\"messages\":[[{}0]]}}", filled("0,")),
        format!("{{\"messages\":[{{\"deviceToken\":[{}0]}}]}}", filled("0,")),
        format!("{{\"messages\":[{{\"unknown\":[{}0]}}]}}", filled("0,")),
    ] {
        let request = world.relay.request(Method::POST, "/v1/push/batch");
        let request = request
            .bearer_auth(&instance.key)
            .header("content-type", "application/json");
        let status = request.body(body).send().await.unwrap().status();
        assert!(status == 400 || status == 200, "{status}");
    }
    let grown_kib = peak_kib(&world.relay) - before_kib;
    assert!(grown_kib < 40 * 1024, "grown by {grown_kib} KiB");
}
