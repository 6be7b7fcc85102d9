use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_800_000_000;
const SHORTEST: u64 = 0;
const LONGEST: u64 = u64::MAX;

fn credential(number: u8) -> Credential {
    Credential {
        instance_id: InstanceId::from_bytes([1; 16]),
        key: key(number),
    }
}

fn key(number: u8) -> InstanceKey {
    InstanceKey::new(format!("key {number}"))
}

fn enrolled() -> Enrollment {
    let claimed = Enrollment::default().claimed(NOW);
    claimed.enrolled(credential(1)).worked(&key(1))
}

#[test]
fn a_relay_that_was_never_used_is_enrolled_at_once() {
    assert_eq!(Enrollment::default().need(NOW), Need::Enroll);
    assert_eq!(enrolled().need(NOW), Need::Use(credential(1)));
}

#[test]
fn who_comes_while_another_enrolls_waits_a_moment() {
    let claimed = Enrollment::default().claimed(NOW);
    let until = NOW + CLAIM_SECONDS;
    assert_eq!(claimed.need(NOW), Need::Wait { until });
    assert_eq!(claimed.need(until), Need::Enroll, "it may have died");
}

#[test]
fn unauthorized_is_answered_by_one_enrollment_at_once_and_then_by_later_and_later_ones() {
    let mut state = enrolled().unauthorized(&key(1), NOW, LONGEST);
    assert_eq!(state.need(NOW), Need::Enroll);
    let mut waits = Vec::new();
    for number in 2..16 {
        state = state.claimed(NOW).enrolled(credential(number));
        state = state.unauthorized(&key(number), NOW, LONGEST);
        let Need::Wait { until } = state.need(NOW) else {
            panic!("{state:?}")
        };
        waits.push(until - NOW);
    }
    assert_eq!(waits[..5], [1, 2, 4, 8, 16]);
    assert_eq!(waits[10..], [900; 4]);
}

#[test]
fn a_key_that_works_ends_the_waiting() {
    let tried = enrolled().unauthorized(&key(1), NOW, LONGEST).claimed(NOW);
    let state = tried.enrolled(credential(2));
    assert!(state.is_unproven());
    let state = state.worked(&key(2));
    assert!(!state.is_unproven());
    assert_eq!(state.unauthorized(&key(2), NOW, LONGEST).need(NOW), Need::Enroll);
}

#[test]
fn a_failed_enrollment_waits_as_long_as_the_relay_asks_for() {
    let claimed = Enrollment::default().claimed(NOW);
    let need = |retry_after| claimed.failed(NOW, retry_after, SHORTEST).need(NOW);
    assert_eq!(need(None), Need::Wait { until: NOW + 1 });
    assert_eq!(need(Some(3600)), Need::Wait { until: NOW + 3600 });
    let until = NOW + LONGEST_ASKED_SECONDS;
    assert_eq!(need(Some(u64::MAX)), Need::Wait { until }, "but not for ever");
    let set_back = claimed.failed(NOW, Some(3600), SHORTEST);
    assert_eq!(
        set_back.need(NOW - 10 * LONGEST_ASKED_SECONDS),
        Need::Enroll,
        "the clock was wrong"
    );
}

#[test]
fn a_revoked_instance_stops_until_the_admin_resumes_it() {
    let state = enrolled().revoked(&key(1));
    assert_eq!(state.need(u64::MAX), Need::Stop);
    let insisted = state.unauthorized(&key(1), NOW, SHORTEST).worked(&key(1));
    assert_eq!(insisted.need(NOW), Need::Stop);
    assert_eq!(state.resumed().need(NOW), Need::Enroll);
}

#[test]
fn a_new_key_is_used_at_once_and_the_old_one_kept_until_it_works() {
    let state = enrolled().rotated(&key(1), credential(2));
    assert_eq!(state.need(NOW), Need::Use(credential(2)));
    let back = state.unauthorized(&key(2), NOW, SHORTEST);
    assert_eq!(back.need(NOW), Need::Use(credential(1)));
    let proven = state.worked(&key(2)).unauthorized(&key(2), NOW, SHORTEST);
    assert_eq!(
        proven.need(NOW),
        Need::Enroll,
        "nothing older is believed to work"
    );
}

