//! How sessions begin and end, and how many an instance has.

use std::time::Duration;

use redis::cmd;
use sovereign_relay_actors::{
    ports::StoreError,
    session::port::{Creation, Incarnation, NewSession, Place},
};
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        id::{SessionId, Slot},
        session::{EndToEnd, SessionView, SlotView, SlotViews},
    },
    time::UnixMillis,
};

use super::{
    Shared, millis, on,
    reply::{Reply, strange},
    sessions_of,
};

/// Whether an instance may have a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    /// It was counted now.
    New,
    /// It is counted already.
    There,
    /// It has as many as it may.
    Full,
}

/// What two goodbyes bring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlyEnd {
    /// Both were said.
    Begun,
    /// Somebody came back.
    TakenBack,
}

impl Shared {
    pub(super) async fn create(&self, new: NewSession) -> Result<Creation, StoreError> {
        let listed = self.enlist(&new).await?;
        let mut script = on(&self.scripts.create, new.id);
        script
            .arg(new.instance.to_string())
            .arg(new.incarnation.0)
            .arg(u8::from(new.is_rendezvous))
            .arg(end_to_end(new.settings.e2e))
            .arg(u8::from(new.settings.turn))
            .arg(millis(new.life))
            .arg(u8::from(listed != Listed::Full))
            .arg(u8::from(self.ledger.is_full()));
        let (word, mut reply) = self.ask(&script).await?;
        let creation = match word.as_str() {
            "made" => Creation::Made(place(&mut reply)?),
            "joined" => Creation::Joined(place(&mut reply)?),
            "full" => Creation::Full,
            "conflict" => Creation::Conflict,
            "too_many" => Creation::TooMany,
            "overloaded" => Creation::Overloaded,
            _ => return Err(strange()),
        };
        if matches!(creation, Creation::Joined(_)) {
            self.book(new.id, EarlyEnd::TakenBack, &mut reply).await?;
        }
        match &creation {
            // It was counted for the life that was asked for.
            Creation::Joined(place) if listed == Listed::New => {
                self.relist(new.instance, new.id, place).await
            }
            Creation::Made(place) if listed == Listed::There => {
                self.relist(new.instance, new.id, place).await
            }
            Creation::Made(_) | Creation::Joined(_) => {}
            Creation::Full | Creation::Conflict | Creation::TooMany | Creation::Overloaded => {
                if listed == Listed::New {
                    self.delist(new.instance, new.id).await;
                }
            }
        }
        Ok(creation)
    }

    pub(super) async fn lives(&self, id: SessionId) -> Result<bool, StoreError> {
        let (word, _) = self.ask(&on(&self.scripts.lives, id)).await?;
        Ok(word == "lives")
    }

    /// Two goodbyes change until when a session is counted for its instances, and what waits in it for their bytes.
    /// Both moments are the same when they are taken back, whichever replica that is on: so they are as if never said.
    pub(super) async fn book(
        &self,
        id: SessionId,
        early_end: EarlyEnd,
        reply: &mut Reply,
    ) -> Result<(), StoreError> {
        let early = reply.signed()?;
        let (listed, expires_in): (u64, u64) = (reply.number()?, reply.number()?);
        let instances = [reply.instance()?, reply.instance()?];
        let waiting: [i64; 2] = [reply.signed()?, reply.signed()?];
        let Ok(early) = u64::try_from(early) else {
            return Ok(());
        };
        let at = self.ends_in(Duration::from_millis(early));
        let ends = self.ends_in(Duration::from_millis(expires_in));
        for ((slot, bytes), sender) in Slot::BOTH.into_iter().zip(waiting).zip(instances.iter().rev()) {
            let bytes = match early_end {
                EarlyEnd::Begun => -bytes,
                EarlyEnd::TakenBack => bytes,
            };
            if let Some(sender) = sender {
                self.ledger.note_at(at, (id, slot), *sender, bytes, ends);
            }
        }
        for instance in instances.into_iter().flatten() {
            self.list_until(instance, id, listed).await;
        }
        Ok(())
    }

