//! Servers that belong together.

use std::process::Command;

use super::{PASSWORD, Server, Shape, login};

/// Three masters that share the slots of a Cluster.
pub(crate) struct Cluster {
    nodes: Vec<Server>,
}

const MASTERS: usize = 3;
/// How long its nodes wait for one that says nothing, in milliseconds. Longer than a busy machine holds one up.
pub(super) const NODE_TIMEOUT: &str = "5000";

impl Cluster {
    pub(crate) fn start() -> Self {
        Self::start_with_copies(0)
    }

    /// So many copies of each master, all of which have what it has when this returns.
    pub(crate) fn start_with_copies(copies: usize) -> Self {
        let nodes: Vec<_> = (0..MASTERS * (1 + copies))
            .map(|_| Server::start_with(Shape::Node))
            .collect();
        let cluster = Self { nodes };
        let places: Vec<_> = cluster.nodes.iter().map(Server::place).collect();
        let copies = copies.to_string();
        let mut create = vec!["create", "--cluster-replicas", &copies];
        create.extend(places.iter().map(String::as_str));
        let created = cluster.managing(&create).output().unwrap();
        assert!(created.status.success(), "{created:?}");
        for node in &cluster.nodes {
            node.until("cluster_state:ok", &["CLUSTER", "INFO"]);
            if node.answer(&["ROLE"]).starts_with("slave") {
                node.until("master_link_status:up", &["INFO", "replication"]);
            }
        }
        cluster
    }

    /// `redis-cli --cluster`, which asks for nothing.
    pub(crate) fn managing(&self, what: &[&str]) -> Command {
        let mut command = Command::new("redis-cli");
        command.arg("--cluster").args(what).arg("--cluster-yes");
        command
    }

    pub(crate) fn url(&self) -> String {
        let places: Vec<_> = self.nodes.iter().map(Server::place).collect();
        format!("redis+cluster://{}@{}", login(), places.join(","))
    }

    pub(crate) fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Ends a node at once.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
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
            .map(|_| Server::start_with(Shape::ReplicaOf(master.place)))
            .collect();
        for replica in &replicas {
            replica.until("master_link_status:up", &["INFO", "replication"]);
        }
        let quorum = sentinels / 2 + 1;
        let sentinels: Vec<_> = (0..sentinels)
            .map(|_| Server::start_with(Shape::Sentinel(master.place, quorum)))
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
        let places: Vec<_> = self.sentinels.iter().map(Server::place).collect();
        let (login, places) = (login(), places.join(","));
        format!("redis+sentinel://{login}@{places}/main?sentinel_password={PASSWORD}")
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
        !named.contains(&self.master.port().to_string())
    }
}
