use std::collections::{HashMap, HashSet, VecDeque};

use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds { all: 40, per_key: 12 };

fn key(number: u64) -> TurnKey {
    TurnKey::Group(number)
}

#[derive(Clone, Debug)]
enum Step {
    Join(u64),
    /// The n-th of those that wait leaves.
    Leave(usize),
    GiveBack,
    Limit(usize),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..6_u64).prop_map(Step::Join),
        3 => any::<usize>().prop_map(Step::Leave),
        8 => Just(Step::GiveBack),
        2 => (0..8_usize).prop_map(Step::Limit),
        1 => Just(Step::Clear),
    ];
    proptest::collection::vec(step, 1..400)
}

/// Who waits, in which order of joining, as a plain list.
#[derive(Default)]
struct Model {
    waiting: Vec<(Ticket, u64, u32)>,
    /// Of each key: the keys that wait since its last turn and had none since.
    overdue: HashMap<u64, HashSet<u64>>,
}

impl Model {
    fn granted(&mut self, owner: u64, push: u32) {
        let at = self.waiting.iter().position(|entry| entry.2 == push).unwrap();
        let first_of_key = self.waiting.iter().position(|entry| entry.1 == owner).unwrap();
        assert_eq!(at, first_of_key, "a key's pushes go in the order they came");
        self.waiting.remove(at);
        let passed_over = self.overdue.remove(&owner).unwrap_or_default();
        assert!(
            passed_over.is_empty(),
            "{owner} had two turns while {passed_over:?} waited"
        );
        for others in self.overdue.values_mut() {
            others.remove(&owner);
        }
        let others = self
            .waiting
            .iter()
            .map(|entry| entry.1)
            .filter(|other| *other != owner)
            .collect();
        self.overdue.insert(owner, others);
    }

    fn left(&mut self, owner: u64) {
        if self.waiting.iter().all(|entry| entry.1 != owner) {
            self.overdue.values_mut().for_each(|others| {
                others.remove(&owner);
            });
        }
    }
}

proptest! {
    #[test]
    fn turns_are_fair_never_above_the_limit_and_nothing_is_lost(steps in steps(), first_limit in 0..8_usize) {
        let mut turns: Turns<(u64, u32)> = Turns::new(BOUNDS, first_limit);
        let mut model = Model::default();
        let (mut limit, mut taken, mut push) = (first_limit, 0_usize, 0_u32);
        for step in steps {
            match step {
                Step::Join(owner) => {
                    push += 1;
                    let in_line = model.waiting.iter().filter(|entry| entry.1 == owner).count();
                    match turns.join(key(owner), (owner, push)) {
                        Joined::Turn => {
                            prop_assert!(model.waiting.is_empty() && taken < limit);
                            taken += 1;
                        }
                        Joined::Waiting(ticket) => {
                            prop_assert!(taken >= limit);
                            model.waiting.push((ticket, owner, push));
                        }
                        Joined::Full => {
                            prop_assert!(in_line == BOUNDS.per_key || model.waiting.len() == BOUNDS.all);
                        }
                    }
                }
                Step::Leave(which) if !model.waiting.is_empty() => {
                    let (ticket, owner, _) = model.waiting.remove(which % model.waiting.len());
                    prop_assert!(turns.leave(ticket));
                    prop_assert!(!turns.leave(ticket), "a place is left once");
                    model.left(owner);
                }
                Step::GiveBack if taken > 0 => {
                    turns.give_back();
                    taken -= 1;
                }
                Step::Limit(new_limit) => {
                    turns.set_limit(new_limit);
                    limit = new_limit;
                }
                Step::Clear => {
                    let mut cleared = turns.clear();
                    cleared.sort_unstable();
                    let mut expected: Vec<_> = model.waiting.iter().map(|entry| (entry.1, entry.2)).collect();
                    expected.sort_unstable();
                    prop_assert_eq!(cleared, expected);
                    model = Model::default();
                }
                Step::Leave(_) | Step::GiveBack => {}
            }
            while let Some((owner, granted)) = turns.grant() {
                taken += 1;
                prop_assert!(taken <= limit);
                model.granted(owner, granted);
            }
            prop_assert_eq!((turns.taken(), turns.waiting()), (taken, model.waiting.len()));
            prop_assert!(taken >= limit || model.waiting.is_empty(), "a free turn and a waiter");
            prop_assert_eq!(turns.lines.len(), turns.order.len());
        }
    }
}

#[test]
fn one_push_of_a_small_instance_waits_one_turn_behind_a_thousand_of_another() {
    let mut turns = Turns::new(
        Bounds {
            all: 10_000,
            per_key: 2_000,
        },
        1,
    );
    assert_eq!(turns.join(key(1), 0), Joined::Turn);
    for push in 1..=1_000 {
        turns.join(key(1), push);
    }
    turns.join(key(2), 5_000);
    let mut granted = VecDeque::new();
    for _ in 0..3 {
        turns.give_back();
        granted.extend(turns.grant());
    }
    assert_eq!(granted, [1, 5_000, 2]);
}

#[test]
fn one_key_fills_its_own_line_and_not_the_queue() {
    let mut turns = Turns::new(Bounds { all: 10, per_key: 4 }, 0);
    for push in 0..4 {
        assert!(matches!(turns.join(key(1), push), Joined::Waiting(_)));
    }
    assert_eq!(turns.join(key(1), 4), Joined::Full);
    assert!(matches!(turns.join(key(2), 5), Joined::Waiting(_)));
    assert_eq!(turns.waiting(), 5);
}

#[test]
fn a_lower_limit_takes_no_turn_away_and_gives_none_until_enough_are_back() {
    let mut turns = Turns::new(BOUNDS, 3);
    for push in 0..5 {
        turns.join(key(push), push);
    }
    turns.set_limit(1);
    for _ in 0..2 {
        turns.give_back();
        assert_eq!(turns.grant(), None);
    }
    turns.give_back();
    assert_eq!(turns.grant(), Some(3));
    assert_eq!((turns.taken(), turns.waiting()), (1, 1));
}
