//! Why the store could not do it.

use std::fmt;

use thiserror::Error;

/// The store failed. Nothing was written, unless the connection was lost while a commit was under way.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The address names no database that this can open.
    #[error("not the address of a database: use sqlite:FILE or postgres://USER@HOST/DATABASE")]
    Address,
    /// The database's file could not be made.
    #[error("the database's file could not be made: {0}")]
    File(#[source] std::io::Error),
    /// The tables could not be brought up to date.
    #[error("the database could not be migrated: {0}")]
    Migrate(Cause<sqlx::migrate::MigrateError>),
    /// The outbox holds as much as it may.
    #[error("the outbox is full")]
    OutboxFull,
    /// The database refused, or did not answer.
    #[error("the database failed: {0}")]
    Database(Cause<sqlx::Error>),
}

/// Another library's error without its details: PostgreSQL's `DETAIL` shows the values of a row.
pub struct Cause<E>(E);

impl<E: fmt::Display> fmt::Debug for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(Cause(error))
    }
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        Self::Migrate(Cause(error))
    }
}
