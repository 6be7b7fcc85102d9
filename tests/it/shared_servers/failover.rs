//! A master dies, is relieved, or is given up by Sentinels, and what was acknowledged had a copy.

use super::*;
use crate::support::peer::load;

/// Copies, one of which may take over and still has one of its own; and Sentinels who decide it.
const COPIES: usize = 2;
const SENTINELS: usize = 3;

fn guarded() -> Watched {
    let watched = Watched::start_with(COPIES, SENTINELS);
    for server in watched.servers() {
        server.answer(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    }
    watched
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_master_is_killed_under_traffic_all_that_its_copies_have_arrives_once_and_in_order() {
    let mut watched = guarded();
    let replicas = Replicas::of(&watched.url()).await;
    replicas
        .talk_while(async |_| {
            falls_silent(&watched.master, watched.replicas.iter()).await;
            watched.master.kill();
            moved(&watched).await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_writes_are_paused_first_a_planned_failover_loses_nothing() {
    let watched = guarded();
    let replicas = Replicas::of(&watched.url()).await;
    replicas
        .talk_while(async |_| {
            watched.master.answer(&["CLIENT", "PAUSE", "60000", "WRITE"]);
            watched.fail_over();
            moved(&watched).await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_leave_a_master_that_sentinels_gave_up_though_it_still_serves_them() {
    let watched = Watched::start_with(COPIES, SENTINELS);
    let mut replicas = Replicas::of(&watched.url()).await;
    let session = replicas.session().await;
    let [mut a, mut b] = pair(&replicas, &session, load(1), load(2)).await;
    send_until_stored(&mut a, 1).await;
    hears(&mut b, 1).await;
    copied(&watched);
    shut_out_sentinels(&watched.master);
    moved(&watched).await;
    for relay in &mut replicas.relays {
        relay.logged("sentinels name another master").await;
    }
    // Each replica has two connections, of which one may have heard it first.
    until("all have left", async || {
        let channels = watched
            .master
            .answer(&["-a", "secret", "PUBSUB", "CHANNELS", "relay:*"]);
        channels.trim().is_empty()
    })
    .await;
    assert!(
        watched
            .master
            .answer(&["-a", "secret", "ROLE"])
            .starts_with("master")
    );
    send_until_stored(&mut a, 2).await;
    hears(&mut b, 2).await;
}

/// Whoever is connected stays; Sentinels can't get in again, and take the server for dead.
fn shut_out_sentinels(master: &Server) {
    master.answer(&["CONFIG", "SET", "requirepass", "secret"]);
    for line in master.answer(&["-a", "secret", "CLIENT", "LIST"]).lines() {
        if line.contains("name=sentinel-") {
            let id = line.split_once("id=").unwrap().1.split(' ').next().unwrap();
            master.answer(&["-a", "secret", "CLIENT", "KILL", "ID", id]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_must_have_a_copy_and_has_none_acknowledges_nothing_and_all_arrives_after_it_died() {
    let mut watched = guarded();
    let replicas = Replicas::of(&watched.url()).await;
    let session = replicas.session().await;
    let [mut a, mut b] = pair(&replicas, &session, load(1), load(2)).await;
    send_until_stored(&mut a, 1).await;
    hears(&mut b, 1).await;
    copied(&watched);
    cut_off(&watched);
    a.message(2, "2").await;
    let refused = a.next_of("err").await;
    assert_eq!(
        (&refused["code"], &refused["n"]),
        (&"unavailable".into(), &2.into())
    );
    die(&mut watched).await;
    for n in 2..=3 {
        send_until_stored(&mut a, n).await;
        hears(&mut b, n).await;
    }
}
