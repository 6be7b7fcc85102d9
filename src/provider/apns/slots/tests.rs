use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds {
    connections: 4,
    backoff_first: Duration::from_millis(100),
    backoff_longest: Duration::from_secs(2),
};

fn open(slots: &mut Slots, id: u64, limit: usize) {
    slots.opened(id);
    slots.set_limit(id, limit);
    slots.answered(id);
}

#[test]
fn the_first_push_goes_alone_until_the_peer_has_shown_its_limit() {
    let mut slots = Slots::new(BOUNDS);
    assert!(slots.start_dial(100));
    slots.opened(1);
    assert_eq!((slots.take(None), slots.take(None)), (Some(1), None));
    assert!(!slots.start_dial(99), "nothing is known of the peer yet");
    slots.set_limit(1, 3);
    assert_eq!([0; 3].map(|_| slots.take(None)), [Some(1), Some(1), None]);
}

#[test]
fn another_connection_is_opened_only_when_all_are_full_one_at_a_time_and_up_to_the_bound() {
    let mut slots = Slots::new(BOUNDS);
    for id in 1..=4 {
        assert!(slots.start_dial(5));
        assert!(!slots.start_dial(5), "one at a time");
        open(&mut slots, id, 2);
        assert!(!slots.start_dial(5), "it has room");
        assert_eq!([0; 2].map(|_| slots.take(None)), [Some(id), Some(id)]);
    }
    assert!(!slots.start_dial(5), "four are enough");
}

#[test]
fn nothing_is_dialled_when_nobody_waits() {
    let mut slots = Slots::new(BOUNDS);
    assert!(!slots.start_dial(0));
}

#[test]
fn pushes_spread_to_the_least_loaded_and_keep_off_the_avoided() {
    let mut slots = Slots::new(BOUNDS);
    open(&mut slots, 1, 10);
    open(&mut slots, 2, 10);
    let taken: Vec<_> = (0..4).filter_map(|_| slots.take(None)).collect();
    assert_eq!(taken.iter().filter(|id| **id == 1).count(), 2);
    assert_eq!([0; 3].map(|_| slots.take(Some(1))), [Some(2); 3]);
    slots.out(2, Duration::ZERO, 0);
    assert_eq!(slots.take(Some(1)), Some(1), "rather the avoided one than none");
}

#[test]
fn a_lowered_limit_holds_back_until_enough_streams_have_ended() {
    let mut slots = Slots::new(BOUNDS);
    open(&mut slots, 1, 1000);
    assert!((0..500).all(|_| slots.take(None).is_some()));
    slots.set_limit(1, 1);
    for _ in 0..499 {
        slots.give_back(1);
        assert_eq!(slots.take(None), None);
    }
    slots.give_back(1);
    assert_eq!(slots.take(None), Some(1));
}

#[test]
fn capacity_is_enough_for_the_breaker_until_a_peer_shows_itself_then_what_is_allowed_and_could_be_opened() {
    let mut slots = Slots::new(BOUNDS);
    assert_eq!(slots.capacity(), UNCONNECTED);
    slots.opened(1);
    assert_eq!((slots.capacity(), slots.reached()), (UNCONNECTED, false));
    slots.set_limit(1, 1);
    assert_eq!((slots.capacity(), slots.reached()), (UNCONNECTED, false));
    slots.answered(1);
    assert_eq!((slots.capacity(), slots.reached()), (4, true));
    slots.set_limit(1, 100);
    assert_eq!(slots.capacity(), 400);
    slots.set_limit(1, usize::MAX);
    assert_eq!(slots.capacity(), 4 * STREAMS_PER_CONNECTION);
    slots.set_limit(1, 0);
    assert_eq!(slots.capacity(), 1);
    slots.out(1, Duration::ZERO, 0);
    assert_eq!(slots.capacity(), UNCONNECTED);
}

#[test]
fn back_off_doubles_to_its_bound_and_an_answer_ends_it() {
    let mut slots = Slots::new(BOUNDS);
    let mut steps = Vec::new();
    for _ in 0..8 {
        slots.dial_failed(Duration::ZERO, 255);
        steps.push(slots.next_dial().as_millis());
    }
    assert_eq!(steps, [100, 200, 400, 800, 1600, 2000, 2000, 2000]);
    slots.opened(1);
    slots.answered(1);
    slots.out(1, Duration::from_secs(9), 255);
    assert!(
        slots.next_dial() <= Duration::from_secs(2),
        "it had answered: no new failure"
    );
    slots.dial_failed(Duration::from_secs(9), 0);
    assert_eq!(
        slots.next_dial(),
        Duration::from_millis(9050),
        "from the first step again, half of it by chance"
    );
}

