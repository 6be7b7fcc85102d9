//! Forgetting what has lapsed by the caller's clock, a bounded step at a time. Each replica does it; whatever one has
//! removed the next one doesn't find.
//!
//! Redis' own expiry is the second line, for what no replica is there to forget.

use std::collections::{HashMap, HashSet};

use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};

use super::{
    DAY_MILLIS, RedisRecords, changes,
    revocations::{decode, parse_id},
    scripts::Call,
};
use crate::store::{
    Purged,
    revocation::{Entry, Kid},
};

/// Rows in one script.
const ROWS: usize = 500;
/// Scripts in one step: a million records take three hours at a step a minute.
const ROUNDS: usize = 10;
/// An entry goes this long after the last of its secrets was seen configured: a secret that is missing for a day
/// by mistake must not cost the revocations made under it.
const RETIRED_SECRET_MILLIS: u64 = 30 * DAY_MILLIS;
/// The secrets' times are kept this long after any was seen. Entries whose secrets are unknown count from now.
const SECRETS_MILLIS: u64 = 400 * DAY_MILLIS;

impl RedisRecords {
    pub(super) async fn purge_step(
        &self,
        now: UnixMillis,
        configured: Vec<Kid>,
    ) -> Result<Purged, StoreError> {
        self.note_secrets(&configured, now).await?;
        let records = self.lapse(now).await?;
        self.pardon(now).await?;
        Ok(Purged {
            records,
            invites: self
                .expire(self.keys.invites(), self.keys.invite_times(), now)
                .await?,
            groups: self
                .expire(self.keys.group_ends(), self.keys.groups(), now)
                .await?,
            revocations: self.retire(now).await?,
        })
    }

    async fn note_secrets(&self, kids: &[Kid], now: UnixMillis) -> Result<(), StoreError> {
        if kids.is_empty() {
            return Ok(());
        }
        let mut set = redis::cmd("HSET");
        set.arg(self.keys.secrets());
        for kid in kids {
            set.arg(kid.to_string()).arg(now.0);
        }
        let _: u64 = self.redis.send(&set).await?;
        let mut expire = redis::cmd("PEXPIRE");
        expire.arg(self.keys.secrets()).arg(SECRETS_MILLIS);
        let _: bool = self.redis.send(&expire).await?;
        Ok(())
    }

    async fn lapse(&self, now: UnixMillis) -> Result<usize, StoreError> {
        let mut lapsed = 0;
        for _ in 0..ROUNDS {
            let due = self.due(self.keys.lapses(), now).await?;
            if due.is_empty() {
                break;
            }
            let mut call = Call::new(&self.scripts.lapse);
            call.key(self.keys.ids());
            call.key(self.keys.lapses());
            call.text(now.0);
            for instance in &due {
                call.key(self.keys.record(*instance));
                call.text(instance);
            }
            lapsed += self.call::<usize>(call).await?;
            if due.len() < ROWS {
                break;
            }
        }
        Ok(lapsed)
    }

    async fn pardon(&self, now: UnixMillis) -> Result<(), StoreError> {
        let due = self.due(self.keys.suspension_ends(), now).await?;
        if due.is_empty() {
            return Ok(());
        }
        let mut call = Call::new(&self.scripts.pardon);
        call.key(self.keys.suspension_ends());
        call.key(self.keys.word_ids());
        call.key(self.keys.lapses());
        call.key(self.keys.changes());
        call.text(now.0);
        changes::log_bounds(&mut call);
        for instance in &due {
            call.key(self.keys.record(*instance));
            call.key(self.keys.word(*instance));
            call.text(instance);
        }
        self.call(call).await
    }

    async fn due(&self, index: String, now: UnixMillis) -> Result<Vec<InstanceId>, StoreError> {
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range
            .arg(index)
            .arg("-inf")
            .arg(now.0)
            .arg("LIMIT")
            .arg(0)
            .arg(ROWS);
        let members: Vec<String> = self.redis.send(&range).await?;
        members.iter().map(|member| parse_id(member)).collect()
    }

    async fn expire(&self, ends: String, values: String, now: UnixMillis) -> Result<usize, StoreError> {
        let mut gone = 0;
        for _ in 0..ROUNDS {
            let mut call = Call::new(&self.scripts.expire);
            call.key(ends.clone());
            call.key(values.clone());
            call.text(now.0);
            call.text(ROWS);
            let ended: usize = self.call(call).await?;
            gone += ended;
            if ended < ROWS {
                break;
            }
        }
        Ok(gone)
    }

    /// Walks the whole list: it is read in steps, and nearly every entry is looked at and left alone.
    async fn retire(&self, now: UnixMillis) -> Result<Vec<(InstanceId, Entry)>, StoreError> {
        let seen = self.secrets_seen().await?;
        let (mut retired, mut unseen) = (Vec::new(), HashSet::new());
        let mut cursor = 0;
        loop {
            let (next, fields) = self.scan_revocations(cursor, ROWS).await?;
            let mut due = Vec::new();
            for (instance, text) in fields {
                // Which secrets it is of only a newer relay knows, and that one forgets it.
                let Ok(entry) = decode(&text) else { continue };
                unseen.extend(
                    entry
                        .kids
                        .iter()
                        .filter(|kid| !seen.contains_key(&kid.to_string()))
                        .copied(),
                );
                if is_retired(&entry, &seen, now) {
                    due.push((parse_id(&instance)?, text, entry));
                }
            }
            retired.extend(self.forget(due).await?);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        self.note_secrets(&unseen.into_iter().collect::<Vec<_>>(), now)
            .await?;
        Ok(retired)
    }

    async fn secrets_seen(&self) -> Result<HashMap<String, u64>, StoreError> {
        let mut get = redis::cmd("HGETALL");
        get.arg(self.keys.secrets());
        self.redis.send(&get).await
    }

    async fn forget(
        &self,
        due: Vec<(InstanceId, String, Entry)>,
    ) -> Result<Vec<(InstanceId, Entry)>, StoreError> {
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = Call::new(&self.scripts.forget);
        call.key(self.keys.revocations());
        call.key(self.keys.changes());
        changes::log_bounds(&mut call);
        for (instance, text, _) in &due {
            call.text(instance);
            call.text(text);
        }
        let gone: HashSet<usize> = self.call(call).await?;
        let removed = due.into_iter().enumerate();
        Ok(removed
            .filter(|(number, _)| gone.contains(number))
            .map(|(_, (instance, _, entry))| (instance, entry))
            .collect())
    }
}

/// A secret never seen before counts from now. An entry without any was made on a node without a secret, and stays.
fn is_retired(entry: &Entry, seen: &HashMap<String, u64>, now: UnixMillis) -> bool {
    let is_over = |kid: &Kid| {
        let at = seen.get(&kid.to_string());
        at.is_some_and(|at| at.saturating_add(RETIRED_SECRET_MILLIS) <= now.0)
    };
    !entry.kids.is_empty() && entry.kids.iter().all(is_over)
}
