//! Servers that belong together.

use std::process::Command;

use super::{Server, Shape, login};

/// Three masters that share the slots of a Cluster.
pub(crate) struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let cluster = Self {
            nodes: (0..3).map(|_| Server::start_with(Shape::Node)).collect(),
        };
        let places = cluster
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port));
        let created = Command::new("redis-cli")
            .args(["--cluster", "create", "--cluster-yes"])
            .args(places)
            .output()
            .unwrap();
        assert!(created.status.success(), "{created:?}");
        for node in &cluster.nodes {
            node.until("cluster_state:ok", &["CLUSTER", "INFO"]);
        }
        cluster
    }

    pub(crate) fn url(&self) -> String {
        let places = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
        format!(
            "redis+cluster://{}@{}",
            login(),
            places.collect::<Vec<_>>().join(",")
        )
    }

    pub(crate) fn nodes(&self) -> &[Server] {
        &self.nodes
    }
}

/// A master with replicas, and Sentinels that make a replica the master when the other dies.
pub(crate) struct Watched {
    pub(crate) master: Server,
    pub(crate) replicas: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Watched {
    /// One replica, one Sentinel.
    pub(crate) fn start() -> Self {
        Self::start_with(1, 1)
    }

    /// So many of each; Sentinels are all of one mind when this returns.
    pub(crate) fn start_with(replicas: usize, sentinels: usize) -> Self {
        let master = Server::start_with(Shape::Master);
        let replicas: Vec<_> = (0..replicas)
            .map(|_| Server::start_with(Shape::ReplicaOf(master.port)))
            .collect();
        for replica in &replicas {
            replica.until("master_link_status:up", &["INFO", "replication"]);
        }
        let quorum = sentinels / 2 + 1;
        let sentinels: Vec<_> = (0..sentinels)
            .map(|_| Server::start_with(Shape::Sentinel(master.port, quorum)))
            .collect();
        for sentinel in &sentinels {
            let master = ["SENTINEL", "MASTER", "main"];
            sentinel.until(&format!("num-slaves\n{}\n", replicas.len()), &master);
            sentinel.until(
                &format!("num-other-sentinels\n{}\n", sentinels.len() - 1),
                &master,
            );
        }
        Self {
            master,
            replicas,
            sentinels,
        }
    }

    pub(crate) fn url(&self) -> String {
        let places = self
            .sentinels
            .iter()
            .map(|sentinel| format!("127.0.0.1:{}", sentinel.port));
        format!(
            "redis+sentinel://{}@{}/main",
            login(),
            places.collect::<Vec<_>>().join(",")
        )
    }

    /// The master and all replicas.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(&self.master).chain(&self.replicas)
    }

    /// Makes a replica the master while the other lives.
    pub(crate) fn fail_over(&self) {
        assert_eq!(
            self.sentinels[0].answer(&["SENTINEL", "FAILOVER", "main"]).trim(),
            "OK"
        );
    }

    /// Whether a Sentinel names another master than the first.
    pub(crate) fn has_moved(&self) -> bool {
        let named = self.sentinels[0].answer(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"]);
        !named.contains(&self.master.port.to_string())
    }
}
