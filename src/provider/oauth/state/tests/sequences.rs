//! What holds in whatever order pushes, refusals and fetches come.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    Want(TurnKey),
    Refuse(TurnKey),
    Accept,
    Fail(TokenError),
    Fetch(u64),
}

fn sender() -> impl Strategy<Value = TurnKey> {
    (0u64..6).prop_map(TurnKey::Group)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u64..4000).prop_map(Step::Wait),
        sender().prop_map(Step::Want),
        sender().prop_map(Step::Refuse),
        Just(Step::Accept),
        Just(Step::Fail(TokenError::Unreachable)),
        Just(Step::Fail(TokenError::Refused)),
        (0u64..10_000).prop_map(|wait| Step::Fail(TokenError::Throttled { wait: seconds(wait) })),
        (1u64..100_000).prop_map(Step::Fetch),
    ]
}

/// One sender pushes at these times to devices that all answer 401, and each push is made again as soon as there is
/// another token. A fetch takes no time. How many there were.
fn fetches_under_attack(
    state: &mut State,
    pauses_millis: &[u64],
    mut meanwhile: impl FnMut(&mut State, Duration),
) -> u64 {
    let (mut now, mut serial) = (Duration::ZERO, 1);
    for pause in pauses_millis {
        now += Duration::from_millis(*pause);
        let mut refused_with = 0;
        for _ in 0..2 {
            let Some(used) = usable_to(state, after(refused_with, A), now) else {
                break;
            };
            state.on_refused(used, A, now);
            refused_with = used;
            if state.fetch_due().is_some_and(|due| due <= now) {
                serial += 1;
                state.on_fetched(serial, HOUR, now);
            }
        }
        meanwhile(state, now);
    }
    serial - 1
}

proptest! {
    #[test]
    fn a_token_is_handed_out_only_within_its_life(lifetime in 0u64..200_000, asked in 0u64..300_000) {
        let mut state = State::default();
        state.on_fetched(1, seconds(lifetime), Duration::ZERO);
        if usable(&mut state, seconds(asked)).is_some() {
            prop_assert!(asked < lifetime);
        }
    }

    #[test]
    fn whatever_happens_a_push_without_a_token_makes_a_fetch_due_within_a_minute_and_none_gets_one_that_it_was_refused_with(
        steps in proptest::collection::vec(step(), 1..80)
    ) {
        let (mut state, mut now, mut newest, mut refused) = (State::default(), Duration::ZERO, 0, 0);
        for step in steps {
            match step {
                Step::Wait(wait) => now += Duration::from_millis(wait * 50),
                Step::Refuse(sender) => {
                    state.on_refused(newest, sender, now);
                    refused = newest;
                }
                Step::Accept => state.on_accepted(newest),
                Step::Fail(error) => state.on_failed(error, now, 0.5),
                Step::Fetch(lifetime) => {
                    newest += 1;
                    state.on_fetched(newest, seconds(lifetime), now);
                }
                Step::Want(sender) => match state.on_wanted(after(refused, sender), now) {
                    Wanted::Usable { serial, .. } => prop_assert!(serial == newest && serial > refused),
                    Wanted::Coming => prop_assert!(state.fetch_due().unwrap() <= now),
                    Wanted::BackingOff { until } => {
                        prop_assert_eq!(state.fetch_due(), Some(until));
                        prop_assert!(until <= now + LONGEST_BACKOFF_REFUSED);
                    }
                    Wanted::Doubted { until } => prop_assert!(now < until && until <= now + SPACING),
                },
            }
        }
    }

    #[test]
    fn one_senders_refusals_bring_about_a_fetch_in_ten_seconds_and_hold_nobody_else(
        pauses in proptest::collection::vec(0u64..3_000, 1..300), quiet: bool
    ) {
        let mut state = proven();
        let fetches = fetches_under_attack(&mut state, &pauses, |state, now| {
            let serial = usable_to(state, by(B), now);
            assert!(serial.is_some(), "B is held at {now:?}");
            if !quiet {
                state.on_accepted(serial.unwrap());
            }
        });
        let whole = Duration::from_millis(pauses.iter().sum());
        prop_assert!(fetches <= 1 + whole.as_secs() / SPACING.as_secs(), "{fetches} in {whole:?}");
    }

    #[test]
    fn a_token_that_really_ended_is_replaced_by_the_first_refusal_even_while_another_sender_is_refused_all_the_time(
        pauses in proptest::collection::vec(0u64..3_000, 1..100)
    ) {
        let mut state = proven();
        fetches_under_attack(&mut state, &pauses, |state, now| {
            let serial = usable_to(state, by(B), now).unwrap();
            state.on_accepted(serial);
        });
        let now = Duration::from_millis(pauses.iter().sum());
        let ended = usable_to(&mut state, by(B), now).unwrap();
        prop_assert_ne!(state.on_refused(ended, B, now), Mend::Stays { accepted: true });
        prop_assert_eq!(state.on_wanted(after(ended, B), now), Wanted::Coming);
    }

    #[test]
    fn where_everybody_is_refused_the_provider_sees_few_calls_and_the_endpoint_few_requests(
        pushes in proptest::collection::vec((0u64..50, 0u64..40), 500..1500)
    ) {
        let (mut state, mut now, mut serial, mut calls) = (State::default(), Duration::ZERO, 0, 0);
        for (pause, sender) in pushes {
            now += Duration::from_millis(pause);
            let sender = TurnKey::Group(sender);
            let mut refused_with = 0;
            for _ in 0..2 {
                let wanted = state.on_wanted(after(refused_with, sender), now);
                if wanted == Wanted::Coming {
                    serial += 1;
                    state.on_fetched(serial, HOUR, now);
                }
                let Some(used) = usable_to(&mut state, after(refused_with, sender), now) else { break };
                calls += 1;
                refused_with = used;
                if state.on_refused(used, sender, now) == (Mend::Stays { accepted: false }) {
                    break;
                }
            }
        }
        let spans = 1 + now.as_secs() / SPACING.as_secs();
        prop_assert!(serial <= 1 + spans, "{serial} fetches in {now:?}");
        // Three before it is clear in each span, and one a second that tries.
        prop_assert!(calls <= 8 + spans * 14, "{calls} calls in {now:?}");
    }
}