    async fn enlist(&self, new: &NewSession) -> Result<Listed, StoreError> {
        let mut script = self.scripts.enlist.key(sessions_of(new.instance));
        script
            .arg(new.id.to_string())
            .arg(millis(new.life))
            .arg(self.bounds.sessions_per_instance);
        let listed: String = self.redis.run(&script).await?;
        match listed.as_str() {
            "new" => Ok(Listed::New),
            "there" => Ok(Listed::There),
            "full" => Ok(Listed::Full),
            _ => Err(strange()),
        }
    }

    async fn relist(&self, instance: InstanceId, id: SessionId, place: &Place) {
        self.list_until(instance, id, place.expires_at.0).await;
    }

    /// Counts a session until it ends. If that can't be said now, it is counted until it would have ended.
    pub(super) async fn list_until(&self, instance: InstanceId, id: SessionId, ends_millis: u64) {
        let mut command = cmd("ZADD");
        command
            .arg(sessions_of(instance))
            .arg("XX")
            .arg(ends_millis)
            .arg(id.to_string());
        let _ = self.redis.send::<()>(&command).await;
    }

    async fn delist(&self, instance: InstanceId, id: SessionId) {
        let mut command = cmd("ZREM");
        command.arg(sessions_of(instance)).arg(id.to_string());
        // It is counted until it would have ended.
        let _ = self.redis.send::<()>(&command).await;
    }

    pub(super) async fn view(
        &self,
        id: SessionId,
        instance: InstanceId,
    ) -> Result<Option<SessionView>, StoreError> {
        let mut script = on(&self.scripts.view, id);
        script.arg(instance.to_string()).arg(self.dead());
        let (word, mut reply) = self.ask(&script).await?;
        if word == "gone" {
            return Ok(None);
        }
        Ok(Some(SessionView {
            session_id: id,
            expires_at: UnixMillis(reply.number()?),
            slots: SlotViews {
                a: slot_view(&mut reply)?,
                b: slot_view(&mut reply)?,
            },
        }))
    }

    pub(super) async fn remove(&self, id: SessionId, instance: InstanceId) -> Result<bool, StoreError> {
        let removal = self.begin_removal();
        let mut script = on(&self.scripts.remove, id);
        script
            .arg(instance.to_string())
            .arg(&self.replica)
            .arg(removal.message(id));
        let (word, mut reply) = self.ask(&script).await?;
        if word == "gone" {
            return Ok(false);
        }
        let ends = self.ends_in(Duration::from_millis(reply.number()?));
        let instances = [reply.instance()?, reply.instance()?];
        let waiting: [i64; 2] = [reply.signed()?, reply.signed()?];
        for ((slot, bytes), sender) in Slot::BOTH.into_iter().zip(waiting).zip(instances.iter().rev()) {
            if let Some(sender) = sender {
                self.ledger.note((id, slot), *sender, -bytes, ends);
            }
        }
        for instance in instances.into_iter().flatten() {
            self.delist(instance, id).await;
        }
        removal.silence([reply.word()?, reply.word()?]).await;
        Ok(true)
    }
}

fn place(reply: &mut Reply) -> Result<Place, StoreError> {
    Ok(Place {
        incarnation: Incarnation(reply.word()?.parse().map_err(|_| strange())?),
        expires_at: UnixMillis(reply.number()?),
        slot: reply.slot()?,
    })
}

fn slot_view(reply: &mut Reply) -> Result<SlotView, StoreError> {
    Ok(SlotView {
        state: reply.state()?,
        generation: reply.number()?,
        queued: reply.number()?,
    })
}

pub(super) fn end_to_end(e2e: EndToEnd) -> &'static str {
    match e2e {
        EndToEnd::Required => "required",
        EndToEnd::Optional => "optional",
    }
}
