//! The change log: how replicas' memories follow revocations, suspensions and limits.
//!
//! Each write adds to a stream what it has changed, in the same script. A replica reads on from the last entry it has
//! seen, twice a second (`app/follow.rs`); there is no notification that could be missed.
//!
//! ```text
//! position: the last entry of the log, begun where there is none
//! changes_since(position): that entry must still be there, unchanged -> what came after it
//!                          else Lost: trimmed, expired, another Redis, a failover that lost it -> read everything anew
//! ```
//!
//! Invariant: a replica that has followed to a position has seen every change before it, or knows that it has not.

use std::sync::Arc;

use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};

use super::{
    DAY_MILLIS, RedisRecords,
    revocations::{decode, parse_id},
    scripts::Call,
};
use crate::store::revocation::Entry;

/// How long the log outlives its last entry. A replica that finds it gone reads everything anew.
const LOG_MILLIS: u64 = DAY_MILLIS;
/// Entries kept, about: a minute of a busy operator's import. A replica further behind reads everything anew.
const LOG_ENTRIES: usize = 10_000;
/// Entries read at a time.
const READ: usize = 1000;
/// A replica counts as alive so long after it was last heard of.
const ALIVE_MILLIS: u64 = 3000;

type Fields = Vec<(String, String)>;

/// An entry of the log that was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    pub(super) id: String,
    fields: Fields,
}

/// What was read from a position on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changes {
    /// All that came, in order, or a first part of it if it was much. Without changes: nothing more came.
    Seen {
        /// Where to read on.
        position: Position,
        /// What came.
        changes: Vec<Change>,
    },
    /// The position is not there any more.
    Lost,
}

/// What a replica hears when it says that it is alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beat {
    /// How many are.
    pub replicas: u32,
    /// Redis' time.
    pub time: UnixMillis,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// An entry of the revocation list is now this.
    Revoked(InstanceId, Entry),
    /// An entry went, since all its secrets are retired; it was this.
    Forgotten(InstanceId, Entry),
    /// Limit, word on TURN or suspension changed.
    Standing(InstanceId),
}

/// The arguments of scripts that write to the log.
pub(super) fn log_bounds(call: &mut Call) {
    call.text(LOG_MILLIS);
    call.text(LOG_ENTRIES);
}

impl RedisRecords {
    /// The end of the log.
    pub async fn position(&self) -> Result<Position, StoreError> {
        let mut call = Call::new(&self.scripts.position);
        call.key(self.keys.changes());
        call.text(LOG_MILLIS);
        let last: Vec<(String, Fields)> = self.call(call).await?;
        let last = last.into_iter().next();
        last.map(|(id, fields)| Position { id, fields })
            .ok_or_else(|| StoreError("the change log has no entry".to_owned()))
    }

    /// What came after a position. What a newer relay has written is read over.
    pub async fn changes_since(&self, position: &Position) -> Result<Changes, StoreError> {
        let mut from = position.clone();
        loop {
            match self.read_log(&from).await? {
                Changes::Seen { position, changes } if changes.is_empty() && position != from => {
                    from = position
                }
                seen => return Ok(seen),
            }
        }
    }

    async fn read_log(&self, position: &Position) -> Result<Changes, StoreError> {
        let mut range = redis::cmd("XRANGE");
        range
            .arg(self.keys.changes())
            .arg(&position.id)
            .arg("+")
            .arg("COUNT")
            .arg(READ);
        let entries: Vec<(String, Fields)> = self.redis.send(&range).await?;
        let mut entries = entries.into_iter().map(|(id, fields)| Position { id, fields });
        if entries.next().as_ref() != Some(position) {
            return Ok(Changes::Lost);
        }
        let mut position = position.clone();
        let mut changes = Vec::new();
        for entry in entries {
            changes.extend(self.change(&entry.fields)?);
            position = entry;
        }
        Ok(Changes::Seen { position, changes })
    }

    /// Says that this replica is alive, and hears how many are. Whether it could is what [`Store::fault`](crate::store::Store::fault) says.
    pub async fn beat(&self, replica: &str) -> Result<Beat, StoreError> {
        let mut call = Call::new(&self.scripts.beat);
        call.key(self.keys.replicas());
        call.text(replica);
        call.text(ALIVE_MILLIS);
        let heard: Result<(u32, u64), _> = self.call(call).await;
        self.fault.store(heard.as_ref().err().cloned().map(Arc::new));
        let (replicas, time) = heard?;
        Ok(Beat {
            replicas,
            time: UnixMillis(time),
        })
    }

    /// Whether a replica was heard of lately.
    pub(crate) async fn is_alive(&self, replica: &str) -> Result<bool, StoreError> {
        let mut heard = redis::cmd("ZSCORE");
        heard.arg(self.keys.replicas()).arg(replica);
        let heard: Option<f64> = self.redis.send(&heard).await?;
        Ok(heard.is_some())
    }

    /// Says that this replica stops.
    pub async fn leave(&self, replica: &str) -> Result<(), StoreError> {
        let mut leave = redis::cmd("ZREM");
        leave.arg(self.keys.replicas()).arg(replica);
        self.redis.send(&leave).await
    }

    /// `None`: a mark, or something that a newer relay has written.
    fn change(&self, fields: &Fields) -> Result<Option<Change>, StoreError> {
        let Some((kind, instance)) = fields.first() else {
            return Ok(None);
        };
        let text = fields.iter().find(|(field, _)| field == "e");
        let text = text.map_or("", |(_, value)| value.as_str());
        Ok(match kind.as_str() {
            "r" => {
                let instance = parse_id(instance)?;
                let entry = self.unreadable.read(instance, text);
                entry.map(|entry| Change::Revoked(instance, entry))
            }
            // One that can't be read was none to this replica.
            "f" => {
                let instance = parse_id(instance)?;
                decode(text).ok().map(|entry| Change::Forgotten(instance, entry))
            }
            "s" => Some(Change::Standing(parse_id(instance)?)),
            _ => None,
        })
    }
}
