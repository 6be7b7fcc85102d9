//! Pages of records in the order of their ids: those with an enrollment and those with a word, merged.

use std::collections::BTreeSet;

use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::id::InstanceId;

use super::RedisRecords;
use crate::store::{RECORDS_PAGE, Record};

impl RedisRecords {
    pub(super) async fn page(
        &self,
        after: Option<InstanceId>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let limit = limit.min(RECORDS_PAGE);
        let (mut after, mut page) = (after, Vec::new());
        // An index may still name records that have just lapsed, so a page can take more than one look.
        while page.len() < limit {
            let ids = self.ids(after, limit).await?;
            let Some(last) = ids.last().copied() else {
                break;
            };
            after = Some(last);
            let found = self.read(&ids).await?;
            let known = found
                .into_iter()
                .filter(|record| *record != Record::bare(record.instance));
            page.extend(known);
            if ids.len() < limit {
                break;
            }
        }
        page.truncate(limit);
        Ok(page)
    }

    async fn ids(&self, after: Option<InstanceId>, limit: usize) -> Result<Vec<InstanceId>, StoreError> {
        let mut ids = BTreeSet::new();
        for index in [self.keys.ids(), self.keys.word_ids()] {
            let mut range = redis::cmd("ZRANGEBYLEX");
            range
                .arg(index)
                .arg(after.map_or_else(|| "-".to_owned(), |id| format!("({id}")))
                .arg("+")
                .arg("LIMIT")
                .arg(0)
                .arg(limit);
            let members: Vec<String> = self.redis.send(&range).await?;
            ids.extend(members.iter().filter_map(|member| InstanceId::parse(member)));
        }
        Ok(ids.into_iter().take(limit).collect())
    }
}
