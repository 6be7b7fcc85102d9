use sovereign_relay_protocol::{
    platform::{Platform, Priority},
    redacted::Redacted,
};

use super::*;
use crate::{
    limiter::{Limiter, Rate, Room, WhenFull},
    wait::Wait,
};

mod model;
mod named;
mod pressure;
mod replicas;
mod signal;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const START: Now = Now {
    mono: Duration::from_secs(1_000),
    unix: UnixMillis(1_700_000_000_000),
};
const ID: [u8; 16] = [7; 16];

/// Shared budgets as the embedded ones are, and how often they were taken from.
struct Shared {
    groups: Limiter<u64>,
    tokens: Limiter<TokenHash>,
    takes: AtomicU32,
}

impl Shared {
    fn new() -> Self {
        let room = Room {
            keys: 1_000_000,
            when_full: WhenFull::Pass,
        };
        Self {
            groups: Limiter::own(Rate::per_minute(limits::YOUNG_GROUP_PER_MINUTE), room),
            tokens: Limiter::own(Rate::per_minute(limits::TOKEN_PER_MINUTE), room),
            takes: AtomicU32::new(0),
        }
    }
}

impl SharedLimits for Shared {
    fn take(&self, spend: SharedSpend, now: Now) -> Result<(), Wait> {
        self.check(spend, now)?;
        self.takes.fetch_add(1, Ordering::Relaxed);
        let taken = self.tokens.take(&spend.token, now.mono);
        taken.map_err(|time| Limit::Device.wait(time))?;
        let taken = spend.group.map(|group| self.groups.take(&group, now.mono));
        taken.unwrap_or(Ok(())).map_err(|time| Limit::Group.wait(time))
    }

    fn check(&self, spend: SharedSpend, now: Now) -> Result<(), Wait> {
        let group = spend
            .group
            .and_then(|group| self.groups.check(&group, now.mono).err());
        let token = self.tokens.check(&spend.token, now.mono).err();
        let token = token.map(|time| Limit::Device.wait(time));
        token
            .max(group.map(|time| Limit::Group.wait(time)))
            .map_or(Ok(()), Err)
    }
}

fn grown() -> Standing {
    Standing {
        enrolled_at: Some(UnixMillis(START.unix.0 - 30 * 24 * 3_600_000)),
        group: Some(5),
        sent: 1_000,
        per_minute: None,
        turn: None,
        suspension: None,
    }
}

fn young() -> Standing {
    Standing {
        enrolled_at: Some(START.unix),
        sent: 0,
        ..grown()
    }
}

fn suspended(until: Option<UnixMillis>) -> Standing {
    Standing {
        suspension: Some(Suspension {
            until,
            reason: "spam".to_owned(),
        }),
        ..grown()
    }
}

fn state(standing: Option<Standing>) -> InstanceState {
    let rules = Rules {
        titles: AlertTitles::default(),
        channel_rule: ChannelRule::default(),
        per_minute: AtomicU32::new(600),
        sessions_per_minute: limits::SESSIONS_PER_MINUTE,
    };
    let mut state = InstanceState::new(InstanceId::from_bytes(ID), Arc::new(rules), START);
    state.on_standing(standing);
    state
}

fn push(token: u128) -> Push {
    let message = PushMessage {
        platform: Platform::Android,
        device_token: Redacted::new(format!("token-{token}")),
        encrypted_payload: Redacted::new("sealed"),
        priority: Priority::High,
        ttl_seconds: 60,
        collapse_id: None,
        environment: None,
        idempotency_key: None,
    };
    let newcomer = Newcomer::Young { group: 77 };
    Push {
        message,
        token: TokenHash(token),
        collapse: None,
        idempotency: None,
        newcomer,
    }
}

fn decide(state: &mut InstanceState, shared: &Shared, token: u128, now: Now) -> Decision {
    state.decide(&push(token), None, true, shared, now)
}

fn passes(state: &mut InstanceState, shared: &Shared, token: u128, now: Now) -> bool {
    !matches!(decide(state, shared, token, now), Decision::Refuse(_))
}

fn wait(decision: Decision) -> Duration {
    match decision {
        Decision::Refuse(Refusal::RateLimited(wait)) => wait.time,
        other => panic!("not rate limited: {other:?}"),
    }
}

fn turn(decision: Decision) -> TurnKey {
    match decision {
        Decision::Deliver { turn, .. } => turn,
        other => panic!("not delivered: {other:?}"),
    }
}

