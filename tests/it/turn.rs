//! Vended TURN credentials against a real coturn that runs with the sample configuration.

use std::{net::Ipv4Addr, time::SystemTime};

use sovereign_relay::turn::{Ice, TurnServers};
use sovereign_relay_protocol::{limits::TURN_SECONDS, redacted::Redacted, time::UnixMillis};

use crate::support::{turn_client::TurnClient, turn_server::TurnServer};

const OLD: &str = "the earlier secret of the TURN server";
const NEW: &str = "the secret that replaces the earlier one";
const FORBIDDEN: u16 = 403;
const UNAUTHORIZED: u16 = 401;

fn servers(secret: &str) -> TurnServers {
    TurnServers {
        stun: Vec::new(),
        turn: vec!["turn:127.0.0.1".to_owned()],
        secret: Redacted::new(secret),
    }
}

fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    UnixMillis(u64::try_from(since.as_millis()).unwrap())
}

/// When credentials were made that end so many seconds from now.
fn ending_in(seconds: i64) -> UnixMillis {
    let made = i64::try_from(now().seconds() - TURN_SECONDS).unwrap() + seconds;
    UnixMillis(u64::try_from(made).unwrap() * 1000)
}

async fn client(server: &TurnServer, ice: &Ice) -> TurnClient {
    let ice = &ice.servers[0];
    let (username, credential) = (ice.username.as_ref().unwrap(), ice.credential.as_ref().unwrap());
    server.client(username, credential).await
}

#[tokio::test]
async fn vended_credentials_allocate_until_they_end_and_not_after() {
    let server = TurnServer::start(&[NEW]);
    for (made, outcome) in [
        (now(), Ok(())),
        (ending_in(60), Ok(())),
        (ending_in(-2), Err(UNAUTHORIZED)),
        (ending_in(-3600), Err(UNAUTHORIZED)),
    ] {
        let mut client = client(&server, &servers(NEW).vend("a-slot", made)).await;
        assert_eq!(client.allocate().await, outcome, "{made:?}");
    }
}

#[tokio::test]
async fn both_secrets_of_a_rotation_allocate_and_a_strangers_does_not() {
    let server = TurnServer::start(&[OLD, NEW]);
    for (secret, outcome) in [
        (OLD, Ok(())),
        (NEW, Ok(())),
        ("a secret that nobody shares", Err(UNAUTHORIZED)),
    ] {
        let mut client = client(&server, &servers(secret).vend("a-slot", now())).await;
        assert_eq!(client.allocate().await, outcome, "{secret}");
    }
}

#[tokio::test]
async fn a_credential_holds_for_its_username_alone() {
    let server = TurnServer::start(&[NEW]);
    let [mine, other] = ["mine", "other"].map(|user| servers(NEW).vend(user, now()).servers.remove(0));
    let mut client = server
        .client(&other.username.unwrap(), &mine.credential.unwrap())
        .await;
    assert_eq!(client.allocate().await, Err(UNAUTHORIZED));
}

#[tokio::test]
async fn peers_on_private_networks_are_refused_and_others_are_not() {
    let server = TurnServer::start(&[NEW]);
    let mut client = client(&server, &servers(NEW).vend("a-slot", now())).await;
    assert_eq!(client.allocate().await, Ok(()));
    for peer in [
        "10.0.0.1",
        "10.255.255.255",
        "127.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.254",
        "192.168.1.1",
        "0.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
    ] {
        let peer: Ipv4Addr = peer.parse().unwrap();
        assert_eq!(client.permit(peer).await, Err(FORBIDDEN), "{peer}");
    }
    for peer in ["9.9.9.9", "172.32.0.1", "11.0.0.1"] {
        assert_eq!(client.permit(peer.parse().unwrap()).await, Ok(()), "{peer}");
    }
}