#[test]
fn a_peer_that_accepts_and_closes_without_an_answer_is_backed_off() {
    let mut slots = Slots::new(BOUNDS);
    slots.opened(1);
    slots.out(1, Duration::from_secs(5), 255);
    assert_eq!(slots.next_dial(), Duration::from_millis(5100));
}

const NOW: Duration = Duration::from_secs(100);

fn at(milliseconds: u64) -> Duration {
    NOW + Duration::from_millis(milliseconds)
}

#[test]
fn three_tries_in_a_row_without_a_good_answer_make_a_connection_due() {
    let mut slots = Slots::new(BOUNDS);
    open(&mut slots, 1, 10);
    for number in 0..3 {
        assert_eq!(slots.replace_one(at(number)), None, "{number} in a row");
        slots.missed(1, at(number));
    }
    assert_eq!(slots.replace_one(at(3)), Some(1));
}

#[test]
fn a_good_answer_ends_a_row_and_tries_from_before_it_begin_none() {
    let mut slots = Slots::new(BOUNDS);
    open(&mut slots, 1, 10);
    (0..3).for_each(|number| slots.missed(1, at(number)));
    slots.answered_well(1, at(10));
    (0..9).for_each(|number| slots.missed(1, at(number)));
    assert!(!slots.any_missed());
    assert_eq!(slots.replace_one(at(60_000)), None);
}

#[test]
fn an_answer_that_is_a_fault_proves_the_peer_and_ends_no_row() {
    let mut slots = Slots::new(BOUNDS);
    slots.opened(1);
    for number in 0..3 {
        slots.answered(1);
        slots.missed(1, at(number));
    }
    assert!(slots.reached());
    assert_eq!(slots.replace_one(at(3)), Some(1));
}

#[test]
fn a_short_row_is_enough_when_nothing_good_has_come_for_long() {
    let mut slots = Slots::new(BOUNDS);
    open(&mut slots, 1, 10);
    slots.missed(1, at(0));
    assert_eq!(slots.replace_one(at(4_999)), None);
    assert_eq!(slots.replace_one(at(5_000)), Some(1));
}

#[test]
fn no_more_than_one_connection_is_replaced_in_a_second_and_condemned_ones_wait_as_well() {
    let mut slots = Slots::new(BOUNDS);
    for id in 1..=3 {
        open(&mut slots, id, 10);
        slots.condemn(id);
    }
    let mut replaced = Vec::new();
    for millisecond in 0..2_000 {
        let Some(id) = slots.replace_one(at(millisecond)) else {
            continue;
        };
        slots.out(id, at(millisecond), 0);
        replaced.push(millisecond);
    }
    assert_eq!(replaced, [0, 1_000]);
}

#[test]
fn a_push_that_finds_no_sound_connection_gets_one_dialled_up_to_the_bound() {
    let mut slots = Slots::new(BOUNDS);
    open(&mut slots, 1, 10);
    assert_eq!(slots.take_sound(Some(1)), None);
    assert!(!slots.start_dial(0), "nobody waits for just any stream");
    assert!(slots.may_open(NOW) && slots.start_dial_beside(Some(1)));
    assert!(!slots.start_dial_beside(Some(1)), "one at a time");
    open(&mut slots, 2, 10);
    assert_eq!(slots.take_sound(Some(1)), Some(2));
    assert!(!slots.start_dial_beside(Some(1)), "there is one with room");
    slots.condemn(2);
    assert_eq!((slots.take_sound(Some(1)), slots.take(Some(1))), (None, Some(1)));
    assert!(slots.start_dial_beside(Some(1)), "the other is worn");
    open(&mut slots, 3, 10);
    assert!(slots.take_sound(Some(1)).is_some());
    slots.condemn(3);
    assert!(slots.start_dial_beside(Some(1)));
    open(&mut slots, 4, 10);
    slots.condemn(4);
    assert!(
        !slots.may_open(NOW) && !slots.start_dial_beside(Some(1)),
        "four are enough"
    );
}

#[test]
fn nobody_hopes_for_another_connection_while_dials_fail() {
    let mut slots = Slots::new(BOUNDS);
    open(&mut slots, 1, 10);
    assert!(slots.start_dial_beside(Some(1)));
    slots.dial_failed(NOW, 255);
    assert!(!slots.may_open(at(99)));
    assert!(slots.may_open(at(100)));
}

