//! A proxy in front of the relay that the operator forgot to name.

use reqwest::{Method, StatusCode};

use crate::support::{
    answer::Answer,
    relay::{Relay, RelayOptions},
    until,
};

const WARNING: &str = "is not in RELAY_TRUSTED_PROXIES";
const COUNTED: &str = "relay_unnamed_proxy_requests_total";
/// A client's address, as a proxy writes it.
const CLIENT: &str = "203.0.113.77";

async fn by_a_proxy(relay: &Relay, path: &str, header: &str) -> Answer {
    Answer::from(
        relay
            .request(Method::GET, path)
            .header(header, format!("for={CLIENT}")),
    )
    .await
}

#[tokio::test]
async fn a_proxy_on_the_same_machine_that_nobody_named_is_told_of_once_and_counted_and_no_address_is_logged()
{
    for trusted in ["none", "10.0.0.0/8,192.0.2.1"] {
        let mut relay = Relay::start(RelayOptions::new().set("RELAY_TRUSTED_PROXIES", trusted)).await;
        relay.get("/v1/capabilities").await;
        assert_eq!(relay.metric(COUNTED, "").await, 0.0);
        for header in ["x-forwarded-for", "forwarded"] {
            let answer = by_a_proxy(&relay, "/v1/capabilities", header).await;
            assert_eq!(answer.status, StatusCode::OK);
        }
        // A WebSocket's handshake goes another way than the other requests.
        let shake = relay
            .request(Method::GET, "/v1/signal")
            .header("x-forwarded-for", CLIENT)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")
            .header(
                "sec-websocket-protocol",
                sovereign_relay_protocol::signal::SUBPROTOCOL,
            );
        assert_eq!(
            shake.send().await.unwrap().status(),
            StatusCode::SWITCHING_PROTOCOLS
        );
        let line = relay.logged(WARNING).await;
        assert!(
            line.contains("WARN") && line.contains("share its limits"),
            "{line}"
        );
        until("all are counted", async || relay.metric(COUNTED, "").await == 3.0).await;
        let log = relay.log();
        assert_eq!(log.matches(WARNING).count(), 1, "{log}");
        assert!(!log.contains(CLIENT), "{log}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_named_or_trusted_by_default_is_not_told_of() {
    for trusted in [None, Some("127.0.0.1")] {
        let options = RelayOptions::new();
        let relay = Relay::start(match trusted {
            Some(trusted) => options.set("RELAY_TRUSTED_PROXIES", trusted),
            None => options,
        })
        .await;
        by_a_proxy(&relay, "/v1/capabilities", "x-forwarded-for").await;
        assert_eq!(relay.metric(COUNTED, "").await, 0.0);
        assert!(!relay.log().contains(WARNING));
    }
}
