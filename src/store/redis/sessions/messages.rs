//! What is stored, read and forgotten.

use std::time::Duration;

use redis::Value;
use sovereign_relay_actors::{
    ports::StoreError,
    session::port::{Appended, Entry, Gone, Item, Page, Trimmed, counted_bytes},
};
use sovereign_relay_protocol::signal::{
    frame::Opaque,
    id::{SessionId, Slot},
};

use super::{EXACT, Shared, exact, on, reply::strange, slots::gone};

/// Slots elsewhere that are woken again. Beyond, they are woken once; a look at the store heals what is lost.
const UNCONFIRMED: usize = 65_536;

impl Shared {
    pub(super) async fn append(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        n: u64,
        content: Opaque,
    ) -> Result<Appended, Gone> {
        let holding = self.holdings.get(&(id, slot)).map(|holding| *holding);
        let bytes = counted_bytes(&content);
        // A connection that this replica knows nothing of is refused by the script, for whatever reason it has.
        let has_room = holding.is_some_and(|holding| self.ledger.has_room(holding.instance, bytes));
        let mut script = on(&self.scripts.append, id);
        script
            .arg(slot.as_str())
            .arg(epoch)
            .arg(exact(n))
            .arg(u8::from(has_room))
            .arg(self.rules.limits.mailbox_messages)
            .arg(self.rules.limits.mailbox_bytes)
            .arg(self.rules.messages)
            .arg(&self.replica)
            .arg(id.to_string())
            .arg(content.expose());
        let (word, mut reply) = self.ask(&script).await?;
        match word.as_str() {
            "stored" => {
                if let (Some(holding), Ok(bytes)) = (holding, i64::try_from(bytes)) {
                    self.ledger
                        .note((id, slot.other()), holding.instance, bytes, holding.ends);
                }
                if reply.flag()? && self.unconfirmed.len() < UNCONFIRMED {
                    self.unconfirmed.entry((id, slot.other())).or_insert(0);
                }
                self.acknowledged(id, slot, epoch, n);
                Ok(Appended::Stored)
            }
            "duplicate" => {
                self.acknowledged(id, slot, epoch, n);
                Ok(Appended::Duplicate)
            }
            "out_of_step" => Ok(Appended::OutOfStep),
            "total" => Ok(Appended::SessionTotal),
            "full" => Ok(Appended::MailboxFull),
            _ => Err(gone(&word)),
        }
    }

    /// Remembered, for a server that takes over may not know of it.
    fn acknowledged(&self, id: SessionId, slot: Slot, epoch: u64, n: u64) {
        if let Some(mut holding) = self.holdings.get_mut(&(id, slot))
            && holding.epoch == epoch
        {
            holding.next = holding.next.max(n + 1);
        }
    }

    fn next(&self, id: SessionId, slot: Slot, epoch: u64) -> u64 {
        let holding = self.holdings.get(&(id, slot));
        holding
            .filter(|holding| holding.epoch == epoch)
            .map_or(0, |holding| holding.next)
    }

    pub(super) async fn trim(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        seq: u64,
    ) -> Result<Trimmed, Gone> {
        let mut script = on(&self.scripts.trim, id);
        script.arg(slot.as_str()).arg(epoch).arg(exact(seq));
        let (word, mut reply) = self.ask(&script).await?;
        match word.as_str() {
            "ok" => {
                let (freed, sender, expires_in) = (reply.signed()?, reply.instance()?, reply.number()?);
                if let Some(sender) = sender {
                    let ends = self.ends_in(Duration::from_millis(expires_in));
                    self.ledger.note((id, slot), sender, -freed, ends);
                }
                Ok(Trimmed::Trimmed)
            }
            "beyond" => Ok(Trimmed::BeyondSent),
            _ => Err(gone(&word)),
        }
    }

    pub(super) async fn read(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        after: u64,
        bytes: usize,
    ) -> Result<Page, Gone> {
        let bytes = u64::try_from(bytes).map_or(EXACT, exact);
        let mut script = on(&self.scripts.read, id);
        script
            .arg(slot.as_str())
            .arg(epoch)
            .arg(exact(after))
            .arg(bytes)
            .arg(exact(self.next(id, slot, epoch)));
        let (word, mut reply) = self.ask(&script).await?;
        if word != "ok" {
            return Err(gone(&word));
        }
        let (first, is_last): (u64, _) = (reply.number()?, reply.flag()?);
        let entries: Result<Vec<_>, _> = (first..)
            .zip(reply.rest())
            .map(|(seq, value)| entry(seq, value))
            .collect();
        Ok(Page {
            entries: entries?,
            is_last,
        })
    }
}

/// `m<generation>:<content>`, or `l<generation>:`.
fn entry(seq: u64, value: Value) -> Result<Entry, StoreError> {
    let Value::BulkString(bytes) = value else {
        return Err(strange());
    };
    let text = String::from_utf8(bytes).map_err(|_| strange())?;
    let (head, content) = text.split_once(':').ok_or_else(strange)?;
    let (kind, generation) = head.split_at_checked(1).ok_or_else(strange)?;
    let item = match kind {
        "m" => Item::Message(Opaque::new(content)),
        "l" => Item::NewLoad,
        _ => return Err(strange()),
    };
    let generation = generation.parse().map_err(|_| strange())?;
    Ok(Entry {
        seq,
        generation,
        item,
    })
}
