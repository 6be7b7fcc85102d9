//! Sockets that freeze, refuse and break.

use std::time::Duration;

use crate::tests::kit::{Apns, SOON, dial, http, simulators};

#[tokio::test]
async fn a_black_hole_answers_nothing_closes_nothing_and_lets_go_again() {
    let simulators = simulators().await;
    let frozen = Apns::connect(&simulators, &simulators.apns).await;
    frozen.push("00ff").await.unwrap();
    simulators.apns.blackhole(true);
    let push = frozen.push("aa");
    tokio::pin!(push);
    assert!(
        tokio::time::timeout(Duration::from_millis(150), &mut push)
            .await
            .is_err()
    );
    assert!(!frozen.connection.is_finished(), "half-open, not closed");
    let fresh = Apns::connect(&simulators, &simulators.apns).await;
    assert_eq!(
        fresh.push("bb").await.unwrap().status,
        200,
        "new connections work"
    );
    simulators.apns.blackhole(false);
    assert_eq!(
        tokio::time::timeout(SOON, push).await.unwrap().unwrap().status,
        200
    );
    let tokens = simulators
        .apns
        .inbox()
        .all()
        .into_iter()
        .map(|delivery| delivery.token);
    assert_eq!(tokens.collect::<Vec<_>>(), ["00ff", "bb", "aa"]);
    simulators.stop().await;
}

#[tokio::test]
async fn new_connections_can_be_black_holed_before_their_handshake() {
    let simulators = simulators().await;
    simulators.apns.blackhole_new_connections(true);
    let ca_pem = simulators.ca_pem.clone();
    let dialing = dial(&ca_pem, simulators.apns.port(), b"h2");
    tokio::pin!(dialing);
    assert!(
        tokio::time::timeout(Duration::from_millis(150), &mut dialing)
            .await
            .is_err()
    );
    simulators.apns.blackhole_new_connections(false);
    simulators.apns.blackhole(false);
    tokio::time::timeout(SOON, dialing).await.unwrap().unwrap();
    simulators.stop().await;
}

#[tokio::test]
async fn refused_connections_fail_to_dial_and_work_later_on_the_same_port() {
    let simulators = simulators().await;
    let port = simulators.apns.port();
    let client = Apns::connect(&simulators, &simulators.apns).await;
    simulators.apns.refuse_connections(true).await.unwrap();
    let error = dial(&simulators.ca_pem, port, b"h2").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(
        client.push("00ff").await.unwrap().status,
        200,
        "open connections stay"
    );
    simulators.apns.kill_connections();
    tokio::time::timeout(SOON, client.connection)
        .await
        .unwrap()
        .unwrap()
        .ok();
    simulators.apns.refuse_connections(false).await.unwrap();
    assert_eq!(simulators.apns.port(), port);
    let client = Apns::connect(&simulators, &simulators.apns).await;
    assert_eq!(client.push("00ff").await.unwrap().status, 200);
    simulators.stop().await;
}

#[tokio::test]
async fn one_providers_black_hole_leaves_the_others_alone() {
    let simulators = simulators().await;
    let (frozen, alive) = (http(&simulators), http(&simulators));
    let probe = |client: &reqwest::Client, endpoint: String| client.get(endpoint).send();
    probe(&frozen, simulators.wns.endpoint()).await.unwrap();
    simulators.wns.blackhole(true);
    simulators.wns.blackhole_new_connections(true);
    let in_vain = tokio::time::timeout(
        Duration::from_millis(150),
        probe(&frozen, simulators.wns.endpoint()),
    );
    assert!(in_vain.await.is_err());
    assert_eq!(
        probe(&alive, simulators.fcm.endpoint()).await.unwrap().status(),
        404
    );
    simulators.stop().await;
}

#[tokio::test]
async fn apns_speaks_http2_only() {
    let simulators = simulators().await;
    assert!(
        dial(&simulators.ca_pem, simulators.apns.port(), b"http/1.1")
            .await
            .is_err()
    );
    assert!(
        dial(&simulators.ca_pem, simulators.wns.port(), b"h2")
            .await
            .is_err(),
        "and WNS HTTP/1.1 only"
    );
    simulators.stop().await;
}

#[tokio::test]
async fn stopping_closes_every_connection() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    client.push("00ff").await.unwrap();
    let port = simulators.apns.port();
    simulators.stop().await;
    tokio::time::timeout(SOON, client.connection)
        .await
        .unwrap()
        .unwrap()
        .ok();
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
}
