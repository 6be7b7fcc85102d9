use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sovereign_relay_protocol::id::InstanceId;

use super::*;
use crate::lane::{sent_memory::tests::token, window::LENGTH};

fn instance(number: u8) -> TurnKey {
    TurnKey::Instance(InstanceId::from_bytes([number; 16]))
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Notes `count` tokens, numbered from `first`, one a millisecond.
fn note(fuses: &mut Fuses, of: u8, seen: Seen, first: u64, count: u64, at: Duration) {
    for number in 0..count {
        let now = at + Duration::from_millis(number);
        fuses.note(token(first + number), instance(of), seen, now);
    }
}

#[test]
fn two_hundred_tokens_of_several_instances_open_the_conditional_fuse_and_certain_verdicts_still_pass() {
    let mut fuses = Fuses::default();
    for of in 0..4 {
        note(
            &mut fuses,
            of,
            Seen::Conditional,
            1_000 * u64::from(of),
            50,
            s(u64::from(of) * 15),
        );
    }
    assert!(fuses.is_open(FuseName::Conditional));
    assert!(fuses.holds_conditional(instance(9)), "everybody's");
    assert!(!fuses.holds_certain());
    let opened: Vec<_> = fuses
        .take_changes()
        .into_iter()
        .filter(|c| c.fuse == FuseName::Conditional)
        .collect();
    assert_eq!(opened.len(), 1, "told once");
    assert!(opened[0].open);
}

#[test]
fn invented_tokens_of_one_instance_dont_open_it_for_the_others_on_a_busy_relay() {
    for invented in [10, 200] {
        let mut fuses = Fuses::default();
        note(&mut fuses, 1, Seen::Sent, 0, 30, s(0));
        note(&mut fuses, 2, Seen::Conditional, 1_000, invented, s(1));
        assert!(!fuses.holds_conditional(instance(1)) && !fuses.holds_conditional(instance(2)));
    }
}

#[test]
fn invented_tokens_of_the_only_active_instance_hold_its_own_verdicts_and_nobody_elses() {
    for invented in [10, 200] {
        let mut fuses = Fuses::default();
        note(&mut fuses, 2, Seen::Conditional, 1_000, invented, s(0));
        assert!(fuses.holds_conditional(instance(2)));
        assert!(!fuses.holds_conditional(instance(1)));
        // The next instance comes with a bad token of its own, and with another.
        note(&mut fuses, 1, Seen::Conditional, 0, 2, s(2));
        assert!(!fuses.holds_conditional(instance(1)));
        assert!(fuses.holds_conditional(instance(2)), "held until it calms down");
    }
}

#[test]
fn young_instances_of_one_address_count_as_one_and_those_of_several_as_several() {
    for (groups, opens) in [([7, 7], false), ([7, 8], true)] {
        let mut fuses = Fuses::default();
        note(&mut fuses, 1, Seen::Sent, 0, 30, s(0));
        // Two instances of five invented tokens each.
        for (token_number, group) in (1_000..1_010).zip([groups[0]; 5].into_iter().chain([groups[1]; 5])) {
            fuses.note(
                token(token_number),
                TurnKey::Group(group),
                Seen::Conditional,
                s(1),
            );
        }
        assert_eq!(fuses.is_open(FuseName::Conditional), opens, "{groups:?}");
        assert_eq!(fuses.holds_conditional(instance(1)), opens, "{groups:?}");
    }
}

#[test]
fn young_instances_that_are_alone_on_the_relay_are_protected_together() {
    let mut fuses = Fuses::default();
    for number in 0..10 {
        fuses.note(token(number), TurnKey::Group(7), Seen::Conditional, s(0));
    }
    assert!(fuses.holds_conditional(TurnKey::Group(7)));
    assert!(!fuses.holds_conditional(instance(1)));
}

#[test]
fn a_single_instances_tokens_that_once_worked_open_it_for_all() {
    let mut fuses = Fuses::default();
    note(&mut fuses, 1, Seen::Sent, 0, 10, s(0));
    note(&mut fuses, 2, Seen::Sent, 100, 1, s(0));
    note(&mut fuses, 1, Seen::Conditional, 0, 10, s(3_600));
    assert!(fuses.is_open(FuseName::Conditional));
}

#[test]
fn it_closes_after_ten_minutes_under_five_percent_and_not_before() {
    let mut fuses = Fuses::default();
    note(&mut fuses, 1, Seen::Sent, 0, 10, s(0));
    note(&mut fuses, 1, Seen::Conditional, 0, 10, s(10));
    assert!(fuses.is_open(FuseName::Conditional));
    // The first of the ten leaves the window at 310 s, the last 9 ms later: only then is it calm.
    let calm = s(310) + Duration::from_millis(9);
    fuses.advance(calm + CALM - Duration::from_millis(1));
    assert!(fuses.is_open(FuseName::Conditional));
    fuses.advance(calm + CALM);
    assert!(!fuses.is_open(FuseName::Conditional));
    let opened: Vec<_> = fuses
        .take_changes()
        .iter()
        .map(|change| (change.fuse, change.open))
        .collect();
    assert!(opened.contains(&(FuseName::Conditional, false)));
    assert_eq!(fuses.tokens(), 0);
}

#[test]
fn a_relapse_starts_the_ten_minutes_anew() {
    let mut fuses = Fuses::default();
    note(&mut fuses, 1, Seen::Sent, 0, 10, s(0));
    note(&mut fuses, 1, Seen::Conditional, 0, 10, s(0));
    note(&mut fuses, 1, Seen::Conditional, 0, 1, s(800));
    fuses.advance(s(1_000));
    assert!(fuses.is_open(FuseName::Conditional));
    fuses.advance(s(800 + 300 + 599));
    assert!(fuses.is_open(FuseName::Conditional));
    fuses.advance(s(800 + 300 + 600));
    assert!(!fuses.is_open(FuseName::Conditional));
}

#[test]
fn the_certain_fuse_needs_more_than_half_of_fifty_tokens_that_worked_before() {
    let mut fuses = Fuses::default();
    note(&mut fuses, 1, Seen::Certain, 5_000, 500, s(0));
    assert!(!fuses.holds_certain(), "tokens that never worked say nothing");
    note(&mut fuses, 1, Seen::Sent, 0, 50, s(10));
    note(&mut fuses, 1, Seen::Certain, 0, 25, s(20));
    assert!(!fuses.holds_certain());
    note(&mut fuses, 1, Seen::Certain, 25, 1, s(30));
    assert!(fuses.holds_certain() && fuses.holds_conditional(instance(7)));
}

#[test]
fn at_most_four_single_instance_fuses_are_kept_and_silence_closes_them() {
    let mut fuses = Fuses::default();
    for of in 0..20 {
        note(
            &mut fuses,
            of,
            Seen::Conditional,
            1_000 * u64::from(of),
            12,
            s(u64::from(of) * 301),
        );
        assert!(fuses.holds_conditional(instance(of)));
        assert!(
            fuses.single.len() < SINGLE_INSTANCES,
            "the argument of the constant"
        );
    }
    fuses.advance(s(20 * 301 + 900));
    assert!(!fuses.is_open(FuseName::SingleInstance));
}

/// The rules, word by word, from the whole history.
#[derive(Default)]
struct Model {
    history: Vec<(Duration, TokenHash, TurnKey, Seen)>,
    conditional: Option<Option<Duration>>,
    certain: Option<Option<Duration>>,
    single: BTreeMap<TurnKey, Option<Duration>>,
    seen_up_to: Duration,
}

impl Model {
    fn newest(&self, now: Duration) -> Vec<(TurnKey, Seen, bool)> {
        let mut newest = BTreeMap::new();
        for (at, token, instance, seen) in &self.history {
            newest.insert(*token, (*at, *instance, *seen));
        }
        let known = |token| {
            self.history
                .iter()
                .any(|(_, sent, _, seen)| *sent == token && *seen == Seen::Sent)
        };
        let within = newest.into_iter().filter(|(_, (at, ..))| now - *at < LENGTH);
        within
            .map(|(token, (_, instance, seen))| (instance, seen, known(token)))
            .collect()
    }

    fn shared(&self, now: Duration) -> (usize, usize) {
        let tokens = self.newest(now);
        let (mut bad, mut all) = (0, 0);
        let instances: BTreeSet<_> = tokens.iter().map(|(instance, ..)| *instance).collect();
        for instance in instances {
            let own: Vec<_> = tokens.iter().filter(|token| token.0 == instance).collect();
            let invented = own
                .iter()
                .filter(|(_, seen, known)| *seen == Seen::Conditional && !known)
                .count();
            let worked = own
                .iter()
                .filter(|(_, seen, known)| *seen == Seen::Conditional && *known)
                .count();
            bad += worked + invented.min(5);
            all += own.len() - invented.saturating_sub(5);
        }
        (bad, all)
    }

    fn of_instance(&self, instance: TurnKey, now: Duration) -> (usize, usize) {
        let tokens = self.newest(now);
        let own = || tokens.iter().filter(|token| token.0 == instance);
        (
            own().filter(|(_, seen, _)| *seen == Seen::Conditional).count(),
            own().count(),
        )
    }

    fn known(&self, now: Duration) -> (usize, usize) {
        let tokens = self.newest(now);
        let known = || tokens.iter().filter(|(_, _, known)| *known);
        (
            known().filter(|(_, seen, _)| *seen == Seen::Certain).count(),
            known().count(),
        )
    }

    fn look(&mut self, now: Duration) {
        let ratio = |(bad, all): (usize, usize)| if all == 0 { 0.0 } else { bad as f64 / all as f64 };
        let calm = |since: Option<Duration>, share| (ratio(share) < 0.05).then(|| since.unwrap_or(now));
        let first = |share: (usize, usize)| share.0 >= 10 && ratio(share) > 0.2;
        let shared = self.shared(now);
        self.conditional = match self.conditional {
            None => first(shared).then_some(None),
            Some(since) => Some(calm(since, shared)),
        };
        let known = self.known(now);
        self.certain = match self.certain {
            None => (known.1 >= 50 && ratio(known) > 0.5).then_some(None),
            Some(since) => Some(calm(since, known)),
        };
        for instance in self.single.keys().copied().collect::<Vec<_>>() {
            let since = calm(self.single[&instance], self.of_instance(instance, now));
            self.single.insert(instance, since);
        }
        let active: BTreeSet<_> = self
            .newest(now)
            .into_iter()
            .map(|(instance, ..)| instance)
            .collect();
        if active.len() == 1 {
            let only = *active.first().unwrap();
            if first(self.of_instance(only, now)) {
                self.single.entry(only).or_insert(None);
            }
        }
    }

    fn close(&mut self, now: Duration) {
        let over = |since: Option<Duration>| since.is_some_and(|since| now - since >= s(600));
        self.conditional = self.conditional.filter(|since| !over(*since));
        self.certain = self.certain.filter(|since| !over(*since));
        self.single.retain(|_, since| !over(*since));
    }

    fn advance(&mut self, now: Duration) {
        let expiries: BTreeSet<_> = self.history.iter().map(|(at, ..)| *at + LENGTH).collect();
        let since = self.seen_up_to;
        for moment in expiries
            .into_iter()
            .filter(|moment| *moment > since && *moment <= now)
        {
            self.close(moment);
            self.look(moment);
        }
        self.close(now);
        self.seen_up_to = now;
    }
}

fn event() -> impl Strategy<Value = (u8, Seen, u64, u64, u64)> {
    let seen = prop_oneof![4 => Just(Seen::Sent), 3 => Just(Seen::Conditional), 3 => Just(Seen::Certain)];
    let pause = prop_oneof![6 => 0..20_u64, 2 => 20..400_u64, 1 => 400..1_300_u64];
    (0..3_u8, seen, 0..90_u64, 1..30_u64, pause)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_fuses_stand_as_the_rules_say_of_the_whole_history(
        events in proptest::collection::vec(event(), 1..25),
    ) {
        let (mut fuses, mut model, mut now) = (Fuses::default(), Model::default(), Duration::ZERO);
        for (of, seen, first, count, pause) in events {
            now += s(pause);
            model.advance(now);
            for number in first..first + count {
                fuses.note(token(number), instance(of), seen, now);
                model.history.push((now, token(number), instance(of), seen));
                model.look(now);
            }
            prop_assert_eq!(fuses.is_open(FuseName::Conditional), model.conditional.is_some());
            prop_assert_eq!(fuses.is_open(FuseName::Certain), model.certain.is_some());
            for of in 0..3 {
                let held = fuses.single.iter().any(|(held, _)| *held == instance(of));
                prop_assert_eq!(held, model.single.contains_key(&instance(of)));
            }
            let (bad, all) = model.shared(now);
            prop_assert_eq!(fuses.window.shared(), Share { bad, tokens: all });
        }
    }

    #[test]
    fn one_instance_never_opens_it_for_the_others_whatever_it_invents(
        invented in proptest::collection::vec((0..1_000_u64, 0..3_000_u64), 0..200),
        others in proptest::collection::vec((1..200_u64, 0..3_000_u64), 1..20),
    ) {
        let mut all: Vec<_> = invented.iter().map(|(number, at)| (*at, 66_u8, Seen::Conditional, 10_000 + number)).collect();
        all.extend(others.iter().map(|(number, at)| (*at, 1, Seen::Sent, *number)));
        all.sort_unstable_by_key(|event| event.0);
        let mut fuses = Fuses::default();
        for (at, of, seen, number) in all {
            fuses.note(token(number), instance(of), seen, s(at));
            prop_assert!(!fuses.holds_conditional(instance(1)));
        }
    }
}
