//! The books come out even, whatever happens, and a day of sessions leaves nothing behind.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Create {
        session: u8,
        by: u8,
        is_rendezvous: bool,
        is_sealed: bool,
    },
    Bind {
        session: u8,
        slot: Slot,
        connection: u128,
        attempt: u64,
        last: u64,
    },
    Append {
        session: u8,
        slot: Slot,
        length: usize,
    },
    Trim {
        session: u8,
        slot: Slot,
        seq: u64,
    },
    Unbind {
        session: u8,
        slot: Slot,
        departure: Departure,
    },
    Remove {
        session: u8,
        by: u8,
    },
    Sweep,
    Wait {
        seconds: u64,
    },
}

impl Bench {
    /// Does it to whatever connection has the slot now.
    fn step(&self, step: Step) {
        match step {
            Step::Create {
                session,
                by,
                is_rendezvous,
                is_sealed,
            } => {
                let mut new = asked(session, by);
                new.is_rendezvous = is_rendezvous;
                new.settings.e2e = if is_sealed {
                    EndToEnd::Required
                } else {
                    EndToEnd::Optional
                };
                self.create(new);
            }
            Step::Bind {
                session,
                slot,
                connection,
                attempt,
                last,
            } => {
                let connection = ConnectionHash(connection);
                let incarnation = Incarnation(1);
                let bind = Bind {
                    slot,
                    incarnation,
                    connection,
                    attempt,
                    last,
                };
                let _ = now(self.store.bind(id(session), bind));
            }
            Step::Append {
                session,
                slot,
                length,
            } => {
                let (epoch, n) = self.holder(session, slot);
                let content = Opaque::new("x".repeat(length));
                let _ = now(self.store.append(id(session), slot, epoch, n, content));
            }
            Step::Trim { session, slot, seq } => {
                let (epoch, _) = self.holder(session, slot);
                let _ = now(self.store.read(id(session), slot, epoch, 0, usize::MAX));
                let _ = now(self.store.trim(id(session), slot, epoch, seq));
            }
            Step::Unbind {
                session,
                slot,
                departure,
            } => {
                let (epoch, _) = self.holder(session, slot);
                let _ = now(self.store.unbind(id(session), slot, epoch, departure));
            }
            Step::Remove { session, by } => drop(now(self.store.remove(id(session), instance(by)))),
            Step::Sweep => self.store.sweep(),
            Step::Wait { seconds } => self.clock.advance(Duration::from_secs(seconds)),
        }
    }

    /// The slot, given to a connection that nobody else is: its epoch, and the `n` expected next.
    fn holder(&self, session: u8, slot: Slot) -> (u64, u64) {
        let attempts = 1_000_000 + self.clock.0.fetch_add(1, Ordering::SeqCst);
        let bind = Bind {
            slot,
            incarnation: Incarnation(1),
            connection: ConnectionHash(3),
            attempt: attempts,
            last: 0,
        };
        now(self.store.bind(id(session), bind)).map_or((0, 0), |bound| (bound.epoch, bound.next))
    }

