//! One relay: a lane's rows as batches, with a key that works.
//!
//! ```text
//! rows -> batches of 500 messages and 4 MiB -> Relays::call -> POST -> what each met
//!                     the whole batch is too large for somebody on the way -> in halves
//! ```

use std::ops::Range;

use sovereign_relay_client::{
    http::error::CallError,
    protocol::{
        error::ErrorCode,
        id::{CollapseId, IdempotencyKey},
        limits::{BATCH_BODY_BYTES, BATCH_MESSAGES, TTL_SECONDS},
        push::PushMessage,
        redacted::Redacted,
    },
};

use super::{FanOut, verdict::Met};
use crate::{
    relay::{RelayCallError, RelayUnavailable},
    store::OutboxRow,
};

/// Names, punctuation and the smaller fields of one message's JSON, with room to spare.
const MESSAGE_BYTES: usize = 512;

impl FanOut {
    /// What each row met, in their order.
    pub(super) async fn push_all(&self, relay_url: &str, rows: &[OutboxRow]) -> Vec<Met> {
        let messages: Vec<Option<PushMessage>> = rows.iter().map(message).collect();
        let mut met: Vec<Met> = Vec::with_capacity(rows.len());
        let sizes: Vec<usize> = rows.iter().map(size).collect();
        for batch in batches(&sizes) {
            let places = messages.get(batch).unwrap_or_default();
            let readable: Vec<PushMessage> = places.iter().flatten().cloned().collect();
            let mut answers = self.push_batch(relay_url, &readable).await.into_iter();
            met.extend(places.iter().map(|place| match place {
                Some(_) => answers.next().unwrap_or(UNREADABLE_ROW),
                None => UNREADABLE_ROW,
            }));
        }
        met
    }

    async fn push_batch(&self, relay_url: &str, messages: &[PushMessage]) -> Vec<Met> {
        let mut met = Vec::with_capacity(messages.len());
        let mut parts = vec![messages];
        while let Some(part) = parts.pop() {
            match self.push_part(relay_url, part).await {
                Answered::Each(answers) => met.extend(answers),
                Answered::TooMuch => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
            }
        }
        met
    }

    async fn push_part(&self, relay_url: &str, part: &[PushMessage]) -> Answered {
        if part.is_empty() {
            return Answered::Each(Vec::new());
        }
        let all = |met: Met| Answered::Each(vec![met; part.len()]);
        let answered = self
            .relays
            .call(
                relay_url,
                |instance| async move { instance.push_batch(part).await },
            )
            .await;
        match answered {
            Ok(places) => Answered::Each(places.into_iter().map(Met::of_place).collect()),
            Err(RelayCallError::Unavailable(unavailable)) => all(self.held(&unavailable)),
            Err(RelayCallError::Call(error)) if part.len() > 1 && is_too_much(&error) => Answered::TooMuch,
            Err(RelayCallError::Call(error)) => all(Met::of_call(&error)),
        }
    }

    fn held(&self, unavailable: &RelayUnavailable) -> Met {
        Met::Held {
            until: unavailable.until(self.clock.seconds()),
            reason: unavailable.word(),
        }
    }
}

const UNREADABLE_ROW: Met = Met::Never {
    reason: "unreadable_row",
};

enum Answered {
    Each(Vec<Met>),
    TooMuch,
}

fn is_too_much(error: &CallError) -> bool {
    match error {
        CallError::Refused(refusal) => matches!(
            refusal.code,
            Some(ErrorCode::PayloadTooLarge | ErrorCode::InvalidRequest)
        ),
        CallError::Unreadable(status) => matches!(status, 400 | 413),
        CallError::NotSent(_) | CallError::NoAnswer(_) => false,
    }
}

/// The same message for each try that the relay may remember, TTL included: another one under that key is refused.
fn message(row: &OutboxRow) -> Option<PushMessage> {
    let first = row.first_attempt_at.unwrap_or(row.ttl_until);
    let ttl = row.ttl_until.saturating_sub(first).min(u64::from(TTL_SECONDS));
    Some(PushMessage {
        priority: row.priority,
        environment: row.environment,
        ttl_seconds: u32::try_from(ttl).unwrap_or(TTL_SECONDS),
        collapse_id: row
            .collapse_id
            .as_ref()
            .map(Redacted::expose)
            .and_then(CollapseId::parse),
        idempotency_key: IdempotencyKey::parse(&row.id.to_string()),
        ..PushMessage::new(row.platform?, row.address.clone(), row.sealed.clone())
    })
}

/// A message's JSON at most.
fn size(row: &OutboxRow) -> usize {
    let quoted = |text: &Redacted| {
        let escaped = text.expose().bytes().filter(|byte| matches!(byte, b'"' | b'\\'));
        text.len() + escaped.count()
    };
    quoted(&row.address) + quoted(&row.sealed) + MESSAGE_BYTES
}

/// Cuts a series of sizes into batches that a relay takes.
fn batches(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0_usize);
    for (place, size) in sizes.iter().enumerate() {
        let is_full = place - start == BATCH_MESSAGES || bytes.saturating_add(*size) > BATCH_BODY_BYTES;
        if is_full && place > start {
            batches.push(start..place);
            (start, bytes) = (place, 0);
        }
        bytes = bytes.saturating_add(*size);
    }
    if start < sizes.len() {
        batches.push(start..sizes.len());
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn batches_are_within_the_relay_s_limits_and_leave_nothing_out(
            sizes in prop::collection::vec(1_usize..20_000, 0..2000),
        ) {
            let mut next = 0;
            for batch in batches(&sizes) {
                prop_assert_eq!(batch.start, next);
                prop_assert!(!batch.is_empty() && batch.len() <= BATCH_MESSAGES);
                prop_assert!(sizes[batch.clone()].iter().sum::<usize>() <= BATCH_BODY_BYTES);
                next = batch.end;
            }
            prop_assert_eq!(next, sizes.len());
        }
    }
}
