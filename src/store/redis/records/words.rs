//! The operator's words and suspensions, kept in a replica's memory: they hold while Redis is away, also for instances
//! whose actor begins then, and are there on the day that it comes back without them.
//!
//! A revocation that is missing was lost; a word that is missing may have been taken back. So words are written back only
//! into a Redis that has lost everything, which its epoch tells: a random number, made where there is none.
//!
//! ```text
//! same epoch     what Redis says is true, and taken in
//! another epoch  Redis was emptied: each word that it lacks is written back, then as above
//! ```

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::id::InstanceId;

use super::{RedisRecords, changes, revocations::parse_id, rows, scripts::Call};
use crate::store::Record;

/// Words read at a time.
const READ: usize = 500;

/// What a replica knows of them. The operator's own number of words bounds it, and the suspensions that abuse earned.
#[derive(Default)]
pub(super) struct Words(Mutex<Known>);

#[derive(Default)]
struct Known {
    epoch: Option<String>,
    records: HashMap<InstanceId, Record>,
}

impl Words {
    /// An instance as it was when its words were last read.
    pub(super) fn get(&self, instance: InstanceId) -> Option<Record> {
        self.lock().records.get(&instance).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RedisRecords {
    /// Takes all words in; before, those go back that an emptied Redis lacks. How many those may be. `fresh`: a random
    /// number.
    pub async fn read_words(&self, fresh: &str) -> Result<usize, StoreError> {
        let mut call = Call::new(&self.scripts.epoch);
        call.key(self.keys.words_epoch());
        call.text(fresh);
        let epoch: String = self.call(call).await?;
        let lost = self.lost(&epoch);
        for word in &lost {
            self.restore(word).await?;
        }
        let records = self.all_words().await?;
        *self.words.lock() = Known {
            epoch: Some(epoch),
            records,
        };
        Ok(lost.len())
    }

    /// The epoch of the words that are known. If [`Self::read_words`] changes it, Redis was emptied.
    pub fn words_epoch(&self) -> Option<String> {
        self.words.lock().epoch.clone()
    }

    /// One instance's words have changed.
    pub async fn read_word(&self, instance: InstanceId) -> Result<(), StoreError> {
        let word = self.read(&[instance]).await?.pop();
        let mut words = self.words.lock();
        match word.filter(rows::says_something) {
            Some(word) => words.records.insert(instance, word),
            None => words.records.remove(&instance),
        };
        Ok(())
    }

    /// All that is known, if it is not of this epoch.
    fn lost(&self, epoch: &str) -> Vec<Record> {
        let words = self.words.lock();
        let is_emptied = words.epoch.as_deref().is_some_and(|known| known != epoch);
        let known = words.records.values().filter(|_| is_emptied);
        known.cloned().collect()
    }

    async fn all_words(&self) -> Result<HashMap<InstanceId, Record>, StoreError> {
        let (mut all, mut after) = (HashMap::new(), "-".to_owned());
        loop {
            let mut range = redis::cmd("ZRANGEBYLEX");
            range
                .arg(self.keys.word_ids())
                .arg(&after)
                .arg("+")
                .arg("LIMIT")
                .arg(0)
                .arg(READ);
            let members: Vec<String> = self.redis.send(&range).await?;
            let ids = members
                .iter()
                .map(|member| parse_id(member))
                .collect::<Result<Vec<_>, _>>()?;
            let read = self.read(&ids).await?;
            all.extend(read.into_iter().map(|record| (record.instance, record)));
            let Some(last) = members.last().filter(|_| members.len() == READ) else {
                return Ok(all);
            };
            after = format!("({last}");
        }
    }

    /// Whatever was said meanwhile stays.
    async fn restore(&self, word: &Record) -> Result<(), StoreError> {
        let mut call = Call::new(&self.scripts.restore);
        call.key(self.keys.word(word.instance));
        call.key(self.keys.word_ids());
        call.key(self.keys.suspension_ends());
        call.key(self.keys.changes());
        call.text(word.instance);
        changes::log_bounds(&mut call);
        for (field, value) in rows::word(word) {
            call.text(field);
            call.text(value);
        }
        self.call(call).await
    }
}
