//! The revocation list: decided here on what was read, written by a script only where it is still so.

use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::id::InstanceId;

use super::{RedisRecords, changes, scripts::Call};
use crate::store::{Swap, revocation::Entry};

/// Entries in one script: it holds up everybody else for a millisecond or two.
const STEP: usize = 500;
/// Tries of a write that others' writes of the same entries get in the way of.
const TRIES: usize = 16;
/// Fields asked for at a time when the whole list is read.
const SCAN: usize = 1000;

/// One entry to write.
struct Wanted {
    instance: InstanceId,
    /// As it stands in Redis; empty: it does not.
    expected: String,
    new: Entry,
}

impl RedisRecords {
    pub(super) async fn list_revocations(&self) -> Result<Vec<(InstanceId, Entry)>, StoreError> {
        let mut entries = Vec::new();
        let mut cursor = 0;
        loop {
            let (next, fields) = self.scan_revocations(cursor, SCAN).await?;
            for (instance, text) in fields {
                let instance = parse_id(&instance)?;
                let entry = self.unreadable.read(instance, &text);
                entries.extend(entry.map(|entry| (instance, entry)));
            }
            cursor = next;
            if cursor == 0 {
                return Ok(entries);
            }
        }
    }

    /// A step through the list. An entry may come twice.
    pub(super) async fn scan_revocations(
        &self,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<(String, String)>), StoreError> {
        let mut scan = redis::cmd("HSCAN");
        scan.arg(self.keys.revocations())
            .arg(cursor)
            .arg("COUNT")
            .arg(count);
        self.redis.send(&scan).await
    }

    pub(super) async fn join(
        &self,
        entries: Vec<(InstanceId, Entry)>,
        erase: bool,
    ) -> Result<(), StoreError> {
        for step in entries.chunks(STEP) {
            self.join_step(step, erase).await?;
        }
        Ok(())
    }

    async fn join_step(&self, entries: &[(InstanceId, Entry)], erase: bool) -> Result<(), StoreError> {
        let mut left: Vec<_> = entries.to_vec();
        for _ in 0..TRIES {
            let present = self.present(&left).await?;
            let wanted = left
                .iter()
                .zip(present)
                .map(|((instance, entry), text)| joined(*instance, text, entry))
                .collect::<Result<Vec<_>, _>>()?;
            let changed = self.write(&wanted, erase).await?;
            left = changed
                .into_iter()
                .filter_map(|(number, _)| left.get(number).cloned())
                .collect();
            if left.is_empty() {
                return Ok(());
            }
        }
        Err(StoreError("the revocation entries keep changing".to_owned()))
    }

    pub(super) async fn swap(
        &self,
        instance: InstanceId,
        expected: Option<Entry>,
        new: Entry,
    ) -> Result<Swap, StoreError> {
        let of_it = [(instance, new)];
        let text = self.present(&of_it).await?.pop().flatten();
        let present = text.as_deref().map(decode).transpose()?;
        if present != expected {
            return Ok(Swap::Changed(present));
        }
        let [(instance, new)] = of_it;
        let wanted = Wanted {
            instance,
            expected: text.unwrap_or_default(),
            new,
        };
        match self.write(&[wanted], false).await?.pop() {
            None => Ok(Swap::Done),
            Some((_, text)) if text.is_empty() => Ok(Swap::Changed(None)),
            Some((_, text)) => Ok(Swap::Changed(Some(decode(&text)?))),
        }
    }

    async fn present(&self, entries: &[(InstanceId, Entry)]) -> Result<Vec<Option<String>>, StoreError> {
        let mut get = redis::cmd("HMGET");
        get.arg(self.keys.revocations());
        for (instance, _) in entries {
            get.arg(instance.to_string());
        }
        self.redis.send(&get).await
    }

    /// The numbers of those that were not written, and what stands there instead.
    async fn write(&self, wanted: &[Wanted], erase: bool) -> Result<Vec<(usize, String)>, StoreError> {
        let mut call = Call::new(&self.scripts.revoke);
        call.key(self.keys.revocations());
        call.key(self.keys.changes());
        call.key(self.keys.ids());
        call.key(self.keys.lapses());
        call.key(self.keys.word_ids());
        call.key(self.keys.suspension_ends());
        changes::log_bounds(&mut call);
        call.text(if erase { "erase" } else { "" });
        for wanted in wanted {
            call.key(self.keys.record(wanted.instance));
            call.key(self.keys.word(wanted.instance));
            call.text(wanted.instance);
            call.text(&wanted.expected);
            call.text(encode(&wanted.new)?);
        }
        self.call(call).await
    }
}

fn joined(instance: InstanceId, text: Option<String>, entry: &Entry) -> Result<Wanted, StoreError> {
    let new = match &text {
        Some(text) => decode(text)?.join(entry),
        None => entry.clone(),
    };
    Ok(Wanted {
        instance,
        expected: text.unwrap_or_default(),
        new,
    })
}

pub(super) fn parse_id(text: &str) -> Result<InstanceId, StoreError> {
    InstanceId::parse(text).ok_or_else(|| StoreError("the revocation list names no instance".to_owned()))
}

pub(super) fn encode(entry: &Entry) -> Result<String, StoreError> {
    serde_json::to_string(entry).map_err(|error| StoreError(error.to_string()))
}

pub(super) fn decode(text: &str) -> Result<Entry, StoreError> {
    serde_json::from_str(text).map_err(|error| {
        StoreError(format!(
            "a revocation entry is unreadable at byte {}",
            error.column()
        ))
    })
}
