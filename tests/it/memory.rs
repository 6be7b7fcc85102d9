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
