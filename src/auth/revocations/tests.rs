use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::store::revocation::{Cause, Gone};

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const HOUR: u64 = 3600;
const KID: Kid = Kid([1; 6]);

fn instance() -> InstanceId {
    InstanceId::from_bytes([7; 16])
}

fn at(seconds: u64) -> UnixMillis {
    NOW.plus_millis(seconds * 1000)
}

fn ask(generation: u32, grace_seconds: u64, now: UnixMillis) -> Ask<'static> {
    Ask {
        generation,
        grace_seconds,
        now,
        kids: &[KID],
    }
}

fn fresh_entry(entry: Option<&Entry>, ask: &Ask<'_>) -> Entry {
    match decide(entry, ask) {
        Rotation::Fresh(entry) => entry,
        other => panic!("{other:?}"),
    }
}

fn rotated(entry: &Entry) -> &Rotated {
    match &entry.state {
        State::Rotated(rotated) => rotated,
        State::Gone(_) => panic!("gone"),
    }
}

fn used(entry: &Entry) -> Entry {
    Entry {
        state: State::Rotated(Rotated {
            used: true,
            ..rotated(entry).clone()
        }),
        ..entry.clone()
    }
}

#[test]
fn the_old_key_works_until_its_grace_is_over() {
    let entry = fresh_entry(None, &ask(0, HOUR, NOW));
    assert_eq!(
        (rotated(&entry).newest, rotated(&entry).previous_valid_until()),
        (1, at(HOUR))
    );
    assert!(entry.allows(0, UnixMillis(at(HOUR).0 - 1)) && !entry.allows(0, at(HOUR)));
    assert!(entry.allows(1, at(u64::from(u32::MAX))));
}

#[test]
fn without_grace_the_old_key_ends_at_once_and_may_only_ask_again() {
    let entry = fresh_entry(None, &ask(0, 0, NOW));
    assert!(!entry.allows(0, NOW));
    for later in [0, 1, 1_000_000] {
        assert_eq!(
            decide(Some(&entry), &ask(0, HOUR, at(later))),
            Rotation::Again(entry.clone())
        );
    }
    assert_eq!(decide(Some(&used(&entry)), &ask(0, HOUR, NOW)), Rotation::Revoked);
}

#[test]
fn asking_again_gives_the_same_key_and_never_more_time() {
    let entry = fresh_entry(None, &ask(0, HOUR, NOW));
    assert_eq!(
        decide(Some(&entry), &ask(0, 5 * HOUR, at(60))),
        Rotation::Again(entry.clone())
    );
    let Rotation::Again(shorter) = decide(Some(&entry), &ask(0, 0, at(60))) else {
        panic!("the same key")
    };
    assert_eq!(
        rotated(&shorter).previous_valid_until(),
        at(60),
        "at once is at once"
    );
    assert_eq!(rotated(&shorter).issued_at, rotated(&entry).issued_at);
}

#[test]
fn only_the_newest_rotates_once_it_is_in_use() {
    let entry = used(&fresh_entry(None, &ask(0, HOUR, NOW)));
    assert_eq!(decide(Some(&entry), &ask(0, HOUR, at(1))), Rotation::NotNewest);
    assert_eq!(decide(Some(&entry), &ask(0, HOUR, at(HOUR))), Rotation::Revoked);
    assert_eq!(
        rotated(&fresh_entry(Some(&entry), &ask(1, HOUR, at(1)))).newest,
        2
    );
}

#[test]
fn two_rotations_within_a_day_keep_both_promises() {
    let first = used(&fresh_entry(None, &ask(0, 24 * HOUR, NOW)));
    let second = fresh_entry(Some(&first), &ask(1, 24 * HOUR, at(HOUR)));
    assert!(second.allows(0, at(24 * HOUR - 1)) && !second.allows(0, at(24 * HOUR)));
    assert!(second.allows(1, at(25 * HOUR - 1)) && !second.allows(1, at(25 * HOUR)));
}

