use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Push(u8),
    Settle(u8, u8),
    Pass(u64),
    Clean,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_u8).prop_map(Step::Push),
        2 => (0..4_u8, 0..3_u8).prop_map(|(token, result)| Step::Settle(token, result)),
        2 => (0..90_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Clean),
    ]
}

proptest! {
    /// Case: limits and their reset hints come from one clock.
    #[test]
    fn whatever_happened_before_a_refused_push_passes_at_the_moment_its_refusal_names(
        per_minute in 1..12_u32,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let shared = Shared::new();
        let mut one = state(Some(Standing { per_minute: Some(per_minute), ..young() }));
        let mut now = START;
        for step in steps {
            match step {
                Step::Push(token) => {
                    let takes = shared.takes.load(Ordering::Relaxed);
                    let decision = decide(&mut one, &shared, token.into(), now);
                    if let Decision::Refuse(Refusal::RateLimited(wait)) = decision {
                        prop_assert_eq!(shared.takes.load(Ordering::Relaxed), takes);
                        prop_assert!(wait.time > Duration::ZERO);
                        now = now.plus(wait.time);
                        prop_assert!(passes(&mut one, &shared, token.into(), now));
                    }
                }
                Step::Settle(token, result) => {
                    let result = [PushResult::Sent, PushResult::InvalidToken, PushResult::Failed][usize::from(result)];
                    one.settle(TokenHash(token.into()), result, now, now);
                }
                Step::Pass(millis) => now = now.plus(Duration::from_millis(millis)),
                Step::Clean => one.clean(now),
            }
        }
    }

    /// Over any minute no more pass than the rate and the burst allow.
    #[test]
    fn no_minute_sees_more_than_rate_and_burst(
        per_minute in 1..30_u32,
        gaps in prop::collection::vec(0..3_000_u64, 1..400),
    ) {
        let shared = Shared::new();
        let mut one = state(Some(Standing { per_minute: Some(per_minute), ..grown() }));
        let mut passed: Vec<Duration> = Vec::new();
        let mut now = START;
        for (nth, gap) in gaps.into_iter().enumerate() {
            now = now.plus(Duration::from_millis(gap));
            let token = nth as u128 % 7;
            if passes(&mut one, &shared, token, now) {
                passed.push(now.mono);
            }
            let minute = passed.iter().filter(|&&at| now.mono - at < 60 * SECOND).count();
            prop_assert!(minute <= 2 * per_minute as usize);
        }
    }
}
