//! The outbox by lanes, so that what waits for one relay is in nobody else's way; and fan-outs of more rows than are
//! held in memory at once.
//!
//! ```text
//! stage (chunk by chunk) ──publish──> due, lane by lane     never published: drop_staged
//! ```

use sqlx::{Row as _, any::AnyRow};
use uuid::Uuid;

use super::{
    Channel, OutboxRow, Settled, Store, StoreError, TABLE,
    columns::{COLUMNS, read},
    sql::{self as statements, IS_MEANT},
};
use crate::store::{
    LogEntry, Outcome, delivery_log,
    row::{self, Unreadable},
    sql::{integer, statement},
};

/// A lease that nothing but [`Store::publish`] ends.
const STAGED: i64 = i64::MAX;

/// `+ 0` keeps SQLite from the index of what expires: nearly all that waits has yet to.
pub(in crate::store) const DUE_LANES: &str = "SELECT DISTINCT channel, COALESCE(relay_url, '') AS relay_url \
     FROM push_outbox WHERE next_attempt_at <= $1 AND leased_until <= $1 AND ttl_until + 0 > $1";

/// Rows that a process has taken to send.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// They are this process's until their lease ends.
    pub rows: Vec<OutboxRow>,
    /// How many more were due, but for somebody who doesn't have the device or browser any more: dropped and logged.
    pub moved: usize,
}

/// What goes one way.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// To the relay at this address.
    Relay(String),
    /// To push services.
    Web,
}

impl Lane {
    fn channel(&self) -> Channel {
        match self {
            Self::Relay(_) => Channel::Relay,
            Self::Web => Channel::Web,
        }
    }

    fn relay_url(&self) -> &str {
        match self {
            Self::Relay(url) => url,
            Self::Web => "",
        }
    }
}

impl OutboxRow {
    /// Which way it goes.
    pub fn lane(&self) -> Lane {
        match self.channel {
            Channel::Relay => Lane::Relay(self.relay_url.clone().unwrap_or_default()),
            Channel::Web => Lane::Web,
        }
    }
}

impl Store {
    /// Writes rows that nobody sends before [`Store::publish`].
    pub async fn stage(&self, bound: u64, rows: &mut [OutboxRow], now: u64) -> Result<(), StoreError> {
        for row in rows.iter_mut() {
            row.leased_until = STAGED.unsigned_abs();
            row.next_attempt_at = now;
            row.attempts = 0;
            row.first_attempt_at = None;
        }
        self.enqueue_up_to(bound, rows).await
    }

    /// All rows of a notification that were staged become due, in one step.
    pub async fn publish(&self, notification_id: Uuid, now: u64) -> Result<u64, StoreError> {
        let published = sqlx::query(statement(statements::publish(self.dialect)))
            .bind(integer(now))
            .bind(notification_id.to_string())
            .bind(STAGED)
            .execute(&self.pool)
            .await?;
        Ok(published.rows_affected())
    }

    /// Removes up to `limit` rows that were staged before then and never published, and logs them: whoever did it died,
    /// and its caller was told nothing.
    pub async fn drop_staged(&self, before: u64, now: u64, limit: u32) -> Result<u64, StoreError> {
        let mut transaction = self.begin().await?;
        let rows = sqlx::query(statement(statements::drop_staged(self.dialect)))
            .bind(STAGED)
            .bind(integer(before))
            .bind(i64::from(limit))
            .fetch_all(&mut *transaction)
            .await?;
        let entry = |row| LogEntry::of(row, Outcome::Dropped, "not_finished".into(), now);
        let log: Vec<_> = row::readable(TABLE, &rows, read).iter().map(entry).collect();
        delivery_log::insert(self.dialect, &mut transaction, &log).await?;
        transaction.commit().await?;
        Ok(rows.len() as u64)
    }