/// Pushes one after the other, as the pool sends them; each connection is either well or of no use.
struct Row {
    slots: Slots,
    now: Duration,
    dials: u64,
    lost: u32,
}

impl Row {
    fn new() -> Self {
        Self {
            slots: Slots::new(BOUNDS),
            now: NOW,
            dials: 0,
            lost: 0,
        }
    }

    fn push(&mut self, gap: u64, is_well: impl Fn(u64) -> bool) {
        self.now += Duration::from_millis(gap);
        self.replace();
        let id = self
            .slots
            .take_sound(None)
            .or_else(|| self.dial())
            .or_else(|| self.slots.take(None))
            .unwrap();
        self.slots.answered(id);
        if is_well(id) {
            self.slots.answered_well(id, self.now);
        } else {
            self.slots.missed(id, self.now);
            self.lost += 1;
        }
        self.replace();
        self.slots.give_back(id);
    }

    fn replace(&mut self) {
        if let Some(id) = self.slots.replace_one(self.now) {
            self.slots.out(id, self.now, 0);
        }
    }

    fn dial(&mut self) -> Option<u64> {
        let starts = self.slots.may_open(self.now) && self.slots.start_dial_beside(None);
        starts.then(|| {
            self.dials += 1;
            open(&mut self.slots, self.dials, 10);
        })?;
        self.slots.take_sound(None)
    }
}

proptest! {
    #[test]
    fn connections_of_no_use_cost_three_pushes_each_whenever_the_pushes_come(
        useless in 1_u64..=4,
        gaps in prop::collection::vec(0_u64..2_000, 50..100),
    ) {
        let mut row = Row::new();
        for gap in gaps {
            row.push(gap, |id| id > useless);
        }
        prop_assert!(row.lost <= u32::try_from(useless).unwrap() * ROW, "{}", row.lost);
        prop_assert!(row.dials > useless, "another one was dialled");
    }

    #[test]
    fn a_provider_that_is_down_behind_every_connection_costs_no_more_dials_than_the_bound(
        pushes in prop::collection::vec((0_u64..300, prop::bool::weighted(0.2)), 1..300),
    ) {
        let mut row = Row::new();
        for (gap, is_well) in pushes {
            row.push(gap, |_| is_well);
            let seconds = (row.now - NOW).as_secs();
            prop_assert!(row.dials <= BOUNDS.connections as u64 + 1 + seconds, "{} in {seconds} s", row.dials);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Take,
    GiveBack(usize),
    Limit(u64, usize),
    Open,
    Out(u64),
    Answered(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => Just(Op::Take),
        4 => any::<usize>().prop_map(Op::GiveBack),
        2 => (0_u64..8, 0_usize..20).prop_map(|(id, limit)| Op::Limit(id, limit)),
        2 => Just(Op::Open),
        1 => (0_u64..8).prop_map(Op::Out),
        1 => (0_u64..8).prop_map(Op::Answered),
    ]
}

proptest! {
    #[test]
    fn no_connection_is_ever_given_more_than_its_limit_at_that_moment(ops in prop::collection::vec(op(), 1..200)) {
        let mut slots = Slots::new(BOUNDS);
        let mut limits: HashMap<u64, usize> = HashMap::new();
        let mut taken: Vec<u64> = Vec::new();
        let mut next = 0;
        for op in ops {
            match op {
                Op::Take => {
                    let Some(id) = slots.take(None) else { continue };
                    taken.push(id);
                    let in_flight = taken.iter().filter(|other| **other == id).count();
                    prop_assert!(in_flight <= limits[&id]);
                }
                Op::GiveBack(index) if !taken.is_empty() => {
                    slots.give_back(taken.swap_remove(index % taken.len()));
                }
                Op::GiveBack(_) => {}
                Op::Limit(id, limit) => {
                    slots.set_limit(id, limit);
                    limits.entry(id).and_modify(|known| *known = limit);
                }
                Op::Open if slots.start_dial(1) => {
                    slots.opened(next);
                    limits.insert(next, 1);
                    next += 1;
                }
                Op::Open => {}
                Op::Out(id) => {
                    slots.out(id, Duration::ZERO, 0);
                    limits.remove(&id);
                }
                Op::Answered(id) => slots.answered(id),
            }
            prop_assert!(slots.members.len() <= BOUNDS.connections);
            prop_assert!(slots.capacity() >= 1);
        }
    }
}
