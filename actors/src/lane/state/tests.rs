use std::sync::Arc;

use sovereign_relay_protocol::{id::InstanceId, push::Reason, time::UnixMillis};

use super::*;
use crate::{
    lane::{holds::HELD_TOKENS, judge::SCOPES, sent_memory::tests::token, turns::Joined, window},
    ports::{Certainty, Failure, Scope},
    push::TurnKey,
};

fn failure(hold: Hold) -> Outcome {
    Outcome::Failed(Failure {
        reason: Reason::DeviceThrottled,
        retryable: true,
        retry_after: Some(Duration::from_secs(3_000)),
        hold,
        health: Health::Answered,
    })
}

fn outcome(number: u64) -> Outcome {
    let gone = |certainty| Outcome::Gone {
        certainty,
        reason: Reason::BadToken,
        since: UnixMillis(1),
    };
    match number % 20 {
        0..5 => failure(Hold::Token),
        5 => gone(Certainty::Certain),
        6 => gone(Certainty::Conditional),
        _ => Outcome::Sent { message_id: None },
    }
}

#[test]
fn a_million_pushes_to_a_million_tokens_of_a_thousand_instances_keep_every_memory_within_its_bound() {
    let mut state = State::new(LaneConfig::default(), 8);
    let scope = Scope {
        name: Arc::from("fake/production/topic"),
        generation: 1,
    };
    let mut now = Duration::ZERO;
    for number in 0..1_000_000_u64 {
        now += Duration::from_millis(1);
        let (token, mut instance) = (token(number), [0; 16]);
        instance[..8].copy_from_slice(&(number % 1_000).to_be_bytes());
        let case = Case {
            scope: Some(scope.clone()),
            key: TurnKey::Instance(InstanceId::from_bytes(instance)),
            token,
        };
        let pass = state.pass(token, true, now).unwrap();
        let (tell, _told) = oneshot::channel();
        assert_eq!(state.turns.join(case.key, tell), Joined::Turn);
        state.settle(Some(pass), &case, outcome(number), now, now);
        state.turns.give_back();
        assert!(state.holds.tokens() <= HELD_TOKENS && state.judge.tokens() <= window::TOKENS);
    }
    assert_eq!(state.judge.tokens(), window::TOKENS, "the bound was met");
    assert!(state.is_idle() && state.judge.fuses().len() <= SCOPES);
    now += Duration::from_secs(3_600);
    state.refresh(8, now);
    assert!(state.holds.check(token(0), now).is_none());
    assert_eq!((state.holds.tokens(), state.judge.tokens()), (0, 0));
}
