//! Replicas around one Redis, as processes of their own.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::{instance, process::RelayProcess, redis::RedisProcess};

/// Running replicas.
pub(super) struct Fleet {
    pub(super) replicas: Vec<RelayProcess>,
    /// Signs the keys of their instances.
    pub(super) secret: String,
    environment: Vec<(String, String)>,
    directory: PathBuf,
}

impl Fleet {
    /// Starts so many, with a folder for each.
    pub(super) async fn start(redis: &RedisProcess, count: usize, directory: &Path) -> anyhow::Result<Self> {
        let secret = instance::random_secret();
        let environment = vec![
            ("RELAY_ENROLLMENT_SECRET".to_owned(), secret.clone()),
            ("REDIS_URL".to_owned(), redis.url.clone()),
        ];
        let mut fleet = Self {
            replicas: Vec::new(),
            secret,
            environment,
            directory: directory.to_owned(),
        };
        for number in 0..count {
            let replica = fleet.replica(number).await?;
            fleet.replicas.push(replica);
        }
        Ok(fleet)
    }

    /// Where sessions are made.
    pub(super) fn url(&self) -> anyhow::Result<&str> {
        Ok(&self.replicas.first().context("no replica")?.url)
    }

    /// kill -9 for one of them, and a new one in its place.
    pub(super) async fn replace(&mut self, number: usize) -> anyhow::Result<()> {
        self.replicas.remove(number).kill().await?;
        let replica = self.replica(number).await?;
        self.replicas.insert(number, replica);
        Ok(())
    }

    async fn replica(&self, number: usize) -> anyhow::Result<RelayProcess> {
        let folder = self.directory.join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        RelayProcess::start(&self.environment, &folder).await
    }
}
