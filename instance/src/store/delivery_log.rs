//! What became of each attempt, so that "why did I get no push?" has an answer: table `push_delivery_log`.
//!
//! It names rows by their ids and relays by their host, and has no column for a token, an endpoint, a key or content.
//! A [`Reason`] is made of this program's own words only.

use std::{borrow::Cow, fmt};

use sovereign_relay_protocol::platform::Platform;
use sqlx::{Any, Transaction, any::AnyRow};
use url::Url;
use uuid::Uuid;

use super::{
    Channel, OutboxRow, Store, StoreError,
    dialect::Dialect,
    row::{self, Unreadable},
    sql::{CHUNK, integer, statement, tuples},
};
use crate::{entropy, user::User};

const TABLE: &str = "push_delivery_log";
const WIDTH: usize = 12;

/// Thirty days: who asks later has forgotten what they missed, and times of deliveries tell about people.
pub const RETENTION_SECONDS: u64 = 30 * 24 * 60 * 60;
/// Entries that are kept of one user, at some 300 bytes each: a month of 600 deliveries a day.
pub const PER_USER: u32 = 20_000;

/// One attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// Same for all devices that are told of one event.
    pub notification_id: Uuid,
    /// Whose.
    pub user: User,
    /// By what.
    pub channel: Channel,
    /// The device's or browser's row, which may be gone.
    pub target_id: Uuid,
    /// Of a device.
    pub platform: Option<Platform>,
    /// Of a device: the host of its relay's address.
    pub relay_host: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// When.
    pub at: u64,
    /// Counted from 1; 0 when nothing was sent.
    pub attempt: u32,
}

impl LogEntry {
    /// What became of a row.
    pub fn of(row: &OutboxRow, outcome: Outcome, reason: Reason, at: u64) -> Self {
        Self {
            notification_id: row.notification_id,
            user: row.user.clone(),
            channel: row.channel,
            target_id: row.target_id,
            platform: row.platform,
            relay_host: row.relay_url.as_deref().and_then(host),
            outcome,
            reason,
            at,
            attempt: row.attempts,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The provider or push service has it.
    Sent,
    /// The device is gone, and so was its row already.
    Gone,
    /// The device is gone: its row was removed.
    Pruned,
    /// The token was called invalid, but was registered again since: its row was kept.
    Kept,
    /// Never to be sent: the reason says why.
    Failed,
    /// Another attempt follows.
    Retrying,
    /// Older than its time to live.
    Expired,
    /// Not sent, though it could have been: the outbox was full, or the relay is off.
    Dropped,
}

impl Outcome {
    /// All, in the order documents list them.
    pub const ALL: [Self; 8] = [
        Self::Sent,
        Self::Gone,
        Self::Pruned,
        Self::Kept,
        Self::Failed,
        Self::Retrying,
        Self::Expired,
        Self::Dropped,
    ];

    /// As it is kept and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Gone => "gone",
            Self::Pruned => "pruned",
            Self::Kept => "kept",
            Self::Failed => "failed",
            Self::Retrying => "retrying",
            Self::Expired => "expired",
            Self::Dropped => "dropped",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// Why an attempt ended as it did: a word of the program's own or a status code. Nothing that came from outside can be
/// made into one, and so no token can end up in the log.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reason(Cow<'static, str>);

impl Reason {
    /// An answer that has nothing but its status.
    pub fn status(status: u16) -> Self {
        Self(format!("status_{status}").into())
    }

    /// As it is kept and shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Reason {
    fn from(reason: &'static str) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Store {
    /// Logs what has no row in the outbox; [`Store::settle`] logs what has.
    pub async fn record(&self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        insert(self.dialect, &mut transaction, entries).await?;
        Ok(transaction.commit().await?)
    }

    /// A user's newest entries, the newest first.
    pub async fn log_of(&self, user: &User, limit: u32) -> Result<Vec<LogEntry>, StoreError> {
        let rows = sqlx::query(
            "SELECT notification_id, tenant_id, user_id, channel, target_id, platform, relay_host, outcome, reason, at, \
             attempt FROM push_delivery_log WHERE tenant_id = $1 AND user_id = $2 \
             ORDER BY at DESC, attempt DESC, id LIMIT $3",
        )
        .bind(&user.tenant)
        .bind(&user.id)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        Ok(row::readable(TABLE, &rows, entry))
    }

    /// Removes what is older than [`RETENTION_SECONDS`] and what is more than [`PER_USER`]. How many entries went.
    pub async fn trim_log(&self, now: u64) -> Result<u64, StoreError> {
        self.trim_log_to(now, PER_USER).await
    }

    /// [`Store::trim_log`] with a bound of the caller's own.
    pub async fn trim_log_to(&self, now: u64, per_user: u32) -> Result<u64, StoreError> {
        let old = sqlx::query("DELETE FROM push_delivery_log WHERE at < $1")
            .bind(integer(now.saturating_sub(RETENTION_SECONDS)))
            .execute(&self.pool)
            .await?;
        let surplus = sqlx::query(
            "DELETE FROM push_delivery_log WHERE id IN (SELECT id FROM (\
             SELECT id, ROW_NUMBER() OVER (PARTITION BY tenant_id, user_id ORDER BY at DESC, id) AS place \
             FROM push_delivery_log) AS placed WHERE place > $1)",
        )
        .bind(i64::from(per_user))
        .execute(&self.pool)
        .await?;
        Ok(old.rows_affected() + surplus.rows_affected())
    }
}

pub(super) async fn insert(
    dialect: Dialect,
    transaction: &mut Transaction<'_, Any>,
    entries: &[LogEntry],
) -> Result<(), StoreError> {
    for chunk in entries.chunks(CHUNK) {
        let insert = statement(format!(
            "INSERT INTO push_delivery_log (id, notification_id, tenant_id, user_id, channel, target_id, platform, \
             relay_host, outcome, reason, at, attempt) VALUES {}",
            tuples(dialect, 0, chunk.len(), WIDTH)
        ));
        let insert = chunk.iter().fold(sqlx::query(insert), |insert, entry| {
            insert
                .bind(entropy::uuid().to_string())
                .bind(entry.notification_id.to_string())
                .bind(&entry.user.tenant)
                .bind(&entry.user.id)
                .bind(entry.channel.as_str())
                .bind(entry.target_id.to_string())
                .bind(entry.platform.map(Platform::as_str))
                .bind(entry.relay_host.as_deref())
                .bind(entry.outcome.as_str())
                .bind(entry.reason.as_str())
                .bind(integer(entry.at))
                .bind(i64::from(entry.attempt))
        });
        insert.execute(&mut **transaction).await?;
    }
    Ok(())
}

fn entry(row: &AnyRow) -> Result<LogEntry, Unreadable> {
    Ok(LogEntry {
        notification_id: row::id(row, "notification_id")?,
        user: row::user(row)?,
        channel: row::parsed(row, "channel", Channel::parse)?,
        target_id: row::id(row, "target_id")?,
        platform: row::optional(row, "platform", Platform::parse)?,
        relay_host: row::optional_text(row, "relay_host")?,
        outcome: row::parsed(row, "outcome", Outcome::parse)?,
        reason: Reason(row::text(row, "reason")?.into()),
        at: row::number(row, "at")?,
        attempt: row::small(row, "attempt")?,
    })
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}
