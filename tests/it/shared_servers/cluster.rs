//! Slots move from node to node of a Cluster, as `redis-cli --cluster reshard` moves them: those of live sessions.

use super::*;
use crate::support::redis::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn slots_of_live_sessions_move_to_other_nodes_under_traffic_and_everything_arrives_once_and_in_order() {
    let cluster = Cluster::start();
    let replicas = Replicas::of(&cluster.url()).await;
    replicas
        .talk_while(async |sessions| {
            let keys = sessions
                .iter()
                .map(|session| format!("relay:session:{{{}}}", session.id));
            for key in keys.chain(["relay:{replicas}:heard".to_owned()]) {
                reshard(cluster.nodes(), &key).await;
            }
        })
        .await;
}

/// Moves the slot of a key from the node that has it to the next one.
async fn reshard(nodes: &[Server], key: &str) {
    let slot = nodes[0].answer(&["CLUSTER", "KEYSLOT", key]);
    let slot = slot.trim();
    let holds = |node: &Server| node.answer(&["CLUSTER", "COUNTKEYSINSLOT", slot]).trim() != "0";
    let source = nodes.iter().position(holds).expect("a node has it");
    let (source, target) = (&nodes[source], &nodes[(source + 1) % nodes.len()]);
    let [source_id, target_id] = [source, target].map(|node| node.answer(&["CLUSTER", "MYID"]));
    let set = |node: &Server, state, id: &str| {
        let answer = node.answer(&["CLUSTER", "SETSLOT", slot, state, id.trim()]);
        assert_eq!(answer.trim(), "OK");
    };
    set(target, "IMPORTING", &source_id);
    set(source, "MIGRATING", &target_id);
    // Some may be added until the last one is gone.
    until("the slot is empty", async || {
        for key in source.answer(&["CLUSTER", "GETKEYSINSLOT", slot, "100"]).lines() {
            migrate(source, target, key);
        }
        !holds(source)
    })
    .await;
    assert!(holds(target), "{key} is there");
    for node in [target, source].into_iter().chain(nodes) {
        set(node, "NODE", &target_id);
    }
}

fn migrate(source: &Server, target: &Server, key: &str) {
    let answer = source.answer(&[
        "MIGRATE",
        "127.0.0.1",
        &target.port().to_string(),
        key,
        "0",
        "60000",
    ]);
    // One that was emptied in the meantime is no more.
    assert!(matches!(answer.trim(), "OK" | "NOKEY"), "{answer}");
}
