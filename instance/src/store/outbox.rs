//! What is still to be sent: table `push_outbox`.
//!
//! A notification is written here, sealed, before anything is sent, one row per device and browser, and a row leaves
//! when its outcome is final. Whoever sends a row holds it by a lease: the fan-out writes its rows with one, and the
//! retry worker takes one by [`Store::claim`], so that of two processes on one database one sends. Killed at any
//! moment, the lease runs out and the row is sent again under its id, which is the relay's idempotency key.
//!
//! ```text
//! enqueue ──> leased ──settle(Done)──> gone
//!               │ ^
//!   settle(Retry) │ claim, when due          lease over: as if due
//!               v │
//!             waiting ──drop_expired──> gone, logged `expired`
//! ```

mod columns;
mod drops;
pub(super) mod lanes;
pub(super) mod sql;

use sovereign_relay_protocol::{
    platform::{Environment, Platform, Priority},
    redacted::Redacted,
};
use sqlx::{Any, Row as _, Transaction};
use uuid::Uuid;

use self::columns::{COLUMNS, WIDTH, bind, read};
pub(super) use self::drops::{drop_target, drop_unless, drop_user};
pub use self::lanes::{Lane, Taken};
use super::{
    LogEntry, Outcome, Store, StoreError, Used, delivery_log,
    dialect::Dialect,
    row,
    sql::{CHUNK, integer, statement, tuples},
    used,
};
use crate::user::User;

const TABLE: &str = "push_outbox";

/// Rows that may wait, at up to some 6 KiB each. Beyond that [`Store::enqueue`] refuses: the relay has been away for
/// long, and what is newest is then told to the caller instead of what is oldest being lost in silence.
pub const OUTBOX_ROWS: u64 = 200_000;

/// One notification for one device or browser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutboxRow {
    /// Also the relay's idempotency key.
    pub id: Uuid,
    /// Same for all devices that are told of one event.
    pub notification_id: Uuid,
    /// Whose.
    pub user: User,
    /// By what.
    pub channel: Channel,
    /// The device's or browser's row.
    pub target_id: Uuid,
    /// Its `created_at`, as it was read.
    pub target_created_at: u64,
    /// Its public key, as it was read: a device's `public_key`, a browser's `p256dh`.
    pub target_public_key: String,
    /// Of a device.
    pub platform: Option<Platform>,
    /// The device token or the endpoint.
    pub address: Redacted,
    /// Of a device: the relay that it was registered with.
    pub relay_url: Option<String>,
    /// Of an Apple device: its environment, where its app has named one.
    pub environment: Option<Environment>,
    /// As it is sent, in base64.
    pub sealed: Redacted,
    /// How soon the device should learn of it.
    pub priority: Priority,
    /// Replaces an earlier one with the same.
    pub collapse_id: Option<Redacted>,
    /// From then on it is not sent any more.
    pub ttl_until: u64,
    /// Times it was taken to be sent.
    pub attempts: u32,
    /// When it was taken for the first of the attempts that the relay may remember. A repeat under the same key must
    /// ask for the same time to live, which is counted from here.
    pub first_attempt_at: Option<u64>,
    /// When it is due.
    pub next_attempt_at: u64,
    /// Whoever took it last has until then; 0 when nobody holds it.
    pub leased_until: u64,
}

/// What carries a notification.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Channel {
    /// A relay, to a native device.
    Relay,
    /// A push service, to a browser.
    Web,
}

impl Channel {
    /// As it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Web => "web",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Relay, Self::Web]
            .into_iter()
            .find(|channel| channel.as_str() == text)
    }
}

/// That one process holds one row until then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    id: Uuid,
    leased_until: u64,
}

