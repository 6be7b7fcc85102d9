//! What the instance remembers: devices, browsers, keys at relays, what is still to be sent, what became of it.
//!
//! Called by the routes, the fan-out and the relay's keeper. One set of queries for SQLite and PostgreSQL, since both
//! know `$1`, `RETURNING` and `ON CONFLICT`; where they differ, `dialect.rs` says how.
//!
//! Times are whole Unix seconds and come from the caller. What a call has acknowledged survives `kill -9`: each write
//! is one transaction, on the disk before the call returns. Device tokens, endpoints, keys and sealed payloads leave
//! as [`Redacted`](sovereign_relay_protocol::redacted::Redacted), and the delivery log has no place for them.

mod connect;
mod delivery_log;
mod devices;
mod dialect;
mod error;
mod outbox;
mod relays;
mod room;
mod row;
mod settings;
mod sql;
mod subscriptions;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod used;

use sqlx::{Any, AnyPool, Transaction};
use uuid::Uuid;

use self::dialect::Dialect;
pub use self::{
    delivery_log::{LogEntry, Outcome, PER_USER, RETENTION_SECONDS, Reason},
    devices::{Device, NewDevice},
    error::StoreError,
    outbox::{Channel, Claim, Lane, OUTBOX_ROWS, OutboxCounts, OutboxRow, Settled, Taken},
    relays::{RelayRow, RelayState},
    subscriptions::{NewSubscription, Subscription},
    used::Used,
};
use crate::user::User;

/// The database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    dialect: Dialect,
}

/// What a registration did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registered {
    /// It is there, under this id.
    pub id: Uuid,
    /// Those of the same user that were unused longest and went, so that no more are there than the limit allows.
    pub removed: Vec<Uuid>,
}

impl Store {
    /// Opens `sqlite:path`, whose file is made if it is missing, or `postgres://...`, and brings its tables up to date.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        connect::connect(url).await
    }

    /// Removes all that is kept of a user: call it when the account is deleted.
    pub async fn forget_user(&self, user: &User) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        // Registrations first, as all do who change both.
        self.dialect.lock_user(&mut transaction, user).await?;
        for delete in [
            "DELETE FROM push_device_tokens WHERE tenant_id = $1 AND user_id = $2",
            "DELETE FROM push_subscriptions WHERE tenant_id = $1 AND user_id = $2",
            "DELETE FROM push_delivery_log WHERE tenant_id = $1 AND user_id = $2",
        ] {
            let delete = sqlx::query(delete).bind(&user.tenant).bind(&user.id);
            delete.execute(&mut *transaction).await?;
        }
        outbox::drop_user(self.dialect, &mut transaction, user).await?;
        Ok(transaction.commit().await?)
    }

    /// Whether there is a device, or a browser, in the row of that id, whosever it is.
    pub async fn is_registered(&self, channel: Channel, id: Uuid) -> Result<bool, StoreError> {
        let count = match channel {
            Channel::Relay => "SELECT COUNT(*) FROM push_device_tokens WHERE id = $1",
            Channel::Web => "SELECT COUNT(*) FROM push_subscriptions WHERE id = $1",
        };
        let rows: i64 = sqlx::query_scalar(count)
            .bind(id.to_string())
            .fetch_one(&self.pool)
            .await?;
        Ok(rows > 0)
    }

    /// Gives the connections back, after what runs has ended.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// For a table that is the caller's own.
    #[cfg(feature = "server")]
    pub(crate) fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// A transaction that is going to write.
    async fn begin(&self) -> Result<Transaction<'static, Any>, StoreError> {
        Ok(self.pool.begin_with(self.dialect.begin()).await?)
    }
}