#[test]
fn suspension_comes_before_size_and_size_before_concurrency() {
    let mut large = push(1).message;
    large.encrypted_payload = Redacted::new("x".repeat(5_000));
    let refusal = |standing, message: &PushMessage, slot| state(Some(standing)).admit(message, slot, START);
    let none = Refusal::Suspended { retry_after: None };
    assert_eq!(refusal(suspended(None), &large, false), Err(none));
    assert_eq!(refusal(grown(), &large, false), Err(Refusal::PayloadTooLarge));
    assert_eq!(
        refusal(grown(), &push(1).message, false),
        Err(Refusal::RateLimited(Limit::UnderWay.wait(SOON)))
    );
    assert_eq!(refusal(grown(), &push(1).message, true), Ok(()));
}

#[test]
fn a_suspension_with_an_end_says_how_long_and_ends_at_that_moment() {
    let mut state = state(Some(suspended(Some(START.unix.plus_millis(90_000)))));
    let refusal = state.admit(&push(1).message, true, START);
    assert_eq!(
        refusal,
        Err(Refusal::Suspended {
            retry_after: Some(90 * SECOND)
        })
    );
    let last = START.plus(Duration::from_millis(89_999));
    assert!(state.admit(&push(1).message, true, last).is_err());
    assert_eq!(
        state.admit(&push(1).message, true, START.plus(90 * SECOND)),
        Ok(())
    );
}

#[test]
fn an_instance_gets_its_600_a_minute_and_the_operators_limit_replaces_it() {
    let shared = Shared::new();
    let mut plain = state(Some(grown()));
    let taken =
        |state: &mut InstanceState, now| (0..5_000).take_while(|&t| passes(state, &shared, t, now)).count();
    assert_eq!(taken(&mut plain, START), 600);
    plain.on_standing(Some(grown()));
    assert_eq!(
        taken(&mut plain, START),
        0,
        "the same standing again refills nothing"
    );
    plain.on_standing(Some(Standing {
        per_minute: Some(60),
        ..grown()
    }));
    assert_eq!(taken(&mut plain, START.plus(2 * SECOND)), 60);
    assert_eq!(taken(&mut plain, START.plus(3 * SECOND)), 1);
}

#[test]
fn one_token_gets_120_a_minute_from_one_instance_and_240_from_all() {
    let shared = Shared::new();
    let mut instances = [state(Some(grown())), state(Some(grown())), state(Some(grown()))];
    let taken = instances
        .each_mut()
        .map(|one| (0..500).take_while(|_| passes(one, &shared, 1, START)).count());
    assert_eq!(taken, [120, 120, 0]);
    assert!(passes(&mut instances[2], &shared, 2, START));
}

#[test]
fn a_refused_push_takes_nothing_from_any_budget() {
    let shared = Shared::new();
    let mut one = state(Some(young()));
    while passes(&mut one, &shared, 1, START) {}
    assert_eq!(shared.takes.load(Ordering::Relaxed), 120);
    for _ in 0..10_000 {
        assert!(!passes(&mut one, &shared, 1, START));
    }
    assert_eq!(shared.takes.load(Ordering::Relaxed), 120);
    let rest = (1_000..5_000)
        .take_while(|&token| passes(&mut one, &shared, token, START))
        .count();
    assert_eq!(rest, 600 - 120);
}

#[test]
fn young_instances_of_one_address_share_1200_a_minute_and_a_turn() {
    let shared = Shared::new();
    let mut instances: Vec<_> = (0..100).map(|_| state(Some(young()))).collect();
    assert_eq!(
        turn(decide(&mut instances[0], &shared, 0, START)),
        TurnKey::Group(5)
    );
    let mut taken = 1;
    for (nth, instance) in instances.iter_mut().enumerate() {
        let tokens = (nth as u128 + 1) * 10_000..;
        taken += tokens
            .take_while(|&token| passes(instance, &shared, token, START))
            .count();
    }
    assert_eq!(taken, 1_200);
    assert!(
        passes(&mut state(Some(grown())), &shared, 1, START),
        "a grown one of the same group is its own"
    );
}

#[test]
fn an_operators_limit_above_the_default_takes_a_young_instance_out_of_its_group_and_a_lower_one_does_not() {
    let shared = Shared::new();
    let limited = |per_minute| {
        state(Some(Standing {
            per_minute: Some(per_minute),
            ..young()
        }))
    };
    let mut raised = limited(3_000);
    let taken = (0..)
        .take_while(|&token| passes(&mut raised, &shared, token, START))
        .count();
    assert_eq!(taken, 3_000);
    let own_turn = TurnKey::Instance(InstanceId::from_bytes(ID));
    let later = START.plus(60 * SECOND);
    assert_eq!(turn(decide(&mut raised, &shared, 1, later)), own_turn);
    for per_minute in [1, 599, 600] {
        let mut held = limited(per_minute);
        assert_eq!(turn(decide(&mut held, &shared, 1, later)), TurnKey::Group(5));
    }
}