    /// The books say what the records hold.
    fn audit(&self) {
        let mut bytes = 0;
        let mut owners = std::collections::HashSet::new();
        for entry in &self.store.sessions {
            bytes += Slot::BOTH
                .iter()
                .map(|slot| entry.bytes_for(*slot))
                .sum::<usize>();
            owners.extend(Slot::BOTH.iter().filter_map(|slot| entry.instance_of(*slot)));
        }
        assert_eq!(self.kept(), (self.store.sessions.len(), bytes, owners.len()));
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let session = 0u8..4;
    let slot = prop_oneof![Just(Slot::A), Just(Slot::B)];
    let departure = prop_oneof![Just(Departure::Lost), Just(Departure::Bye)];
    let step = prop_oneof![
        4 => (session.clone(), 1u8..5, any::<bool>(), prop::bool::weighted(0.2)).prop_map(
            |(session, by, is_rendezvous, is_sealed)| Step::Create { session, by, is_rendezvous, is_sealed }
        ),
        3 => (session.clone(), slot.clone(), 1u128..4, 0u64..9, 0u64..4).prop_map(
            |(session, slot, connection, attempt, last)| Step::Bind { session, slot, connection, attempt, last }
        ),
        8 => (session.clone(), slot.clone(), 0usize..300)
            .prop_map(|(session, slot, length)| Step::Append { session, slot, length }),
        4 => (session.clone(), slot.clone(), 0u64..8)
            .prop_map(|(session, slot, seq)| Step::Trim { session, slot, seq }),
        2 => (session.clone(), slot, departure)
            .prop_map(|(session, slot, departure)| Step::Unbind { session, slot, departure }),
        1 => (session, 1u8..5).prop_map(|(session, by)| Step::Remove { session, by }),
        1 => Just(Step::Sweep),
        3 => (0u64..40).prop_map(|seconds| Step::Wait { seconds }),
    ];
    prop::collection::vec(step, 1..150)
}

proptest! {
    #[test]
    fn the_books_say_what_is_kept_and_nothing_when_all_is_over(steps in steps()) {
        let bench = Bench::new(2, 1000, 2000);
        for step in steps {
            bench.step(step);
            bench.audit();
        }
        bench.clock.advance(Duration::from_secs(600));
        bench.store.sweep();
        prop_assert_eq!(bench.kept(), (0, 0, 0));
    }
}

#[test]
fn a_day_of_sessions_that_talk_idle_leave_and_expire_leaves_nothing() {
    let bench = Bench::new(500, 100_000, 1_000_000);
    let mut peak = 0;
    for second in 0..24 * 3600_u64 {
        bench.clock.advance(Duration::from_secs(1));
        bench.store.sweep();
        peak = peak.max(bench.store.snapshot().sessions);
        if second.is_multiple_of(4) {
            live(&bench, second);
        }
    }
    // One comes every four seconds; three of five live two minutes, the others are gone at once or soon.
    assert!((18..=20).contains(&peak), "{peak}");
    bench.audit();
    bench.clock.advance(Duration::from_secs(600));
    bench.store.sweep();
    assert_eq!(bench.kept(), (0, 0, 0));
    assert_eq!(bench.store.sessions.capacity(), 0);
}

/// One session comes: it is left alone, talked in, left by both, or removed.
fn live(bench: &Bench, second: u64) {
    let number = second / 4;
    let new = NewSession {
        id: SessionId::from_bytes(u128::from(number).to_be_bytes()),
        ..asked(1, (number % 50) as u8)
    };
    assert!(matches!(bench.create(new), Creation::Made(_)));
    let bind = |slot| {
        let bind = Bind {
            slot,
            incarnation: Incarnation(1),
            connection: ConnectionHash(1),
            attempt: 1,
            last: 0,
        };
        now(bench.store.bind(new.id, bind)).unwrap().epoch
    };
    if number.is_multiple_of(5) {
        return;
    }
    let (a, b) = (bind(Slot::A), bind(Slot::B));
    for n in 1..=8 {
        let sent = now(bench
            .store
            .append(new.id, Slot::A, a, n, Opaque::new("x".repeat(500))));
        assert_eq!(sent.unwrap(), Appended::Stored);
    }
    match number % 5 {
        1 => {}
        2 => {
            let read = bench.store.read(new.id, Slot::B, b, 0, usize::MAX);
            assert_eq!(now(read).unwrap().entries.len(), 8);
            let trimmed = now(bench.store.trim(new.id, Slot::B, b, 5));
            assert_eq!(trimmed.unwrap(), Trimmed::Trimmed);
        }
        3 => [(Slot::A, a), (Slot::B, b)]
            .into_iter()
            .for_each(|(slot, epoch)| {
                now(bench.store.unbind(new.id, slot, epoch, Departure::Bye)).unwrap();
            }),
        _ => assert!(now(bench.store.remove(new.id, new.instance)).unwrap()),
    }
}
