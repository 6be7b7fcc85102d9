use sovereign_relay_protocol::{push::PushAnswer, time::UnixMillis};

use super::*;

const START: Now = Now {
    mono: Duration::from_secs(100),
    unix: UnixMillis(0),
};

fn outcome(message: u128) -> Remembered {
    Remembered {
        message,
        answer: PushAnswer::sent(None),
    }
}

fn get(memory: &EmbeddedOutcomes, key: u128, now: Now) -> Option<Remembered> {
    memory.get(key, now).now_or_never().flatten()
}

fn put(memory: &EmbeddedOutcomes, key: u128, outcome: Remembered, now: Now) {
    memory.put(key, outcome, now).now_or_never().unwrap();
}

#[test]
fn an_outcome_is_remembered_for_ten_minutes() {
    let memory = EmbeddedOutcomes::new();
    put(&memory, 1, outcome(10), START);
    let end = START.plus(REMEMBERED);
    assert_eq!(
        get(&memory, 1, START.plus(REMEMBERED - Duration::from_millis(1))),
        Some(outcome(10))
    );
    assert_eq!(get(&memory, 1, end), None);
    assert_eq!(get(&memory, 2, START), None);
    put(&memory, 1, outcome(11), end);
    assert_eq!(get(&memory, 1, end), Some(outcome(11)));
}

#[test]
fn the_first_outcome_of_a_key_stays() {
    let memory = EmbeddedOutcomes::new();
    put(&memory, 1, outcome(10), START);
    put(&memory, 1, outcome(11), START.plus(Duration::from_secs(599)));
    assert_eq!(
        get(&memory, 1, START.plus(Duration::from_secs(599))),
        Some(outcome(10))
    );
    assert_eq!(
        get(&memory, 1, START.plus(REMEMBERED)),
        None,
        "a repeat does not prolong it"
    );
}

#[test]
fn a_flood_of_keys_does_not_grow_the_memory() {
    let memory = EmbeddedOutcomes::new();
    for key in 0..u128::from(OUTCOMES) * 2 {
        put(&memory, key, outcome(1), START);
    }
    assert!(memory.entries() <= OUTCOMES);
}

#[test]
fn a_full_memory_of_much_repeated_outcomes_still_keeps_the_newest() {
    let memory = EmbeddedOutcomes::new();
    let room = u128::from(OUTCOMES);
    for key in 0..room {
        put(&memory, key, outcome(1), START);
    }
    for key in (0..room).chain(0..room) {
        get(&memory, key, START);
    }
    for key in room..room + 1000 {
        put(&memory, key, outcome(1), START);
    }
    assert!(memory.entries() <= OUTCOMES);
    let forgotten = (room..room + 1000).find(|&key| get(&memory, key, START).is_none());
    assert_eq!(forgotten, None, "a repeat of it would be pushed twice");
}

#[test]
fn what_another_start_takes_over_lapses_when_it_would_have() {
    let before = EmbeddedOutcomes::new();
    put(&before, 1, outcome(10), START);
    let stop = START.plus(Duration::from_secs(400));
    put(&before, 2, outcome(20), stop);
    let kept = before.all(stop);
    let restarted = |after: u64| Now {
        mono: Duration::ZERO,
        unix: stop.unix.plus_millis(after * 1000),
    };
    let after = EmbeddedOutcomes::new();
    after.restore(kept.clone(), restarted(100));
    let later = |seconds| restarted(100).plus(Duration::from_secs(seconds));
    assert_eq!(get(&after, 1, later(99)), Some(outcome(10)));
    assert_eq!(get(&after, 1, later(100)), None);
    assert_eq!(get(&after, 2, later(499)), Some(outcome(20)));
    assert_eq!(get(&after, 2, later(500)), None);
    let too_late = EmbeddedOutcomes::new();
    too_late.restore(kept, restarted(600));
    assert_eq!(too_late.entries(), 0);
}

#[test]
fn a_clock_that_was_set_back_prolongs_nothing() {
    let memory = EmbeddedOutcomes::new();
    let kept = KeptOutcome {
        key: 1,
        until: UnixMillis(u64::MAX),
        outcome: outcome(10),
    };
    memory.restore(vec![kept], START);
    assert_eq!(get(&memory, 1, START), Some(outcome(10)));
    assert_eq!(get(&memory, 1, START.plus(REMEMBERED)), None);
}
