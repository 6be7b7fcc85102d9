//! Invites: a sorted set by expiry, and when each was made.

use std::collections::HashMap;

use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::time::UnixMillis;

use super::{RedisRecords, scripts::Call};
use crate::store::{INVITES_OUTSTANDING, Invite, InviteHash};

/// A hash as it stands in Redis.
pub(super) fn member(hash: InviteHash) -> String {
    hash.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl RedisRecords {
    pub(super) async fn keep_invite(&self, invite: Invite) -> Result<bool, StoreError> {
        let mut call = Call::new(&self.scripts.invite);
        call.key(self.keys.invites());
        call.key(self.keys.invite_times());
        call.text(member(invite.hash));
        call.text(invite.created_at.0);
        call.text(invite.expires_at.0);
        call.text(INVITES_OUTSTANDING);
        self.call(call).await
    }

    pub(super) async fn list_invites(&self, now: UnixMillis) -> Result<Vec<Invite>, StoreError> {
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range
            .arg(self.keys.invites())
            .arg(format!("({}", now.0))
            .arg("+inf")
            .arg("WITHSCORES");
        let members: Vec<(String, f64)> = self.redis.send(&range).await?;
        let mut times = redis::cmd("HGETALL");
        times.arg(self.keys.invite_times());
        let times: HashMap<String, u64> = self.redis.send(&times).await?;
        // One used up between the two reads has no time any more.
        let outstanding = members.iter().filter_map(|(member, expires_at)| {
            Some(Invite {
                hash: parse(member)?,
                created_at: UnixMillis(*times.get(member)?),
                expires_at: UnixMillis(millis(*expires_at)),
            })
        });
        let mut invites: Vec<_> = outstanding.collect();
        invites.sort_by_key(|invite| (invite.expires_at, invite.hash));
        Ok(invites)
    }
}

/// Scores are floats; a time in milliseconds is exact in one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time is whole, positive and far below 2^53"
)]
fn millis(score: f64) -> u64 {
    score as u64
}

fn parse(member: &str) -> Option<InviteHash> {
    let mut hash = [0; 32];
    let digits = (member.len() == 64).then_some(member)?;
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(InviteHash(hash))
}