#[test]
fn a_rotation_without_grace_ends_all_earlier_keys() {
    let first = used(&fresh_entry(None, &ask(0, 24 * HOUR, NOW)));
    let second = fresh_entry(Some(&first), &ask(1, 0, at(HOUR)));
    assert!(!second.allows(0, at(HOUR)) && !second.allows(1, at(HOUR)) && second.allows(2, at(HOUR)));
}

#[test]
fn the_ninth_key_in_grace_costs_the_oldest_its_rest() {
    let mut entry = fresh_entry(None, &ask(0, HOUR, NOW));
    for generation in 1..9 {
        entry = fresh_entry(Some(&entry), &ask(generation, HOUR, at(u64::from(generation))));
    }
    assert_eq!(rotated(&entry).grace.len(), GENERATIONS_IN_GRACE);
    assert!(!entry.allows(0, at(9)) && entry.allows(1, at(9)));
    assert!(entry.is_well_formed());
}

#[test]
fn a_key_newer_than_the_list_knows_is_valid_and_rotates_on() {
    let entry = fresh_entry(None, &ask(0, HOUR, NOW));
    assert!(
        entry.allows(5, NOW),
        "signed by this relay, so made by it: the list is a restored one"
    );
    let next = fresh_entry(Some(&entry), &ask(5, HOUR, NOW));
    assert_eq!(rotated(&next).newest, 6);
    assert!(next.allows(0, NOW) && !next.allows(3, NOW));
}

#[test]
fn nothing_rotates_after_the_end() {
    let gone = Entry {
        kids: vec![KID],
        state: State::Gone(Gone {
            at: NOW,
            cause: Cause::Revoked,
        }),
    };
    assert_eq!(decide(Some(&gone), &ask(0, 0, NOW)), Rotation::Revoked);
    assert_eq!(
        decide(None, &ask(u32::MAX, 0, NOW)),
        Rotation::NotNewest,
        "no number is left"
    );
}

#[test]
fn secrets_of_earlier_generations_stay_on_the_entry() {
    let entry = fresh_entry(None, &ask(0, HOUR, NOW));
    let next = fresh_entry(
        Some(&entry),
        &Ask {
            kids: &[Kid([0; 6])],
            ..ask(1, HOUR, NOW)
        },
    );
    assert_eq!(next.kids, [Kid([0; 6]), KID]);
}

#[test]
fn the_first_use_of_a_new_key_is_noted_once_and_saved() {
    let entry = fresh_entry(None, &ask(0, HOUR, NOW));
    let list = Revocations::new(vec![(instance(), entry)]);
    assert_eq!(list.check(instance(), 0, NOW), Check::Valid);
    assert_eq!(list.take_unsaved(), [], "the old key was used");
    assert_eq!(list.check(instance(), 1, NOW), Check::Valid);
    assert_eq!(list.check(instance(), 1, NOW), Check::Valid);
    let unsaved = list.take_unsaved();
    assert!(unsaved.len() == 1 && rotated(&unsaved[0].1).used);
    assert_eq!(list.take_unsaved(), []);
    list.put_back(unsaved.clone());
    assert_eq!(list.take_unsaved(), unsaved);
}

#[test]
fn a_full_list_takes_changes_of_what_it_has_and_whatever_the_operator_says() {
    let entry = fresh_entry(None, &ask(0, HOUR, NOW));
    let list = Revocations {
        capacity: 1,
        ..Revocations::new(vec![(instance(), entry.clone())])
    };
    let other = InstanceId::from_bytes([8; 16]);
    assert!(list.has_room_for(instance()) && !list.has_room_for(other));
    list.join(other, &entry);
    assert_eq!(list.len(), 2);
}

