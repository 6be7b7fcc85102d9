use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn call(breaker: &mut Breaker, health: Health, now: Duration) {
    let pass = breaker.admit(now).unwrap();
    breaker.finished(pass, health, now);
}

fn opened(now: Duration) -> Breaker {
    let mut breaker = Breaker::new();
    for _ in 0..20 {
        call(&mut breaker, Health::Faulty, now);
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

#[test]
fn it_opens_at_twenty_calls_with_more_than_half_of_them_faults() {
    let mut breaker = Breaker::new();
    for number in 0..19 {
        call(
            &mut breaker,
            if number < 9 {
                Health::Answered
            } else {
                Health::Faulty
            },
            ms(number),
        );
    }
    assert_eq!(breaker.state(), BreakerState::Closed, "19 calls are too few");
    call(&mut breaker, Health::Answered, ms(20));
    assert_eq!(
        breaker.state(),
        BreakerState::Closed,
        "half is not more than half"
    );
    call(&mut breaker, Health::Faulty, ms(21));
    assert_eq!(breaker.state(), BreakerState::Open);
    assert_eq!(
        breaker.admit(ms(21)),
        Err(Refused {
            retry_after: FIRST_STEP
        })
    );
}

#[test]
fn faults_of_more_than_ten_seconds_ago_are_forgotten() {
    let mut breaker = Breaker::new();
    for _ in 0..19 {
        call(&mut breaker, Health::Faulty, ms(0));
    }
    call(&mut breaker, Health::Faulty, ms(10_000));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn answers_never_open_it_whatever_they_say() {
    let mut breaker = Breaker::new();
    for number in 0..1_000 {
        call(&mut breaker, Health::Answered, ms(number));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a_lost_connection_counts_once_whatever_its_streams() {
    let mut breaker = Breaker::new();
    for connection in 0..19 {
        for _stream in 0..100 {
            call(&mut breaker, Health::ConnectionLost { connection }, ms(5));
        }
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
    call(&mut breaker, Health::ConnectionLost { connection: 19 }, ms(5));
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn it_probes_with_one_push_after_a_second_doubling_to_ten() {
    let mut now = ms(500);
    let mut breaker = opened(now);
    for step in [1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
        assert_eq!(
            breaker.admit(now),
            Err(Refused {
                retry_after: ms(step)
            })
        );
        assert!(breaker.admit(now + ms(step - 1)).is_err());
        now += ms(step);
        let probe = breaker.admit(now).unwrap();
        assert!(probe.probe && breaker.admit(now).is_err(), "one probe at a time");
        breaker.finished(probe, Health::Faulty, now);
    }
}

#[test]
fn unreachable_for_twenty_seconds_then_back_the_next_push_within_a_step_is_sent_and_nothing_is_restarted() {
    let back_at = ms(20_000);
    let mut breaker = opened(ms(0));
    let mut sent_at = None;
    for now in (0..60_000).step_by(10).map(ms) {
        let Ok(pass) = breaker.admit(now) else { continue };
        let health = if now < back_at {
            Health::Faulty
        } else {
            Health::Answered
        };
        breaker.finished(pass, health, now);
        if now >= back_at {
            sent_at.get_or_insert(now);
        }
    }
    let late = sent_at.unwrap() - back_at;
    assert!(late <= LONGEST_STEP, "{late:?}");
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn an_abandoned_probe_is_due_again_at_once() {
    let mut breaker = opened(ms(0));
    let probe = breaker.admit(ms(1_000)).unwrap();
    breaker.abandoned(probe, ms(1_200));
    assert!(breaker.admit(ms(1_200)).is_ok_and(|pass| pass.probe));
}

#[test]
fn what_began_before_it_opened_neither_fails_nor_passes_the_probe() {
    let mut breaker = Breaker::new();
    let early = breaker.admit(ms(0)).unwrap();
    for _ in 0..20 {
        call(&mut breaker, Health::Faulty, ms(0));
    }
    let probe = breaker.admit(ms(1_000)).unwrap();
    breaker.finished(early, Health::Faulty, ms(1_001));
    breaker.finished(early, Health::Answered, ms(1_001));
    breaker.abandoned(early, ms(1_001));
    assert_eq!(breaker.state(), BreakerState::Probing);
    breaker.finished(probe, Health::Answered, ms(1_002));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn calls_that_say_nothing_of_the_provider_count_for_nothing() {
    let mut breaker = Breaker::new();
    for _ in 0..1_000 {
        call(&mut breaker, Health::Unknown, ms(0));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
    for _ in 0..20 {
        call(&mut breaker, Health::Faulty, ms(0));
    }
    assert_eq!(
        breaker.state(),
        BreakerState::Open,
        "nor do they make faults fewer"
    );
}

#[test]
fn what_says_nothing_of_the_provider_leaves_the_probe_to_others() {
    let mut breaker = Breaker::new();
    assert!(breaker.admit_bystander(ms(0)).is_ok());
    let mut breaker = opened(ms(0));
    for at in [500, 1_000, 2_000, 10_999] {
        let refused = breaker.admit_bystander(ms(at)).unwrap_err();
        assert!(!refused.retry_after.is_zero());
        assert_eq!(breaker.state(), BreakerState::Open);
    }
    let probe = breaker.admit(ms(10_999)).unwrap();
    assert!(probe.probe && breaker.admit_bystander(ms(10_999)).is_err());
    breaker.finished(probe, Health::Unknown, ms(10_999));
    assert!(
        breaker.admit(ms(10_999)).unwrap().probe,
        "a probe that told nothing makes way for the next at once"
    );
}

#[test]
fn when_no_other_push_comes_a_breaker_does_not_stay_open_for_ever() {
    let mut breaker = opened(ms(0));
    let probe = breaker.admit_bystander(ms(11_000)).unwrap();
    assert!(probe.probe);
    breaker.finished(probe, Health::Answered, ms(11_000));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

proptest! {
    #[test]
    fn never_two_probes_and_a_refused_push_passes_at_the_moment_it_was_told(
        steps in proptest::collection::vec((0..5_u8, 0..1_500_u64), 1..300),
    ) {
        let (mut breaker, mut now) = (Breaker::new(), Duration::ZERO);
        let mut out: Vec<Pass> = Vec::new();
        for (step, millis) in steps {
            now += ms(millis) / 10;
            match step {
                0 => match breaker.admit(now) {
                    Ok(pass) => out.push(pass),
                    Err(refused) if breaker.state() == BreakerState::Open => {
                        let passes = now + refused.retry_after;
                        now = passes;
                        out.push(breaker.admit(passes).unwrap());
                    }
                    Err(_) => {}
                },
                1 | 2 => for pass in out.drain(..) {
                    breaker.finished(pass, if step == 1 { Health::Faulty } else { Health::Answered }, now);
                },
                3 => if let Some(pass) = out.pop() { breaker.abandoned(pass, now) },
                _ => if let Some(pass) = out.pop() { breaker.starved(pass, now / 2, now) },
            }
            let probes = out.iter().filter(|pass| pass.probe && pass.era == breaker.era).count();
            prop_assert_eq!(probes, usize::from(breaker.state() == BreakerState::Probing));
        }
    }
}

#[test]
fn waiting_in_vain_is_a_fault_only_while_nobody_is_answered() {
    let mut breaker = Breaker::new();
    let [first, second] = [(); 2].map(|()| breaker.admit(ms(0)).unwrap());
    breaker.finished(first, Health::Answered, ms(500));
    // By a thread that had looked at the clock before.
    breaker.finished(second, Health::Answered, ms(399));
    for _ in 0..40 {
        let pass = breaker.admit(ms(400)).unwrap();
        breaker.starved(pass, ms(400), ms(9_000));
    }
    assert_eq!(
        breaker.state(),
        BreakerState::Closed,
        "somebody was answered meanwhile"
    );
    for number in 0..18 {
        assert_eq!(breaker.state(), BreakerState::Closed, "after {number}");
        let pass = breaker.admit(ms(501)).unwrap();
        breaker.starved(pass, ms(501), ms(9_001));
    }
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_probe_that_gets_no_turn_has_failed() {
    let mut breaker = opened(ms(0));
    let probe = breaker.admit(ms(1_000)).unwrap();
    breaker.starved(probe, ms(1_000), ms(5_000));
    let refused = breaker.admit(ms(5_000));
    assert_eq!(
        refused,
        Err(Refused {
            retry_after: ms(2_000)
        })
    );
}