impl OutboxRow {
    /// What the holder settles.
    pub fn claim(&self) -> Claim {
        Claim {
            id: self.id,
            leased_until: self.leased_until,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// Sent, or never to be sent: the row goes.
    Done,
    /// Another attempt then. Without effect when the lease ran out and another process has taken the row since.
    Retry {
        /// Unix seconds.
        at: u64,
        /// Whether nobody out there remembers the attempt: the next one then counts as the first.
        forgotten: bool,
    },
}

/// How full the outbox is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutboxCounts {
    /// All rows.
    pub rows: u64,
    /// Of these, being sent.
    pub leased: u64,
    /// When the next one is due.
    pub next_at: Option<u64>,
}

impl Store {
    /// Writes all rows or none. Those that the caller is about to send have a lease already.
    pub async fn enqueue(&self, rows: &[OutboxRow]) -> Result<(), StoreError> {
        self.enqueue_up_to(OUTBOX_ROWS, rows).await
    }

    /// [`Store::enqueue`] with a bound of the caller's own, which processes that write at once may overstep.
    pub async fn enqueue_up_to(&self, bound: u64, rows: &[OutboxRow]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        self.insert(&mut transaction, bound, rows).await?;
        Ok(transaction.commit().await?)
    }

    /// [`Store::enqueue_up_to`] for the rows of one notification that the caller is going to send from memory. Gives the
    /// ids of those that are for somebody who doesn't have the device or browser any more: they are logged, and must not
    /// be sent.
    pub async fn enqueue_held(
        &self,
        bound: u64,
        rows: &[OutboxRow],
        now: u64,
    ) -> Result<Vec<Uuid>, StoreError> {
        let Some(first) = rows.first() else {
            return Ok(Vec::new());
        };
        let mut transaction = self.begin().await?;
        self.insert(&mut transaction, bound, rows).await?;
        let moved = sqlx::query(statement(sql::drop_moved()))
            .bind(first.notification_id.to_string())
            .fetch_all(&mut *transaction)
            .await?;
        let moved = row::readable(TABLE, &moved, |row| row::id(row, "id"));
        let entries = rows.iter().filter(|row| moved.contains(&row.id));
        let log: Vec<_> = entries.map(|row| lanes::moved_entry(row, now)).collect();
        delivery_log::insert(self.dialect, &mut transaction, &log).await?;
        transaction.commit().await?;
        Ok(moved)
    }

    async fn insert(
        &self,
        transaction: &mut Transaction<'_, Any>,
        bound: u64,
        rows: &[OutboxRow],
    ) -> Result<(), StoreError> {
        let held: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM push_outbox")
            .fetch_one(&mut **transaction)
            .await?;
        let held = u64::try_from(held).unwrap_or_default();
        if held.saturating_add(rows.len() as u64) > bound {
            return Err(StoreError::OutboxFull);
        }
        for chunk in rows.chunks(CHUNK) {
            let values = tuples(self.dialect, 0, chunk.len(), WIDTH);
            let insert = statement(format!("INSERT INTO push_outbox ({COLUMNS}) VALUES {values}"));
            let insert = chunk.iter().fold(sqlx::query(insert), bind);
            insert.execute(&mut **transaction).await?;
        }
        Ok(())
    }

    /// Takes up to `limit` rows that are due, for `lease_seconds`; nobody else gets them until then.
    pub async fn claim(
        &self,
        now: u64,
        lease_seconds: u64,
        limit: u32,
    ) -> Result<Vec<OutboxRow>, StoreError> {
        let rows = sqlx::query(statement(sql::claim(self.dialect)))
            .bind(integer(now))
            .bind(integer(now.saturating_add(lease_seconds)))
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        Ok(row::readable(TABLE, &rows, read))
    }

    /// Ends attempts and logs them, in one transaction.
    pub async fn settle(&self, settled: &[(Claim, Settled)], log: &[LogEntry]) -> Result<(), StoreError> {
        self.settle_used(settled, log, &Used::default()).await
    }

    /// [`Store::settle`], and notes which devices and browsers have been told, in the same transaction.
    pub async fn settle_used(
        &self,
        settled: &[(Claim, Settled)],
        log: &[LogEntry],
        used: &Used<'_>,
    ) -> Result<(), StoreError> {
        let mut settled = settled.to_vec();
        settled.sort_unstable_by_key(|(claim, _)| claim.id);
        let mut transaction = self.begin().await?;
        for chunk in settled.chunks(CHUNK) {
            settle_chunk(self.dialect, &mut transaction, chunk).await?;
        }
        delivery_log::insert(self.dialect, &mut transaction, log).await?;
        used::note(self.dialect, &mut transaction, used).await?;
        Ok(transaction.commit().await?)
    }

