//! A Cluster under traffic: nodes give their slots away, those of live sessions among them, and masters die.

use super::*;
use crate::support::redis::Cluster;

/// Two, so that the one that is promoted still has one.
const COPIES: usize = 2;
/// All there are.
const SLOTS: &str = "16384";
/// One of the keys that all replicas share, in the slot of the records.
const RECORDS: &str = "relay:{records}:changes";

#[tokio::test(flavor = "multi_thread")]
async fn nodes_give_all_their_slots_away_under_traffic_and_everything_arrives_once_and_in_order() {
    let cluster = Cluster::start();
    let replicas = Replicas::of(&cluster.url()).await;
    replicas
        .talk_while(async |sessions| {
            let keys = [RECORDS, &session_key(&sessions[0])];
            let emptied = keys.map(|key| master_of(&cluster, key));
            let taking = (0..3).find(|node| !emptied.contains(node)).unwrap();
            for (key, emptied) in keys.into_iter().zip(emptied) {
                if master_of(&cluster, key) != taking {
                    give_away(&cluster, emptied, taking).await;
                }
                assert_eq!(master_of(&cluster, key), taking);
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_masters_of_a_cluster_are_killed_under_traffic_all_that_copies_have_arrives_once_and_in_order() {
    let mut cluster = Cluster::start_with_copies(COPIES);
    for node in cluster.nodes() {
        node.answer(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    }
    let replicas = Replicas::of(&cluster.url()).await;
    replicas
        .talk_while(async |sessions| {
            for key in [RECORDS, &session_key(&sessions[0])] {
                // After the first death the others may have to hear that the Cluster is whole again, and whom to copy.
                until("each slot has a master with a copy", async || {
                    serving(&cluster, key).is_some_and(|master| copies_of(&cluster, master).next().is_some())
                })
                .await;
                let dying = master_of(&cluster, key);
                let copies = copies_of(&cluster, dying);
                falls_silent(&cluster.nodes()[dying], copies).await;
                cluster.kill(dying);
                until("a copy took over", async || serving(&cluster, key).is_some()).await;
            }
        })
        .await;
}

/// `redis-cli` moves all slots of a node, which becomes a copy of the other.
async fn give_away(cluster: &Cluster, from: usize, to: usize) {
    let nodes = cluster.nodes();
    let [from_id, to_id] = [from, to].map(|node| nodes[node].answer(&["CLUSTER", "MYID"]));
    let reshard = cluster.managing(&[
        "reshard",
        &nodes[to].place(),
        "--cluster-from",
        from_id.trim(),
        "--cluster-to",
        to_id.trim(),
        "--cluster-slots",
        SLOTS,
    ]);
    let moved = tokio::process::Command::from(reshard).output().await.unwrap();
    assert!(moved.status.success(), "{moved:?}");
}

fn session_key(session: &Made) -> String {
    format!("relay:session:{{{}}}", session.id)
}

fn master_of(cluster: &Cluster, key: &str) -> usize {
    serving(cluster, key).expect("a master of each slot")
}

/// Others, and copies, say where to ask.
fn serving(cluster: &Cluster, key: &str) -> Option<usize> {
    let answers = |node: &Server| node.answer(&["EXISTS", key]).trim().parse::<u64>().is_ok();
    cluster.nodes().iter().position(answers)
}

/// Those that are connected to it.
fn copies_of(cluster: &Cluster, master: usize) -> impl Iterator<Item = &Server> + Clone {
    let port = format!("master_port:{}\r", cluster.nodes()[master].port());
    let is_copy = |node: &&Server| {
        let told = node.answer(&["INFO", "replication"]);
        told.contains(&port) && told.contains("master_link_status:up")
    };
    let copies: Vec<_> = cluster.nodes().iter().filter(is_copy).collect();
    copies.into_iter()
}
