//! An authority on a real store in a temporary directory.

use std::time::Duration;

use sovereign_relay_protocol::time::UnixMillis;
use tempfile::TempDir;

use super::{super::*, fragile::FragileStore};
use crate::{
    entropy::SystemEntropy,
    store::embedded::{DataDir, EmbeddedStore},
};

pub(crate) const SECRET: &str = "an enrollment secret of 32 bytes.";
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn at(offset: Duration) -> Now {
    Now {
        mono: Duration::ZERO,
        unix: UnixMillis(1_800_000_000_000),
    }
    .plus(offset)
}

/// An authority on a store of its own that can be made to fail.
pub(crate) struct Kit {
    pub(crate) authority: Arc<Authority>,
    pub(crate) store: Arc<FragileStore>,
    pub(crate) directory: TempDir,
}

impl Kit {
    pub(crate) async fn new() -> Self {
        Self::with(EnrollmentMode::Open, &[SECRET]).await
    }

    /// The first secret signs.
    pub(crate) async fn with(mode: EnrollmentMode, secrets: &[&str]) -> Self {
        Self::on(tempfile::tempdir().unwrap(), mode, secrets).await
    }

    pub(crate) async fn on(directory: TempDir, mode: EnrollmentMode, secrets: &[&str]) -> Self {
        let embedded = EmbeddedStore::open(DataDir::open(directory.path()).unwrap()).unwrap();
        let store = Arc::new(FragileStore::new(embedded));
        let mut secrets = secrets.iter().map(|secret| Redacted::new(*secret));
        let secrets = secrets
            .next()
            .map(|current| Secrets::new(current, secrets.collect()).unwrap());
        let parts = Parts {
            store: store.clone(),
            secrets,
            mode,
            entropy: Arc::new(SystemEntropy),
        };
        let authority = Arc::new(Authority::open(parts).await.unwrap());
        Self {
            authority,
            store,
            directory,
        }
    }

    pub(crate) async fn restart(self, secrets: &[&str]) -> Self {
        drop((self.authority, self.store));
        Self::on(self.directory, EnrollmentMode::Open, secrets).await
    }

    pub(crate) async fn enroll(&self) -> (InstanceId, Redacted) {
        let answer = self
            .authority
            .enroll(enrollment(None), at(Duration::ZERO))
            .await
            .unwrap();
        (answer.instance_id, Redacted::new(answer.instance_key))
    }

    pub(crate) async fn rotate(
        &self,
        key: &Redacted,
        grace_seconds: Option<u64>,
        now: Now,
    ) -> Result<Redacted, RotateError> {
        let answer = self
            .authority
            .rotate(key, RotateRequest { grace_seconds }, now)
            .await?;
        Ok(Redacted::new(answer.instance_key))
    }

    pub(crate) fn verify(&self, key: &Redacted) -> Result<Caller, KeyError> {
        self.authority.verify(key, at(Duration::ZERO))
    }
}

pub(crate) fn enrollment(invite: Option<Redacted>) -> Enrollment {
    Enrollment {
        request: EnrollRequest::default(),
        invite,
        address: [192, 0, 2, 1].into(),
    }
}