#[test]
fn what_changed_since_the_store_forgot_it_is_kept() {
    let entry = fresh_entry(None, &ask(0, HOUR, NOW));
    let list = Revocations::new(vec![(instance(), entry.clone())]);
    list.check(instance(), 1, NOW);
    list.forget(&[(instance(), entry.clone())]);
    assert_eq!(list.len(), 1);
    list.forget(&[(instance(), used(&entry))]);
    assert_eq!(list.len(), 0);
    assert_eq!(list.check(instance(), 0, NOW), Check::Valid);
}

/// What the contract says, in the plainest form: for each rotated-away generation its end.
#[derive(Default)]
struct Model {
    newest: u32,
    used: bool,
    ends: BTreeMap<u32, u64>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Rotate { back: u32, grace_seconds: u64 },
    Use { back: u32 },
    Wait { seconds: u64 },
}

impl Model {
    fn is_valid(&self, generation: u32, now: UnixMillis) -> bool {
        self.ends.get(&generation).is_none_or(|end| now.0 < *end)
    }

    fn rotate(&mut self, generation: u32, grace_seconds: u64, now: UnixMillis) -> &'static str {
        let end = now.0 + grace_seconds * 1000;
        if generation == self.newest {
            let mut living: Vec<u32> = (0..generation)
                .filter(|earlier| self.is_valid(*earlier, now))
                .collect();
            living.push(generation);
            self.ends.insert(generation, end);
            living[..living.len().saturating_sub(GENERATIONS_IN_GRACE)]
                .iter()
                .for_each(|oldest| {
                    self.ends.insert(*oldest, 0);
                });
            (self.newest, self.used) = (self.newest + 1, false);
        } else if generation + 1 != self.newest || self.used {
            return if self.is_valid(generation, now) {
                "not newest"
            } else {
                "revoked"
            };
        }
        self.ends.values_mut().for_each(|known| *known = end.min(*known));
        if generation + 1 == self.newest {
            "given"
        } else {
            "impossible"
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..4_u32, 0..4_u64).prop_map(|(back, hours)| Step::Rotate { back, grace_seconds: hours * HOUR }),
        2 => (0..3_u32).prop_map(|back| Step::Use { back }),
        2 => (0..3 * HOUR).prop_map(|seconds| Step::Wait { seconds }),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn the_list_agrees_with_the_plain_model(steps in steps()) {
        let (list, mut model, mut now) = (Revocations::new(Vec::new()), Model { used: true, ..Model::default() }, NOW);
        let mut revoked = Vec::new();
        for step in steps {
            match step {
                Step::Wait { seconds } => now = now.plus_millis(seconds * 1000),
                Step::Use { back } => {
                    let generation = model.newest.saturating_sub(back);
                    let valid = list.check(instance(), generation, now) == Check::Valid;
                    prop_assert_eq!(valid, model.is_valid(generation, now));
                    model.used |= generation == model.newest;
                }
                Step::Rotate { back, grace_seconds } => {
                    let generation = model.newest.saturating_sub(back);
                    let said = match decide(list.get(instance()).as_ref(), &ask(generation, grace_seconds, now)) {
                        Rotation::Fresh(entry) | Rotation::Again(entry) => {
                            prop_assert!(entry.is_well_formed());
                            list.join(instance(), &entry);
                            prop_assert_eq!(list.get(instance()), Some(entry), "the join adds nothing");
                            "given"
                        }
                        Rotation::NotNewest => "not newest",
                        Rotation::Revoked => "revoked",
                    };
                    prop_assert_eq!(said, model.rotate(generation, grace_seconds, now));
                }
            }
            let allows = |generation| list.get(instance()).is_none_or(|entry| entry.allows(generation, now));
            prop_assert!((0..=model.newest).all(|generation| allows(generation) == model.is_valid(generation, now)));
            prop_assert!(revoked.iter().all(|generation| !allows(*generation)), "nothing comes back");
            revoked = (0..model.newest).filter(|generation| !allows(*generation)).collect();
        }
    }
}