#[test]
fn an_instance_is_grown_when_it_is_a_day_old_and_has_a_hundred_sent() {
    let shared = Shared::new();
    let mut one = state(Some(young()));
    let day = START.plus(24 * HOUR);
    assert_eq!(turn(decide(&mut one, &shared, 1, day)), TurnKey::Group(5));
    for _ in 0..100 {
        one.settle(TokenHash(1), PushResult::Sent, START, START);
    }
    let before = Now {
        unix: UnixMillis(day.unix.0 - 1),
        ..day
    };
    assert_eq!(turn(decide(&mut one, &shared, 1, before)), TurnKey::Group(5));
    assert_eq!(
        turn(decide(&mut one, &shared, 1, day)),
        TurnKey::Instance(InstanceId::from_bytes(ID))
    );
    one.on_standing(Some(Standing { sent: 40, ..young() }));
    let after_refresh = turn(decide(&mut one, &shared, 1, day));
    assert_eq!(
        after_refresh,
        TurnKey::Instance(InstanceId::from_bytes(ID)),
        "a lagging store takes nothing away"
    );
}

#[test]
fn without_an_enrollment_the_key_decides_who_is_young() {
    let shared = Shared::new();
    let own_turn = TurnKey::Instance(InstanceId::from_bytes(ID));
    let override_only = Standing {
        enrolled_at: None,
        group: None,
        sent: 0,
        ..grown()
    };
    for standing in [None, Some(override_only)] {
        let mut one = state(standing);
        assert_eq!(turn(decide(&mut one, &shared, 1, START)), TurnKey::Group(77));
        let earlier = Push {
            newcomer: Newcomer::EarlierRelay,
            ..push(1)
        };
        assert_eq!(turn(one.decide(&earlier, None, true, &shared, START)), own_turn);
    }
}

#[test]
fn an_unconfigured_platform_comes_after_the_limits_and_failures_count() {
    let shared = Shared::new();
    let mut one = state(Some(grown()));
    for token in 0..600 {
        let decision = one.decide(&push(token), None, false, &shared, START);
        assert_eq!(decision, Decision::Refuse(Refusal::PlatformNotConfigured));
    }
    assert!(!passes(&mut one, &shared, 1_000, START));
}

#[test]
fn a_token_called_gone_is_recently_invalid_for_the_rest_of_sixty_seconds_and_then_goes_out_again() {
    let shared = Shared::new();
    let mut one = state(Some(grown()));
    one.settle(TokenHash(1), PushResult::InvalidToken, START, START);
    let later = START.plus(Duration::from_millis(5_500));
    let expected = PushAnswer::failed(Reason::RecentlyInvalid, true, Some(55));
    assert_eq!(decide(&mut one, &shared, 1, later), Decision::Answer(expected));
    assert!(matches!(
        decide(&mut one, &shared, 2, later),
        Decision::Deliver { .. }
    ));
    assert!(matches!(
        decide(&mut one, &shared, 1, START.plus(60 * SECOND)),
        Decision::Deliver { .. }
    ));
}

#[test]
fn a_token_that_cannot_be_one_is_left_to_the_lane() {
    let shared = Shared::new();
    let mut one = state(Some(grown()));
    let mut odd = push(1);
    odd.message.device_token = Redacted::new("white space");
    let turn = TurnKey::Instance(InstanceId::from_bytes(ID));
    assert_eq!(
        one.decide(&odd, None, true, &shared, START),
        Decision::Malformed { turn }
    );
    one.settle(TokenHash(1), PushResult::InvalidToken, START, START);
    assert!(
        matches!(one.decide(&odd, None, true, &shared, START), Decision::Answer(_)),
        "memory comes before shape"
    );
}

#[test]
fn use_is_collected_and_can_be_put_back() {
    let shared = Shared::new();
    let mut one = state(Some(grown()));
    assert_eq!(one.take_use(), None);
    decide(&mut one, &shared, 1, START);
    one.settle(TokenHash(1), PushResult::Sent, START, START);
    let noted = one.take_use().unwrap();
    assert_eq!(
        noted,
        Use {
            sent: 1,
            at: START.unix
        }
    );
    let later = START.plus(SECOND);
    one.settle(TokenHash(1), PushResult::Sent, later, later);
    one.put_back_use(noted);
    assert_eq!(
        one.take_use(),
        Some(Use {
            sent: 2,
            at: later.unix
        })
    );
    assert_eq!(one.take_use(), None);
}