    /// Removes up to `limit` rows that nobody is sending and that are older than they may get, and logs them.
    pub async fn drop_expired(&self, now: u64, limit: u32) -> Result<Vec<OutboxRow>, StoreError> {
        let mut transaction = self.begin().await?;
        let rows = sqlx::query(statement(sql::drop_expired(self.dialect)))
            .bind(integer(now))
            .bind(i64::from(limit))
            .fetch_all(&mut *transaction)
            .await?;
        let rows = row::readable(TABLE, &rows, read);
        let entry = |row| LogEntry::of(row, Outcome::Expired, "ttl".into(), now);
        let log: Vec<_> = rows.iter().map(entry).collect();
        delivery_log::insert(self.dialect, &mut transaction, &log).await?;
        transaction.commit().await?;
        Ok(rows)
    }

    /// Rows of one user.
    pub async fn outbox_rows_of(&self, user: &User) -> Result<u64, StoreError> {
        let rows: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM push_outbox WHERE tenant_id = $1 AND user_id = $2")
                .bind(&user.tenant)
                .bind(&user.id)
                .fetch_one(&self.pool)
                .await?;
        Ok(u64::try_from(rows).unwrap_or_default())
    }

    /// How full the outbox is.
    pub async fn outbox_counts(&self, now: u64) -> Result<OutboxCounts, StoreError> {
        let row = sqlx::query(
            "SELECT COUNT(*), COUNT(CASE WHEN leased_until > $1 THEN 1 END), MIN(next_attempt_at) FROM push_outbox",
        )
        .bind(integer(now))
        .fetch_one(&self.pool)
        .await?;
        let count = |column: usize| -> Result<Option<u64>, sqlx::Error> {
            let number: Option<i64> = row.try_get(column)?;
            Ok(number.and_then(|number| u64::try_from(number).ok()))
        };
        Ok(OutboxCounts {
            rows: count(0)?.unwrap_or_default(),
            leased: count(1)?.unwrap_or_default(),
            next_at: count(2)?,
        })
    }
}

async fn settle_chunk(
    dialect: Dialect,
    transaction: &mut Transaction<'_, Any>,
    chunk: &[(Claim, Settled)],
) -> Result<(), StoreError> {
    lock(dialect, transaction, chunk).await?;
    let mut done = Vec::new();
    let mut again = Vec::new();
    for (claim, settled) in chunk {
        match settled {
            Settled::Done => done.push(claim.id),
            Settled::Retry { at, forgotten } => again.push((claim, *at, *forgotten)),
        }
    }
    if !done.is_empty() {
        let ids = tuples(dialect, 0, 1, done.len());
        let delete = sqlx::query(statement(sql::delete_where(dialect, &format!("id IN {ids}"))));
        let delete = done.iter().fold(delete, |delete, id| delete.bind(id.to_string()));
        delete.execute(&mut **transaction).await?;
    }
    if !again.is_empty() {
        let update = statement(sql::retry(dialect, again.len()));
        let update = again
            .iter()
            .fold(sqlx::query(update), |update, (claim, at, forgotten)| {
                update
                    .bind(claim.id.to_string())
                    .bind(integer(claim.leased_until))
                    .bind(integer(*at))
                    .bind(i64::from(*forgotten))
            });
        update.execute(&mut **transaction).await?;
    }
    Ok(())
}

/// Else whoever drops some of the rows meanwhile could have one that this waits for, and wait for one that this has.
async fn lock(
    dialect: Dialect,
    transaction: &mut Transaction<'_, Any>,
    chunk: &[(Claim, Settled)],
) -> Result<(), StoreError> {
    match dialect {
        // It has one writer.
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => {
            let lock = sqlx::query(statement(sql::lock(dialect, chunk.len())));
            let lock = chunk
                .iter()
                .fold(lock, |lock, (claim, _)| lock.bind(claim.id.to_string()));
            lock.execute(&mut **transaction).await?;
            Ok(())
        }
    }
}
