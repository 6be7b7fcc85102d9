//! What was answered under idempotency keys, from an orderly stop to the next start.
//!
//! Only keyed hashes, the answer and its end are kept; neither names a device or an instance. What has ended is purged
//! within a minute of a start (`purge.rs`).

use redb::{ReadTransaction, ReadableTable, TableError, WriteTransaction};
use sovereign_relay_actors::{idempotency::Remembered, ports::StoreError};
use sovereign_relay_protocol::time::UnixMillis;

use super::{
    EmbeddedStore,
    tables::{OUTCOMES, decode, encode},
};

type Outcome<T> = Result<T, redb::Error>;

/// One remembered outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptOutcome {
    /// Keyed hash of instance and idempotency key.
    pub key: u128,
    /// When it is forgotten.
    pub until: UnixMillis,
    /// What was answered, and to what.
    pub outcome: Remembered,
}

impl EmbeddedStore {
    /// Keeps these instead of those that were kept before.
    pub async fn keep_outcomes(&self, outcomes: Vec<KeptOutcome>) -> Result<(), StoreError> {
        self.write(move |transaction| keep(transaction, &outcomes)).await
    }

    /// What was kept at the last stop, ended or not.
    pub async fn kept_outcomes(&self) -> Result<Vec<KeptOutcome>, StoreError> {
        self.read(read).await
    }
}

fn keep(transaction: &WriteTransaction, outcomes: &[KeptOutcome]) -> Outcome<()> {
    transaction.delete_table(OUTCOMES)?;
    let mut table = transaction.open_table(OUTCOMES)?;
    for KeptOutcome { key, until, outcome } in outcomes {
        let (message, answer) = (outcome.message.to_be_bytes(), encode(&outcome.answer)?);
        table.insert(&key.to_be_bytes(), (&message, until.0, answer.as_slice()))?;
    }
    Ok(())
}

fn read(snapshot: &ReadTransaction) -> Outcome<Vec<KeptOutcome>> {
    let table = match snapshot.open_table(OUTCOMES) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut outcomes = Vec::new();
    for row in table.iter()? {
        let (key, value) = row?;
        let (message, until, answer) = value.value();
        outcomes.push(KeptOutcome {
            key: u128::from_be_bytes(*key.value()),
            until: UnixMillis(until),
            outcome: Remembered {
                message: u128::from_be_bytes(*message),
                answer: decode(answer)?,
            },
        });
    }
    Ok(outcomes)
}

/// Forgets what has ended.
pub(super) fn purge(transaction: &WriteTransaction, now: UnixMillis) -> Outcome<()> {
    transaction
        .open_table(OUTCOMES)?
        .retain(|_, (_, until, _)| now.0 < until)?;
    Ok(())
}
