//! From what a provider says of a push to what its caller is told.
//!
//! The lane's shell calls it once per call, after breaker, holds and pace had their share of the outcome. Guard and
//! fuses are kept per verdict scope; a new generation of a scope (credentials reloaded) starts anew. An answer that is
//! late for it, or of a call that saw the reload happen, proves nothing and is noted nowhere.
//!
//! ```text
//!   Sent ----------------> sent
//!   Gone, certain -------> certain fuse open? relay_misconfigured : invalid_token
//!   Gone, conditional ---> a fuse open?       relay_misconfigured : guard proves it? invalid_token : unconfirmed_token
//!   Failed --------------> failed
//!   Unreachable, HostUnreachable, Overloaded: no answer about this push
//! ```

use std::{sync::Arc, time::Duration};

use sovereign_relay_protocol::{
    platform::Platform,
    push::{PushAnswer, Reason},
    time::UnixMillis,
};

use super::{
    FuseSnapshot, Verdict,
    fuse::{FuseChange, FuseName, Fuses},
    guard::Guard,
    hint, holds,
    window::Seen,
};
use crate::{
    ports::{Certainty, Failure, Outcome, Scope, TokenHash},
    push::TurnKey,
};

/// Most scopes of one provider: APNs has two topics; the rest is room for a bundle id or project that changes at
/// a reload. When full, the one unused for longest goes, and starts anew should it come back: without a `sent`,
/// which proves nothing and so errs towards "not gone".
pub(super) const SCOPES: usize = 8;
/// When an unproven verdict is worth asking for again. Proof comes with any device's next push.
const UNCONFIRMED_RETRY: Duration = Duration::from_secs(600);
/// When a held verdict is worth asking for again: a fuse stays open at least as long.
const HELD_RETRY: Duration = Duration::from_secs(600);
/// After a provider could not be reached: the breaker's first step.
const UNREACHABLE_RETRY: Duration = Duration::from_secs(1);

/// Whom an outcome is about.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// What the push was sent under. `None`: credentials were reloaded meanwhile, so it may be the old ones or the new.
    pub(super) scope: Option<Scope>,
    pub(super) key: TurnKey,
    pub(super) token: TokenHash,
}

#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Least recently used first.
    scopes: Vec<(Scope, Evidence)>,
    changes: Vec<ScopeChange>,
}

/// A fuse of a scope opened or closed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ScopeChange {
    pub(super) scope: Arc<str>,
    pub(super) change: FuseChange,
    /// Whether any fuse of this name is open in the scope now: the gauge.
    pub(super) gauge: bool,
}

#[derive(Debug, Default)]
struct Evidence {
    guard: Guard,
    fuses: Fuses,
}

impl Judge {
    /// Judges what a provider said.
    pub(super) fn judge(&mut self, case: &Case, outcome: Outcome, now: Duration) -> Verdict {
        match outcome {
            Outcome::Sent { message_id } => {
                self.sent(case, now);
                Verdict::Answer(PushAnswer::sent(message_id))
            }
            Outcome::Gone {
                certainty: Certainty::Certain,
                reason,
                since,
            } => Verdict::Answer(self.certain(case, reason, since, now)),
            Outcome::Gone {
                certainty: Certainty::Conditional,
                reason,
                since,
            } => Verdict::Answer(self.conditional(case, reason, since, now)),
            Outcome::Failed(failure) => Verdict::Answer(failed(&failure)),
            Outcome::Unreachable | Outcome::HostUnreachable => Verdict::Unreachable {
                retry_after: UNREACHABLE_RETRY,
            },
            Outcome::Overloaded { retry_after } => Verdict::Overloaded {
                retry_after: hint::clamp(retry_after),
            },
        }
    }

    /// Judges a token that can't be one of `platform`. Which hosts a WNS channel may name is a setting, so there the
    /// guard must prove it; the other shapes can't be misconfigured, and such tokens say nothing to the guard.
    pub(super) fn malformed(
        &mut self,
        case: &Case,
        platform: Platform,
        since: UnixMillis,
        now: Duration,
    ) -> PushAnswer {
        if platform == Platform::Windows {
            return self.conditional(case, Reason::MalformedToken, since, now);
        }
        let Some(evidence) = self.evidence(case.scope.as_ref()) else {
            return PushAnswer::invalid_token(Reason::MalformedToken, since);
        };
        evidence.fuses.note(case.token, case.key, Seen::Conditional, now);
        let answer = match evidence.fuses.holds_conditional(case.key) {
            true => held(),
            false => PushAnswer::invalid_token(Reason::MalformedToken, since),
        };
        self.collect_changes();
        answer
    }

    /// Whether the token was `sent` to in the last day, in any scope.
    pub(super) fn was_sent(&mut self, token: TokenHash, now: Duration) -> bool {
        let mut scopes = self.scopes.iter_mut();
        scopes.any(|(_, evidence)| evidence.fuses.was_sent(token, now))
    }

    /// Lets the time pass, so that fuses close and hashes are forgotten without further pushes.
    pub(super) fn advance(&mut self, now: Duration) {
        for (_, evidence) in &mut self.scopes {
            evidence.guard.advance(now);
            evidence.fuses.advance(now);
        }
        self.collect_changes();
    }

