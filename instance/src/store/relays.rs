//! What this instance is at each relay it has used: table `push_relays`.

use sovereign_relay_protocol::redacted::Redacted;
use sqlx::any::AnyRow;

use super::{
    Store, StoreError,
    row::{self, Unreadable},
    sql::integer,
};

const TABLE: &str = "push_relays";

/// One relay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayRow {
    /// Its address without a slash at the end.
    pub relay_url: String,
    /// Who this instance is there, once enrolled.
    pub instance_id: Option<String>,
    /// The key, once enrolled.
    pub instance_key: Option<Redacted>,
    /// The key before a rotation, until the new one has worked.
    pub previous_key: Option<Redacted>,
    /// How things stand.
    pub state: RelayState,
    /// When the key was given.
    pub enrolled_at: Option<u64>,
    /// Enrollments that failed one after another.
    pub attempts: u32,
    /// Not before this is another one tried.
    pub next_attempt_at: u64,
    /// For the admin.
    pub note: String,
}

/// How an instance stands with a relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelayState {
    /// No key yet, or one that the relay has forgotten.
    Unenrolled,
    /// The key works as far as is known.
    Enrolled,
    /// The relay's operator has shut this instance out.
    Revoked,
}

impl RelayState {
    const ALL: [Self; 3] = [Self::Unenrolled, Self::Enrolled, Self::Revoked];

    /// As it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unenrolled => "unenrolled",
            Self::Enrolled => "enrolled",
            Self::Revoked => "revoked",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl Store {
    /// What is known of a relay.
    pub async fn relay(&self, relay_url: &str) -> Result<Option<RelayRow>, StoreError> {
        let rows = sqlx::query("SELECT * FROM push_relays WHERE relay_url = $1")
            .bind(relay_url)
            .fetch_all(&self.pool)
            .await?;
        Ok(row::readable(TABLE, &rows, relay).pop())
    }

    /// Every relay that was ever used.
    pub async fn relays(&self) -> Result<Vec<RelayRow>, StoreError> {
        let rows = sqlx::query("SELECT * FROM push_relays ORDER BY relay_url")
            .fetch_all(&self.pool)
            .await?;
        Ok(row::readable(TABLE, &rows, relay))
    }

    /// Keeps `relay`, whatever was there.
    pub async fn put_relay(&self, relay: &RelayRow) -> Result<(), StoreError> {
        self.write_relay(relay, "", None).await.map(|_| ())
    }

    /// Keeps `relay` if key and attempts there are still those that were `read`: of two processes that enroll at once,
    /// the second learns that the first has done it. Whether it was kept; if not, read again.
    pub async fn replace_relay(&self, relay: &RelayRow, read: Option<&RelayRow>) -> Result<bool, StoreError> {
        let unchanged = "WHERE COALESCE(push_relays.instance_key, '') = $10 AND push_relays.attempts = $11";
        let key = read.and_then(|read| read.instance_key.as_ref());
        let read = (
            key.map_or("", Redacted::expose),
            read.map_or(0, |read| read.attempts),
        );
        self.write_relay(relay, unchanged, Some(read)).await
    }

    async fn write_relay(
        &self,
        relay: &RelayRow,
        condition: &'static str,
        read: Option<(&str, u32)>,
    ) -> Result<bool, StoreError> {
        let write = super::sql::statement(format!(
            "INSERT INTO push_relays \
             (relay_url, instance_id, instance_key, previous_key, state, enrolled_at, attempts, next_attempt_at, note) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
             ON CONFLICT (relay_url) DO UPDATE SET instance_id = excluded.instance_id, \
             instance_key = excluded.instance_key, previous_key = excluded.previous_key, state = excluded.state, \
             enrolled_at = excluded.enrolled_at, attempts = excluded.attempts, next_attempt_at = excluded.next_attempt_at, note = excluded.note {condition}"
        ));
        let mut write = sqlx::query(write)
            .bind(&relay.relay_url)
            .bind(relay.instance_id.as_deref())
            .bind(relay.instance_key.as_ref().map(Redacted::expose))
            .bind(relay.previous_key.as_ref().map(Redacted::expose))
            .bind(relay.state.as_str())
            .bind(relay.enrolled_at.map(integer))
            .bind(i64::from(relay.attempts))
            .bind(integer(relay.next_attempt_at))
            .bind(&relay.note);
        if let Some((key, attempts)) = read {
            write = write.bind(key).bind(i64::from(attempts));
        }
        Ok(write.execute(&self.pool).await?.rows_affected() > 0)
    }
}

fn relay(row: &AnyRow) -> Result<RelayRow, Unreadable> {
    Ok(RelayRow {
        relay_url: row::text(row, "relay_url")?,
        instance_id: row::optional_text(row, "instance_id")?,
        instance_key: row::optional_text(row, "instance_key")?.map(Redacted::new),
        previous_key: row::optional_text(row, "previous_key")?.map(Redacted::new),
        state: row::parsed(row, "state", RelayState::parse)?,
        enrolled_at: row::optional_number(row, "enrolled_at")?,
        attempts: row::small(row, "attempts")?,
        next_attempt_at: row::number(row, "next_attempt_at")?,
        note: row::text(row, "note")?,
    })
}