#[test]
fn what_is_said_of_another_key_changes_nothing() {
    let state = enrolled().rotated(&key(1), credential(2));
    for other in [key(1), key(3)] {
        assert_eq!(state.unauthorized(&other, NOW, LONGEST), state);
        assert_eq!(state.revoked(&other), state);
        assert_eq!(state.worked(&other), state);
        assert_eq!(state.rotated(&other, credential(4)), state);
    }
}

/// What a relay, an admin and time may do.
#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Give,
    Fail(Option<u64>),
    Unauthorized,
    Revoked,
    Worked,
    Rotated,
    Resumed,
}

fn steps() -> impl Strategy<Value = Vec<(Step, u64)>> {
    let step = prop_oneof![
        (0_u64..2000).prop_map(Step::Pass),
        Just(Step::Give),
        prop::option::of(0_u64..5000).prop_map(Step::Fail),
        Just(Step::Unauthorized),
        Just(Step::Revoked),
        Just(Step::Worked),
        Just(Step::Rotated),
        Just(Step::Resumed),
    ];
    prop::collection::vec((step, any::<u64>()), 0..60)
}

proptest! {
    #[test]
    fn a_relay_is_never_enrolled_at_more_often_than_the_back_off_allows(steps in steps()) {
        let (mut state, mut now, mut next_key) = (Enrollment::default(), NOW, 0_u8);
        // Enrollments since a key last worked or the admin resumed, by their time.
        let mut begun: Vec<u64> = Vec::new();
        for (step, draw) in steps {
            let used = match state.need(now) {
                Need::Use(credential) => Some(credential),
                Need::Enroll | Need::Wait { .. } | Need::Stop => None,
            };
            let before = state.clone();
            next_key = next_key.wrapping_add(1);
            match (step, used) {
                (Step::Pass(seconds), _) => now += seconds,
                (Step::Give, _) if state.need(now) == Need::Enroll => {
                    begun.push(now);
                    state = state.claimed(now).enrolled(credential(next_key));
                }
                (Step::Fail(retry_after), _) if state.need(now) == Need::Enroll => {
                    begun.push(now);
                    state = state.claimed(now).failed(now, retry_after, draw);
                    let Need::Wait { until } = state.need(now) else { panic!("{state:?}") };
                    prop_assert!(until - now >= retry_after.unwrap_or(1).max(1));
                    prop_assert!(until - now <= retry_after.unwrap_or(0).max(LONGEST_WAIT_SECONDS));
                }
                (Step::Unauthorized, Some(used)) => state = state.unauthorized(&used.key, now, draw),
                (Step::Revoked, Some(used)) => {
                    state = state.revoked(&used.key);
                    prop_assert_eq!(state.need(now), Need::Stop);
                }
                (Step::Worked, Some(used)) => {
                    state = state.worked(&used.key);
                    begun.clear();
                }
                (Step::Rotated, Some(used)) => {
                    state = state.rotated(&used.key, credential(next_key));
                    prop_assert_eq!(state.need(now), Need::Use(credential(next_key)));
                    let back = state.unauthorized(&credential(next_key).key, now, draw);
                    prop_assert_eq!(back.need(now), Need::Use(used));
                }
                (Step::Resumed, _) => {
                    state = state.resumed();
                    begun.clear();
                }
                // Nothing to do it to.
                (
                    Step::Give
                    | Step::Fail(_)
                    | Step::Unauthorized
                    | Step::Revoked
                    | Step::Worked
                    | Step::Rotated,
                    _,
                ) => {}
            }
            if matches!(before.phase, Phase::Revoked(_)) && state.need(now) != Need::Stop {
                prop_assert!(begun.is_empty(), "only the admin ends it");
            }
            // The first is free, the second may follow at once, and from then on at least a second lies between.
            for pair in begun.windows(2).skip(1) {
                prop_assert!(pair[1] > pair[0], "{begun:?}");
            }
        }
    }
}
