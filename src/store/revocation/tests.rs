use proptest::prelude::*;

use super::*;

const HOUR: u64 = 3_600_000;

fn entries() -> impl Strategy<Value = Entry> {
    let kids = prop::collection::btree_set(prop::array::uniform6(0..3_u8).prop_map(Kid), 0..4);
    (kids, states()).prop_map(|(kids, state)| Entry {
        kids: kids.into_iter().collect(),
        state,
    })
}

fn states() -> impl Strategy<Value = State> {
    let cause = prop_oneof![Just(Cause::Revoked), Just(Cause::Withdrawn)];
    let gone = (0..3_u64, cause).prop_map(|(at, cause)| {
        State::Gone(Gone {
            at: UnixMillis(at),
            cause,
        })
    });
    let grace = prop::collection::btree_map(0..6_u32, 1..6_u64, 0..6);
    let rotated = (1..7_u32, 0..3_u64, any::<bool>(), grace).prop_map(|(newest, issued_at, used, grace)| {
        let mut latest = 0;
        let grace = grace.into_iter().filter(|(generation, _)| *generation < newest);
        let grace = grace.map(|(generation, hours)| {
            latest = hours.max(latest);
            Grace {
                generation,
                until: UnixMillis(latest * HOUR),
            }
        });
        State::Rotated(Rotated {
            newest,
            issued_at,
            used,
            grace: grace.collect(),
        })
    });
    prop_oneof![1 => gone, 4 => rotated]
}

proptest! {
    #[test]
    fn a_key_is_valid_under_a_join_exactly_when_it_is_under_both(a in entries(), b in entries()) {
        let joined = a.join(&b);
        for generation in 0..8 {
            for time in (0..8).map(|hour| UnixMillis(hour * HOUR)) {
                let both = a.allows(generation, time) && b.allows(generation, time);
                prop_assert_eq!(joined.allows(generation, time), both, "generation {} at {:?}", generation, time);
            }
        }
    }

    #[test]
    fn lists_can_be_joined_in_any_order_any_number_of_times(a in entries(), b in entries(), c in entries()) {
        prop_assert_eq!(a.join(&b), b.join(&a));
        prop_assert_eq!(a.join(&b).join(&c), a.join(&b.join(&c)));
        prop_assert_eq!(a.join(&a), a.clone());
        prop_assert_eq!(a.join(&b).join(&b), a.join(&b));
        prop_assert!(a.join(&b).is_well_formed());
    }

    #[test]
    fn an_entry_survives_json(entry in entries()) {
        let json = serde_json::to_string(&entry).unwrap();
        prop_assert_eq!(serde_json::from_str::<Entry>(&json).unwrap(), entry);
    }
}

#[test]
fn the_stored_form_stays_readable() {
    let gone = r#"{"kids":["AQEBAQEB"],"gone":{"at":"2027-01-15T08:00:00Z","cause":"withdrawn"}}"#;
    let state = State::Gone(Gone {
        at: UnixMillis(1_800_000_000_000),
        cause: Cause::Withdrawn,
    });
    let entry = Entry {
        kids: vec![Kid([1; 6])],
        state,
    };
    assert_eq!(serde_json::from_str::<Entry>(gone).unwrap(), entry);
    assert_eq!(serde_json::to_string(&entry).unwrap(), gone);
    let rotated = r#"{"kids":[],"rotated":{"newest":2,"issuedAt":1800000000,"used":true,"grace":[{"generation":1,"until":"2027-01-15T08:00:00.5Z"}]}}"#;
    let entry: Entry = serde_json::from_str(rotated).unwrap();
    assert_eq!(serde_json::to_string(&entry).unwrap(), rotated);
}

#[test]
fn an_entry_no_relay_writes_is_recognized() {
    let grace = |generation, until| Grace {
        generation,
        until: UnixMillis(until),
    };
    let entry = |kids: Vec<Kid>, grace: Vec<Grace>| {
        let state = State::Rotated(Rotated {
            newest: 9,
            issued_at: 0,
            used: false,
            grace,
        });
        Entry { kids, state }.is_well_formed()
    };
    assert!(entry(
        vec![Kid([1; 6]), Kid([2; 6])],
        vec![grace(7, 5), grace(8, 5)]
    ));
    assert!(
        !entry(vec![Kid([2; 6]), Kid([1; 6])], vec![]),
        "fingerprints out of order"
    );
    assert!(
        !entry(vec![], vec![grace(8, 5), grace(7, 6)]),
        "generations out of order"
    );
    assert!(
        !entry(vec![], vec![grace(7, 6), grace(8, 5)]),
        "an older one would outlive a newer one"
    );
    assert!(!entry(vec![], vec![grace(9, 5)]), "a grace of the newest");
    let too_many = (0..9).map(|generation| grace(generation, 5)).collect();
    assert!(!entry(vec![], too_many));
}
