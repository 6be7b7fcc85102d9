//! A thousand connections that are cut at random moments, one after the other, at replicas chosen at random.

use serde_json::json;
use tokio::sync::watch;

use super::Place;
use crate::support::{
    cutter::below,
    peer::{Peer, resume},
    redis::Server,
    relay::RelayOptions,
};

const CUTS: u64 = 1000;
const REPLICAS: usize = 3;
const LAST: &str = "the last one";

/// When the sender's connection is cut.
enum Moment {
    /// Right after the write.
    AtOnce,
    /// When the first message was acknowledged; the others may be under way.
    Acknowledged,
    /// When the other side has them all, and no acknowledgement was read: the append is over, the news of it is not.
    Heard,
}

fn moment() -> Moment {
    match below(3) {
        0 => Moment::AtOnce,
        1 => Moment::Acknowledged,
        _ => Moment::Heard,
    }
}

/// Without goodbye; at random also without the end of the stream, so that the relay finds the connection reset.
fn cut(peer: Peer) {
    if below(2) == 0 {
        peer.socket.get_ref().set_zero_linger().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_over_a_thousand_connections_cut_between_append_and_acknowledgement_arrives_once_and_in_order()
 {
    let options = RelayOptions::new()
        .set("RELAY_SIGNAL_RESUMES_PER_MINUTE", "100000")
        .set("RELAY_SIGNAL_MESSAGES_PER_SECOND", "10000")
        .set("RELAY_SIGNAL_BURST", "10000")
        .set("RELAY_SIGNAL_SESSION_MESSAGES", "10000");
    let mut place = Place::with(Server::start(), REPLICAS, options).await;
    let settings = json!({ "e2e": "optional", "ttlSeconds": 600 });
    place.session = place.replicas[0].session(&place.instance, settings).await;
    let (heard, hears) = watch::channel(0);
    let ((sent, unknown), ()) = tokio::join!(send(&place, hears), hear(&place, &heard));
    assert_eq!(*heard.borrow(), sent);
    // Whose sender learned only from the next welcome that something was stored.
    assert!(unknown >= usize::try_from(CUTS / 4).unwrap(), "{unknown}");
}

/// How many messages there were, and how many cuts left the sender in doubt of a message that was stored.
async fn send(place: &Place, mut heard: watch::Receiver<u64>) -> (u64, usize) {
    let (mut known, mut unknown) = (0, 0);
    for attempt in 1..=CUTS {
        let (mut a, welcome) = place.join(below(REPLICAS), "a", resume(1, attempt, 0)).await;
        let next = welcome["next"].as_u64().unwrap();
        assert!(
            next > known,
            "what was acknowledged is stored: {next} after {known}"
        );
        unknown += usize::from(next > known + 1);
        known = next - 1;
        let last = known + 1 + below(3) as u64;
        a.messages(next..=last).await;
        match moment() {
            Moment::AtOnce => {}
            Moment::Acknowledged => known = a.next_of("ack").await["n"].as_u64().unwrap(),
            Moment::Heard => {
                heard.wait_for(|heard| *heard >= last).await.unwrap();
            }
        }
        cut(a);
    }
    let (mut a, welcome) = place.join(0, "a", resume(1, CUTS + 1, 0)).await;
    let last = welcome["next"].as_u64().unwrap();
    a.message(last, LAST).await;
    a.stored(last).await;
    (last, unknown)
}

/// Everything to the last, over connections that are cut as well, though not as often.
async fn hear(place: &Place, heard: &watch::Sender<u64>) {
    for attempt in 1.. {
        let last = *heard.borrow();
        let (mut b, _) = place.join(below(REPLICAS), "b", resume(2, attempt, last)).await;
        for seq in last + 1..=last + 1 + below(40) as u64 {
            let message = b.next_of("msg").await;
            assert_eq!(message["seq"], seq);
            heard.send_replace(seq);
            if message["d"] == LAST {
                return;
            }
            assert_eq!(message["d"], seq.to_string());
            b.ack(seq).await;
        }
        cut(b);
    }
}
