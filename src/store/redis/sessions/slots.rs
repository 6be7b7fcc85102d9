//! Who has a slot, and what its peer is told.

use std::{sync::atomic::Ordering, time::Duration};

use sovereign_relay_actors::{
    ports::StoreError,
    session::port::{Bind, BindRefusal, Bound, Departure, Gone, Presence, Settings},
};
use sovereign_relay_protocol::{
    signal::{
        frame::PeerPresence,
        id::{SessionId, Slot},
        session::EndToEnd,
    },
    time::UnixMillis,
};

use super::{
    Holding, Shared, exact,
    lives::{EarlyEnd, end_to_end},
    on,
    reply::{Reply, strange},
};

impl Shared {
    pub(super) async fn bind(&self, id: SessionId, bind: Bind) -> Result<Bound, BindRefusal> {
        if !self.is_known.load(Ordering::Relaxed) {
            self.renew().await.map_err(Gone::from)?;
        }
        let mut script = on(&self.scripts.bind, id);
        script
            .arg(bind.slot.as_str())
            .arg(bind.incarnation.0)
            .arg(format!("{:032x}", bind.connection.0))
            // Compared as text, for it may be any number.
            .arg(format!("{:020}", bind.attempt))
            .arg(exact(bind.last))
            .arg(&self.replica)
            .arg(self.rules.loads_per_minute)
            .arg(self.rules.resumes_per_minute)
            .arg(self.dead())
            .arg(id.to_string());
        let (word, reply) = self.ask(&script).await.map_err(Gone::from)?;
        match word.as_str() {
            "ok" => Ok(self.bound(id, bind.slot, reply).await.map_err(Gone::from)?),
            "gone" => Err(Gone::NoSession.into()),
            "replaced" => Err(BindRefusal::Replaced),
            "beyond" => Err(BindRefusal::BeyondSent),
            "loads" => Err(BindRefusal::TooManyLoads),
            "resumes" => Err(BindRefusal::TooManyResumes),
            _ => Err(Gone::from(strange()).into()),
        }
    }

    async fn bound(&self, id: SessionId, slot: Slot, mut reply: Reply) -> Result<Bound, StoreError> {
        let bound = Bound {
            epoch: reply.number()?,
            generation: reply.number()?,
            is_new_load: reply.flag()?,
            next: reply.number()?,
            base: reply.number()?,
            peer: presence(&mut reply)?,
            settings: Settings {
                e2e: settings(&reply.word()?)?,
                turn: reply.flag()?,
            },
            instance: reply.instance()?.ok_or_else(strange)?,
            expires_at: UnixMillis(reply.number()?),
            expires_in: Duration::from_millis(reply.number()?),
        };
        let (freed, sender) = (reply.signed()?, reply.instance()?);
        let ends = self.ends_in(bound.expires_in);
        if let Some(sender) = sender {
            self.ledger.note((id, slot), sender, -freed, ends);
        }
        let holding = Holding {
            epoch: bound.epoch,
            instance: bound.instance,
            ends,
            next: bound.next,
        };
        self.hold(id, slot, holding);
        self.book(id, EarlyEnd::TakenBack, &mut reply).await?;
        Ok(bound)
    }

    /// Answers of two binds may come in any order.
    fn hold(&self, id: SessionId, slot: Slot, holding: Holding) {
        let mut held = self.holdings.entry((id, slot)).or_insert(holding);
        if held.epoch < holding.epoch {
            *held = holding;
        }
    }

    pub(super) async fn peer(&self, id: SessionId, slot: Slot) -> Result<Presence, Gone> {
        let mut script = on(&self.scripts.peer, id);
        script.arg(slot.as_str()).arg(self.dead());
        let (word, mut reply) = self.ask(&script).await?;
        match word.as_str() {
            "ok" => Ok(presence(&mut reply)?),
            _ => Err(gone(&word)),
        }
    }

    pub(super) async fn unbind(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        departure: Departure,
    ) -> Result<(), Gone> {
        let mut script = on(&self.scripts.unbind, id);
        script
            .arg(slot.as_str())
            .arg(epoch)
            .arg(match departure {
                Departure::Lost => "lost",
                Departure::Bye => "left",
            })
            .arg(&self.replica)
            .arg(id.to_string());
        let (word, mut reply) = self.ask(&script).await?;
        self.holdings
            .remove_if(&(id, slot), |_, holding| holding.epoch <= epoch);
        if word != "ok" {
            return Err(gone(&word));
        }
        Ok(self.book(id, EarlyEnd::Begun, &mut reply).await?)
    }
}

fn presence(reply: &mut Reply) -> Result<Presence, StoreError> {
    let told = PeerPresence {
        state: reply.state()?,
        generation: reply.number()?,
    };
    let changes_in = u64::try_from(reply.signed()?).ok();
    Ok(Presence {
        told,
        changes_in: changes_in.map(Duration::from_millis),
    })
}

fn settings(text: &str) -> Result<EndToEnd, StoreError> {
    [EndToEnd::Required, EndToEnd::Optional]
        .into_iter()
        .find(|e2e| end_to_end(*e2e) == text)
        .ok_or_else(strange)
}

/// Why a script did nothing.
pub(super) fn gone(word: &str) -> Gone {
    match word {
        "gone" => Gone::NoSession,
        "fenced" => Gone::Fenced,
        "behind" => Gone::Behind,
        _ => Gone::Unavailable(strange()),
    }
}
