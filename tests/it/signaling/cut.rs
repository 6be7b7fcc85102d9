//! A thousand connections killed at the one moment that matters: the relay has stored, the client doesn't know.

use futures_util::future::join_all;
use serde_json::json;
use sovereign_relay_client::{
    protocol::signal::frame::Opaque,
    signal::connection::{Connection, Sender},
};
use tokio::time::timeout;

use crate::support::{
    DEADLINE,
    answer::Instance,
    cutter::{Cut, Cutter, below},
    peer::{load, resume},
    relay::{Relay, RelayOptions},
    sessions::Made,
    talk::next_message,
    until,
};

/// A connection secret may be resumed sixty times a minute, so each session has fewer cuts.
const CUTS: usize = 50;
const SESSIONS: usize = 20;
/// Connections of the receiver that are cut anywhere at all.
const CUTS_OF_RECEIVER: usize = 20;
const LAST: &str = "the last one";

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sockets_killed_between_storing_and_acknowledging_lose_nothing_and_repeat_nothing() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let cuts = join_all((0..SESSIONS).map(|_| unlucky(&relay, &instance))).await;
    assert_eq!(cuts.into_iter().sum::<usize>(), 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_again_because_its_acknowledgement_was_lost_is_acknowledged_and_not_delivered_again() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let cuts = join_all((0..4).map(|_| forgetful(&relay, &instance))).await;
    assert_eq!(cuts, [CUTS; 4]);
}

/// One session over networks that cut; how often the sender was.
async fn unlucky(relay: &Relay, instance: &Instance) -> usize {
    let session = relay.open_session(instance).await;
    let before_acknowledgement = || Cut::BeforeAcknowledgement(below(2));
    let up = Cutter::start(&session.url, CUTS, before_acknowledgement).await;
    let anywhere = || match below(2) {
        0 => Cut::BytesUp(150 + below(1000)),
        _ => Cut::BytesDown(150 + below(3000)),
    };
    let down = Cutter::start(&session.url, CUTS_OF_RECEIVER, anywhere).await;
    let mut sending = session.open("a", &up.url());
    let receiving = session.open("b", &down.url());
    let sender = sending.sender();
    let talking = async {
        tokio::select! {
            talked = async { tokio::join!(send_until_spared(&sender, &up), hear_all(receiving)) } => talked,
            message = next_message(&mut sending) => panic!("{message:?} from whom?"),
        }
    };
    let (sent, heard) = timeout(DEADLINE * 3, talking).await.expect("all arrives");
    assert_eq!(heard, (1..=sent).map(|n| n.to_string()).collect::<Vec<_>>());
    up.cuts()
}

/// One session whose sender forgets what the relay expects, and says all again that was not acknowledged.
async fn forgetful(relay: &Relay, instance: &Instance) -> usize {
    let session = relay.open_session(instance).await;
    let before_acknowledgement = || Cut::BeforeAcknowledgement(below(2));
    let network = Cutter::start(&session.url, CUTS, before_acknowledgement).await;
    let over_network = Made {
        url: network.url(),
        ..session.clone()
    };
    let (mut b, _) = session.join("b", load(2)).await;
    let (mut attempt, mut acknowledged) = (0, 0);
    while network.cuts() < CUTS {
        attempt += 1;
        let (mut a, _) = over_network.join("a", resume(1, attempt, 0)).await;
        a.messages(acknowledged + 1..=acknowledged + 2).await;
        while let Ok(frame) = a.next_or_end().await {
            let n = frame["n"].as_u64().filter(|_| frame["t"] == "ack");
            acknowledged = n.unwrap_or(acknowledged);
        }
        until("the network has noticed", async || {
            network.cuts() as u64 >= attempt
        })
        .await;
    }
    let (mut a, _) = over_network.join("a", resume(1, attempt + 1, 0)).await;
    let last = acknowledged + 3;
    a.messages(acknowledged + 1..=last).await;
    a.stored(last).await;
    for n in 1..=last {
        let message = b.next_of("msg").await;
        assert_eq!(
            (&message["seq"], &message["d"]),
            (&json!(n), &json!(n.to_string()))
        );
    }
    assert!(b.so_far().await.iter().all(|frame| frame["t"] != "msg"));
    network.cuts()
}

/// Sends a few at a time until no more connections are cut; how many.
async fn send_until_spared(sender: &Sender, network: &Cutter) -> usize {
    let mut sent = 0;
    while network.cuts() < CUTS {
        let mut receipts = Vec::new();
        for _ in 0..1 + below(2) {
            sent += 1;
            receipts.push(sender.send(Opaque::new(sent.to_string())).await.unwrap());
        }
        for receipt in receipts {
            receipt.stored().await.unwrap();
        }
    }
    sender
        .send(Opaque::new(LAST))
        .await
        .unwrap()
        .stored()
        .await
        .unwrap();
    sent
}

async fn hear_all(mut connection: Connection) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        let content = next_message(&mut connection).await;
        if content.expose() == LAST {
            return heard;
        }
        heard.push(content.expose().to_owned());
    }
}
