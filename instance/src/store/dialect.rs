//! Where SQLite and PostgreSQL differ.

use sqlx::{Any, Transaction};

use super::StoreError;
use crate::user::User;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Begins a transaction that is going to write. SQLite has one writer: one that began as a reader fails when another
    /// has written since, instead of waiting for its turn.
    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// Ends a `SELECT` of the rows that are about to be changed: in one order, so that two writers can't each wait for
    /// the other.
    pub(super) fn lock_in_order(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " ORDER BY id FOR UPDATE",
        }
    }

    /// Ends a `SELECT` of the rows that are about to be changed, and leaves out those that another is changing.
    pub(super) fn skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// [`Dialect::skip_locked`] for a `SELECT` that joins others to `table`.
    pub(super) fn skip_locked_of(self, table: &str) -> String {
        match self {
            Self::Sqlite => String::new(),
            Self::Postgres => format!(" FOR UPDATE OF {table} SKIP LOCKED"),
        }
    }

    /// Until the transaction ends, registrations of this user wait: counting them and adding one is then one step.
    pub(super) async fn lock_user(
        self,
        transaction: &mut Transaction<'_, Any>,
        user: &User,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite => {}
            Self::Postgres => {
                sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
                    .bind(format!("push {} {}", user.tenant, user.id))
                    .execute(&mut **transaction)
                    .await?;
            }
        }
        Ok(())
    }
}