    /// What opened and closed since the last time, for logs and gauges.
    pub(super) fn take_changes(&mut self) -> Vec<ScopeChange> {
        std::mem::take(&mut self.changes)
    }

    /// The fuses of every scope.
    pub(super) fn fuses(&self) -> Vec<FuseSnapshot> {
        let snapshot = |(scope, evidence): &(Scope, Evidence)| FuseSnapshot {
            scope: scope.name.clone(),
            conditional_open: evidence.fuses.is_open(FuseName::Conditional),
            single_instance_open: evidence.fuses.is_open(FuseName::SingleInstance),
            certain_open: evidence.fuses.is_open(FuseName::Certain),
        };
        self.scopes.iter().map(snapshot).collect()
    }

    /// Tokens that are remembered, of all scopes.
    #[cfg(test)]
    pub(super) fn tokens(&self) -> usize {
        self.scopes
            .iter()
            .map(|(_, evidence)| evidence.fuses.tokens())
            .sum()
    }

    fn sent(&mut self, case: &Case, now: Duration) {
        if let Some(evidence) = self.evidence(case.scope.as_ref()) {
            evidence.guard.sent(now);
            evidence.fuses.note(case.token, case.key, Seen::Sent, now);
        }
        self.collect_changes();
    }

    fn certain(&mut self, case: &Case, reason: Reason, since: UnixMillis, now: Duration) -> PushAnswer {
        let is_held = self.evidence(case.scope.as_ref()).is_some_and(|evidence| {
            evidence.fuses.note(case.token, case.key, Seen::Certain, now);
            evidence.fuses.holds_certain()
        });
        self.collect_changes();
        if is_held {
            held()
        } else {
            PushAnswer::invalid_token(reason, since)
        }
    }

    fn conditional(&mut self, case: &Case, reason: Reason, since: UnixMillis, now: Duration) -> PushAnswer {
        let Some(evidence) = self.evidence(case.scope.as_ref()) else {
            return unconfirmed();
        };
        evidence.guard.bad(case.token, now);
        evidence.fuses.note(case.token, case.key, Seen::Conditional, now);
        let answer = match (
            evidence.fuses.holds_conditional(case.key),
            evidence.guard.proves(now),
        ) {
            (true, _) => held(),
            (false, false) => unconfirmed(),
            (false, true) => PushAnswer::invalid_token(reason, since),
        };
        self.collect_changes();
        answer
    }

    /// The evidence of this generation of the scope; `None` when a newer one is known, or it is not known which.
    fn evidence(&mut self, scope: Option<&Scope>) -> Option<&mut Evidence> {
        let scope = scope?;
        match self.scopes.iter().position(|(known, _)| known.name == scope.name) {
            Some(index) => {
                let known = self.scopes.get(index).map_or(0, |(known, _)| known.generation);
                if scope.generation < known {
                    return None;
                }
                let entry = self.scopes.remove(index);
                if scope.generation == known {
                    self.scopes.push(entry);
                } else {
                    self.retire(entry);
                    self.scopes.push((scope.clone(), Evidence::default()));
                }
            }
            None => {
                if self.scopes.len() >= SCOPES {
                    let entry = self.scopes.remove(0);
                    self.retire(entry);
                }
                self.scopes.push((scope.clone(), Evidence::default()));
            }
        }
        self.scopes.last_mut().map(|(_, evidence)| evidence)
    }

    /// A scope that goes takes its alarms with it.
    fn retire(&mut self, (scope, evidence): (Scope, Evidence)) {
        for fuse in [FuseName::Conditional, FuseName::SingleInstance, FuseName::Certain] {
            if evidence.fuses.is_open(fuse) {
                let change = FuseChange {
                    fuse,
                    open: false,
                    key: None,
                    share: Default::default(),
                };
                self.changes.push(ScopeChange {
                    scope: scope.name.clone(),
                    change,
                    gauge: false,
                });
            }
        }
    }

    fn collect_changes(&mut self) {
        for (scope, evidence) in &mut self.scopes {
            for change in evidence.fuses.take_changes() {
                let gauge = evidence.fuses.is_open(change.fuse);
                self.changes.push(ScopeChange {
                    scope: scope.name.clone(),
                    change,
                    gauge,
                });
            }
        }
    }
}

fn held() -> PushAnswer {
    PushAnswer::failed(Reason::RelayMisconfigured, true, Some(hint::seconds(HELD_RETRY)))
}

fn unconfirmed() -> PushAnswer {
    PushAnswer::failed(
        Reason::UnconfirmedToken,
        true,
        Some(hint::seconds(UNCONFIRMED_RETRY)),
    )
}

/// A provider's client says `unconfirmed_token` too, of a verdict that nothing could prove.
fn failed(failure: &Failure) -> PushAnswer {
    if failure.reason == Reason::UnconfirmedToken {
        return unconfirmed();
    }
    let retry_after = holds::retry_after(failure)
        .filter(|_| failure.retryable)
        .map(hint::seconds);
    PushAnswer::failed(failure.reason, failure.retryable, retry_after)
}

#[cfg(test)]
mod tests;
