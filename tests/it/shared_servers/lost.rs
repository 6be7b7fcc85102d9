//! A master that may write without a copy dies with what only it had: whoever was told something that is gone is told
//! so, and whoever was not goes on.

use sovereign_relay_client::{
    protocol::signal::frame::Opaque,
    signal::event::{ConnectionEvent, Ended},
};

use super::*;
use crate::support::peer::{load, resume};

const OUT_OF_STEP: u16 = 4500;
const NO_SUCH_SESSION: u16 = 4404;

/// A server that had copies of all, then has writes to itself.
async fn start() -> (Watched, Replicas) {
    let watched = Watched::start();
    let replicas = Replicas::of(&watched.url()).await;
    (watched, replicas)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_a_failover_lost_close_the_silent_sender_and_the_receiver_that_has_them() {
    let (mut watched, replicas) = start().await;
    let (session, untouched) = (replicas.session().await, replicas.session().await);
    let [mut a, mut b] = pair(&replicas, &session, load(1), load(2)).await;
    let [mut c, mut d] = pair(&replicas, &untouched, load(1), load(2)).await;
    for (sender, receiver) in [(&mut a, &mut b), (&mut c, &mut d)] {
        send_until_stored(sender, 1).await;
        hears(receiver, 1).await;
    }
    copied(&watched);
    cut_off(&watched);
    send_until_stored(&mut a, 2).await;
    hears(&mut b, 2).await;
    die(&mut watched).await;

    // Neither says anything.
    assert_eq!((a.end().await, b.end().await), (OUT_OF_STEP, OUT_OF_STEP));
    let (_a, welcome) = replicas.at(0, &session).join("a", resume(1, 2, 0)).await;
    assert_eq!(welcome["next"], 2, "less than what was acknowledged");
    let refusal = replicas.at(1, &session).refusal("b", resume(2, 2, 2)).await;
    assert_eq!(refusal, NO_SUCH_SESSION);
    // Where nothing was lost the same sockets carry on.
    send_until_stored(&mut c, 2).await;
    hears(&mut d, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_acknowledged_message_a_failover_lost_is_told_that_it_is_out_of_step() {
    let (mut watched, replicas) = start().await;
    let session = replicas.session().await;
    let mut connection = session.open("a", &replicas.at(1, &session).url);
    let sender = connection.sender();
    stored(&sender, "kept").await;
    copied(&watched);
    cut_off(&watched);
    stored(&sender, "lost").await;
    die(&mut watched).await;
    loop {
        match connection.next().await.expect("an end") {
            ConnectionEvent::Ended(ended) => break assert_eq!(ended, Ended::OutOfStep),
            ConnectionEvent::Interrupted { .. } => sender.wake(),
            _ => {}
        }
    }
}

async fn stored(sender: &sovereign_relay_client::signal::connection::Sender, content: &str) {
    let receipt = sender.send(Opaque::new(content)).await.unwrap();
    receipt.stored().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_that_a_failover_lost_is_made_again_and_a_session_that_it_lost_is_over() {
    let (mut watched, replicas) = start().await;
    let session = replicas.session().await;
    let [mut a, mut b] = pair(&replicas, &session, load(1), load(2)).await;
    send_until_stored(&mut a, 1).await;
    hears(&mut b, 1).await;
    copied(&watched);
    cut_off(&watched);
    let (mut resumed, welcome) = replicas.at(1, &session).join("a", resume(1, 2, 0)).await;
    assert_eq!(welcome["next"], 2);
    let lost = replicas.session().await;
    let (mut alone, _) = replicas.at(1, &lost).join("a", load(1)).await;
    die(&mut watched).await;

    assert_eq!(resumed.end().await, OUT_OF_STEP);
    let (mut again, welcome) = replicas.at(1, &session).join("a", resume(1, 3, 0)).await;
    assert_eq!(welcome["next"], 2);
    send_until_stored(&mut again, 2).await;
    hears(&mut b, 2).await;
    assert_eq!(alone.end().await, NO_SUCH_SESSION);
    assert_eq!(
        replicas.at(0, &lost).refusal("a", resume(1, 2, 0)).await,
        NO_SUCH_SESSION
    );
}