    /// The lanes in which something is due.
    pub async fn due_lanes(&self, now: u64) -> Result<Vec<Lane>, StoreError> {
        let rows = sqlx::query(DUE_LANES)
            .bind(integer(now))
            .fetch_all(&self.pool)
            .await?;
        Ok(row::readable(TABLE, &rows, lane))
    }

    /// When the next row may be taken; `None` when nothing waits.
    pub async fn next_due(&self) -> Result<Option<u64>, StoreError> {
        let row = sqlx::query(
            "SELECT MIN(CASE WHEN leased_until > next_attempt_at THEN leased_until ELSE next_attempt_at END) \
             FROM push_outbox WHERE leased_until < $1",
        )
        .bind(STAGED)
        .fetch_one(&self.pool)
        .await?;
        let due: Option<i64> = row.try_get(0)?;
        Ok(due.and_then(|due| u64::try_from(due).ok()))
    }

    /// Takes up to `limit` rows of a lane, or of one notification in it, that are due, for `lease_seconds`; nobody else
    /// gets them until then. A fan-out may have written a row after the device that it had read was registered by
    /// somebody else, who must not get it.
    pub async fn claim_lane(
        &self,
        lane: &Lane,
        notification_id: Option<Uuid>,
        now: u64,
        lease_seconds: u64,
        limit: u32,
    ) -> Result<Taken, StoreError> {
        let of_notification = match notification_id {
            Some(_) => " AND notification_id = $6",
            None => "",
        };
        let claim = statement(format!(
            "WITH due AS MATERIALIZED (\
             SELECT id FROM push_outbox WHERE next_attempt_at <= $1 AND leased_until <= $1 AND ttl_until > $1 \
             AND channel = $4 AND COALESCE(relay_url, '') = $5{of_notification} \
             ORDER BY next_attempt_at LIMIT $3{}) \
             UPDATE push_outbox SET attempts = attempts + 1, first_attempt_at = COALESCE(first_attempt_at, $1), \
             next_attempt_at = $2, leased_until = $2 WHERE id IN (SELECT id FROM due) RETURNING {COLUMNS}, {IS_MEANT} AS is_meant",
            self.dialect.skip_locked()
        ));
        let mut claim = sqlx::query(claim)
            .bind(integer(now))
            .bind(integer(now.saturating_add(lease_seconds)))
            .bind(i64::from(limit))
            .bind(lane.channel().as_str())
            .bind(lane.relay_url());
        if let Some(id) = notification_id {
            claim = claim.bind(id.to_string());
        }
        let rows = claim.fetch_all(&self.pool).await?;
        let (meant, moved): (Vec<_>, Vec<_>) = row::readable(TABLE, &rows, |row| {
            Ok((read(row)?, row::number(row, "is_meant")? == 1))
        })
        .into_iter()
        .partition(|(_, is_meant)| *is_meant);
        let moved: Vec<OutboxRow> = moved.into_iter().map(|(row, _)| row).collect();
        self.drop_moved(&moved, now).await?;
        Ok(Taken {
            rows: meant.into_iter().map(|(row, _)| row).collect(),
            moved: moved.len(),
        })
    }

    async fn drop_moved(&self, moved: &[OutboxRow], now: u64) -> Result<(), StoreError> {
        if moved.is_empty() {
            return Ok(());
        }
        let settled: Vec<_> = moved.iter().map(|row| (row.claim(), Settled::Done)).collect();
        let log: Vec<_> = moved.iter().map(|row| moved_entry(row, now)).collect();
        self.settle(&settled, &log).await
    }
}

/// For the user who had the device.
pub(super) fn moved_entry(row: &OutboxRow, now: u64) -> LogEntry {
    LogEntry::of(row, Outcome::Dropped, "not_theirs_any_more".into(), now)
}

fn lane(row: &AnyRow) -> Result<Lane, Unreadable> {
    Ok(match row::parsed(row, "channel", Channel::parse)? {
        Channel::Relay => Lane::Relay(row::text(row, "relay_url")?),
        Channel::Web => Lane::Web,
    })
}
