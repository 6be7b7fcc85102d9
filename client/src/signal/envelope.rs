//! Between typed messages and what the relay carries: sealing, opening, and what is wrong with what was opened.
//!
//! Called by [`super::session::Session`]. Pure. Invariant: what is returned is what the peer sealed, in its order, each
//! message once; everything else is reported. So a relay can delay and drop, and a drop within a page load shows.

use std::sync::{Mutex, PoisonError};

use sovereign_relay_protocol::signal::{
    frame::Opaque,
    id::{SessionId, Slot},
    seal::{OpenError, Opener, SealError, Sealer, SessionSecret},
    session::SessionLimits,
};
use thiserror::Error;

use super::{limits::fits_sealed, message::Message};

/// A message of the relay's that was not taken. None of these comes from an honest relay and an honest peer but
/// [`Rejection::StaleAnswer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Rejection {
    /// Not what the peer sealed next.
    #[error("not what the peer sealed next: {0}")]
    Sealing(#[from] OpenError),
    /// Authentic, but not a message of a form that is known.
    #[error("not a message of a known form")]
    Form,
    /// An answer to an offer that another of ours has replaced.
    #[error("an answer to an earlier offer")]
    StaleAnswer,
    /// Of a page load of the peer that another has replaced.
    #[error("of a page load that was replaced")]
    StaleGeneration,
}

/// Seals what this side says, and remembers its latest offer.
pub(crate) struct Sealing(Mutex<Said>);

struct Said {
    sealer: Sealer,
    offer: Option<String>,
}

impl Sealing {
    /// `r` is drawn for this connection and never stored.
    pub(crate) fn new(secret: &SessionSecret, session: SessionId, slot: Slot, r: [u8; 16]) -> Self {
        Self(Mutex::new(Said {
            sealer: Sealer::new(secret, session, slot, r),
            offer: None,
        }))
    }

    /// Seals a message and hands it to `queue` before the next one can be sealed: the peer takes them in that order only.
    /// One that can't pass is not sealed: the peer would miss it.
    pub(crate) fn seal<T>(
        &self,
        message: &Message,
        limits: &SessionLimits,
        queue: impl FnOnce(Opaque) -> T,
    ) -> Result<T, SealError> {
        let json = message.to_json();
        if !fits_sealed(json.len(), limits) {
            return Err(SealError::TooLarge);
        }
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sealed = said.sealer.seal(&json)?;
        if let Message::Offer { negotiation, .. } = message {
            said.offer = Some(negotiation.clone());
        }
        Ok(queue(sealed))
    }

    fn is_stale(&self, message: &Message) -> bool {
        let Message::Answer { negotiation, .. } = message else {
            return false;
        };
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.offer.as_ref() != Some(negotiation)
    }
}

/// Opens what the peer says.
pub(crate) struct Opening {
    opener: Opener,
    /// `r` and `m` of the last one that was opened.
    last: Option<(String, u64)>,
}

/// A message that was opened.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Opened {
    /// How many before it, of the same page load, never came.
    pub(crate) missing: u64,
    pub(crate) message: Result<Message, Rejection>,
}

impl Opening {
    pub(crate) fn new(secret: SessionSecret, session: SessionId, peer: Slot) -> Self {
        Self {
            opener: Opener::new(secret, session, peer),
            last: None,
        }
    }

    pub(crate) fn open(&mut self, sealed: &Opaque, ours: &Sealing) -> Opened {
        let json = match self.opener.open(sealed) {
            Ok(json) => json,
            Err(error) => return Opened::rejected(0, error.into()),
        };
        let missing = self.count(sealed);
        match Message::parse(&json) {
            None => Opened::rejected(missing, Rejection::Form),
            Some(message) if ours.is_stale(&message) => Opened::rejected(missing, Rejection::StaleAnswer),
            Some(message) => Opened {
                missing,
                message: Ok(message),
            },
        }
    }

    /// The first message that this side hears may have others before it: an earlier page load of ours took them.
    fn count(&mut self, sealed: &Opaque) -> u64 {
        let mut parts = sealed.expose().split('.').skip(1);
        let r = parts.next().unwrap_or_default().to_owned();
        let m: u64 = parts.next().and_then(|m| m.parse().ok()).unwrap_or_default();
        let before = match &self.last {
            None => m.saturating_sub(1),
            Some((last, before)) if *last == r => *before,
            Some(_) => 0,
        };
        self.last = Some((r, m));
        m.saturating_sub(before + 1)
    }
}

impl Opened {
    fn rejected(missing: u64, rejection: Rejection) -> Self {
        Self {
            missing,
            message: Err(rejection),
        }
    }
}

#[cfg(test)]
mod tests;
