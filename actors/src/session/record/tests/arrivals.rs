//! Who gets a slot, who keeps it, and what the peer is told.

use super::*;

#[test]
fn the_same_secret_resumes_and_another_is_a_new_page_load() {
    let mut bench = Bench::new();
    let first = bench.bind(hello(Slot::A, 1));
    assert_eq!(
        (first.generation, first.is_new_load, first.next, first.base),
        (1, true, 1, 0)
    );
    bench.append(Slot::A, first.epoch, 1).unwrap();

    let resumed = bench.bind(again(Slot::A, 1, 2, 0));
    assert_eq!(
        (resumed.generation, resumed.is_new_load, resumed.next),
        (1, false, 2)
    );
    assert!(resumed.epoch > first.epoch);

    let reloaded = bench.bind(hello(Slot::A, 3));
    assert_eq!(
        (reloaded.generation, reloaded.is_new_load, reloaded.next),
        (2, true, 1)
    );
    assert!(reloaded.epoch > resumed.epoch);
}

#[test]
fn an_attempt_that_does_not_grow_changes_nothing() {
    let mut bench = Bench::new();
    bench.bind(again(Slot::A, 1, 5, 0));
    let before = bench.everything();
    for attempt in [0, 4, 5] {
        let refused = bench.try_bind(again(Slot::A, 1, attempt, 0));
        assert!(matches!(refused, Err(BindRefusal::Replaced)), "{attempt}");
    }
    assert_eq!(bench.everything(), before);
    bench.bind(again(Slot::A, 1, 6, 0));
    bench.bind(again(Slot::A, 2, 0, 0));
}

#[test]
fn the_last_16_secrets_of_a_slot_never_come_back() {
    let mut bench = Bench::new();
    let loads = RETIRED_CONNECTIONS as u128 + 2;
    for connection in 1..=loads {
        bench.wait(Duration::from_secs(7));
        bench.bind(hello(Slot::A, connection));
    }
    bench.wait(Duration::from_secs(60));
    let before = bench.everything();
    for connection in 2..loads {
        let refused = bench.try_bind(again(Slot::A, connection, 99, 0));
        assert!(matches!(refused, Err(BindRefusal::Replaced)), "{connection}");
    }
    assert_eq!(bench.everything(), before);
    // The oldest is forgotten: it is a page load like any other.
    assert_eq!(bench.bind(again(Slot::A, 1, 99, 0)).generation, 19);
    // A secret is retired in its own slot alone.
    assert_eq!(bench.bind(hello(Slot::B, 5)).generation, 1);
}

#[test]
fn a_client_that_saw_more_than_was_sent_means_another_session() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    bench.append(Slot::A, a, 1).unwrap();
    bench.waiting(Slot::B, b);
    bench.append(Slot::A, a, 2).unwrap();
    let before = bench.everything();
    for bind in [
        again(Slot::B, 2, 2, 2),
        again(Slot::B, 3, 1, 2),
        again(Slot::A, 1, 2, 1),
    ] {
        assert!(matches!(bench.try_bind(bind), Err(BindRefusal::BeyondSent)));
    }
    assert_eq!(bench.everything(), before);
    assert_eq!(bench.bind(again(Slot::B, 2, 2, 1)).base, 1);
    // What was acknowledged counts as sent, though nothing of it is kept.
    assert_eq!(bench.bind(again(Slot::B, 2, 3, 1)).base, 1);
    // A new load may know what an earlier one had got.
    assert_eq!(bench.bind(again(Slot::B, 3, 1, 1)).base, 1);
}

#[test]
fn the_11th_page_load_of_a_minute_is_refused_and_costs_the_slot_nothing() {
    let mut bench = Bench::new();
    let loads = u128::from(NEW_CONNECTIONS_PER_MINUTE);
    for connection in 1..=loads {
        bench.bind(hello(Slot::A, connection));
        bench.wait(Duration::from_secs(5));
    }
    let before = bench.everything();
    for _ in 0..3 {
        assert!(matches!(
            bench.try_bind(hello(Slot::A, 99)),
            Err(BindRefusal::TooManyLoads)
        ));
    }
    assert_eq!(bench.everything(), before);
    // Who has the slot may resume, the other slot has its own budget, and the next minute a new one.
    bench.bind(again(Slot::A, loads, 2, 0));
    bench.bind(hello(Slot::B, 1));
    bench.wait(Duration::from_secs(10));
    bench.bind(hello(Slot::A, 99));
}

#[test]
fn a_client_resumes_60_times_a_minute_and_never_runs_dry_at_30() {
    let mut bench = Bench::new();
    bench.bind(hello(Slot::A, 1));
    let mut attempt = 1;
    for _ in 0..RESUMES_PER_MINUTE {
        attempt += 1;
        bench.bind(again(Slot::A, 1, attempt, 0));
    }
    let before = bench.everything();
    let refused = bench.try_bind(again(Slot::A, 1, attempt + 1, 0));
    assert!(matches!(refused, Err(BindRefusal::TooManyResumes)));
    assert_eq!(bench.everything(), before);
    for _ in 0..250 {
        bench.wait(Duration::from_secs(2));
        attempt += 1;
        let bound = bench.try_bind(again(Slot::A, 1, attempt, 0));
        assert!(bound.is_ok() || bench.now.mono < BEGAN.plus(Duration::from_secs(60)).mono);
    }
}

#[test]
fn resumes_are_counted_for_each_secret() {
    let mut bench = Bench::new();
    bench.bind(hello(Slot::A, 1));
    for attempt in 2..=u64::from(RESUMES_PER_MINUTE) + 1 {
        bench.bind(again(Slot::A, 1, attempt, 0));
    }
    bench.bind(hello(Slot::A, 2));
    bench.bind(again(Slot::A, 2, 2, 0));
}

#[test]
fn after_a_takeover_the_old_connection_changes_nothing() {
    let mut bench = Bench::new();
    let (old, b) = bench.both();
    bench.append(Slot::B, b, 1).unwrap();
    for new in [again(Slot::A, 1, 2, 0), hello(Slot::A, 3)] {
        bench.bind(new);
        let before = bench.everything();
        assert!(matches!(bench.append(Slot::A, old, 1), Err(Gone::Fenced)));
        let refused = bench.record.append_without_room(Slot::A, old, 1);
        assert!(matches!(refused, Err(Gone::Fenced)));
        assert!(matches!(bench.record.trim(Slot::A, old, 1), Err(Gone::Fenced)));
        assert!(matches!(
            bench.record.read(Slot::A, old, 0, 99),
            Err(Gone::Fenced)
        ));
        for departure in [Departure::Lost, Departure::Bye] {
            assert!(matches!(bench.unbind(Slot::A, old, departure), Err(Gone::Fenced)));
        }
        assert_eq!(bench.everything(), before);
        assert_eq!(bench.seen(Slot::A).0, PeerState::Online);
    }
}

#[test]
fn no_connection_of_an_earlier_session_passes_for_one_of_the_next_with_the_same_id() {
    let mut bench = Bench::new();
    let earlier = bench.bind(hello(Slot::A, 1)).epoch;
    let now = BEGAN.plus(Duration::from_millis(1));
    bench.record = SessionRecord::new(&asked(1), SessionRules::default(), now);
    assert!(bench.bind(hello(Slot::A, 2)).epoch > earlier);
    assert!(matches!(bench.append(Slot::A, earlier, 1), Err(Gone::Fenced)));
    assert!(matches!(
        bench.unbind(Slot::A, earlier, Departure::Lost),
        Err(Gone::Fenced)
    ));
}

#[test]
fn a_lost_connection_is_online_for_2_s_away_until_30_s_and_then_left() {
    use PeerState::{Absent, Away, Left, Online};
    let mut bench = Bench::new();
    assert_eq!(bench.seen(Slot::A), (Absent, 0));
    let bound = bench.bind(hello(Slot::A, 1));
    assert_eq!(bench.seen(Slot::A), (Online, 1));
    bench.unbind(Slot::A, bound.epoch, Departure::Lost).unwrap();
    let lost = bench.now;
    let last_millis = [
        (0, Online, Some(2000)),
        (1999, Online, Some(1)),
        (2000, Away, Some(28_000)),
    ];
    let later = [
        (29_999, Away, Some(1)),
        (30_000, Left, None),
        (500_000, Left, None),
    ];
    for (millis, state, changes_in) in last_millis.into_iter().chain(later) {
        bench.now = lost.plus(Duration::from_millis(millis));
        let presence = bench.record.peer(Slot::B, bench.now);
        assert_eq!(presence.told, PeerPresence { state, generation: 1 }, "{millis}");
        assert_eq!(
            presence.changes_in,
            changes_in.map(Duration::from_millis),
            "{millis}"
        );
    }
    // It may come back even so, and what it may say is what it could.
    let resumed = bench.bind(again(Slot::A, 1, 2, 0));
    assert_eq!(bench.seen(Slot::A), (Online, 1));
    assert_eq!(bench.append(Slot::A, resumed.epoch, 1).unwrap(), Appended::Stored);
}

#[test]
fn a_second_loss_starts_the_grace_again() {
    let mut bench = Bench::new();
    let first = bench.bind(hello(Slot::A, 1)).epoch;
    bench.unbind(Slot::A, first, Departure::Lost).unwrap();
    bench.wait(Duration::from_secs(29));
    let second = bench.bind(again(Slot::A, 1, 2, 0)).epoch;
    bench.unbind(Slot::A, second, Departure::Lost).unwrap();
    bench.wait(Duration::from_secs(29));
    assert_eq!(bench.seen(Slot::A).0, PeerState::Away);
    // The first one's departure, told twice, moves nothing.
    assert!(matches!(
        bench.unbind(Slot::A, second, Departure::Lost),
        Err(Gone::Fenced)
    ));
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.seen(Slot::A).0, PeerState::Left);
}

#[test]
fn a_goodbye_is_seen_at_once_and_the_slot_is_still_written_to() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    bench.unbind(Slot::A, a, Departure::Bye).unwrap();
    assert_eq!(bench.seen(Slot::A), (PeerState::Left, 1));
    // The socket of a connection that said goodbye closes afterwards: that is no news.
    assert!(matches!(
        bench.unbind(Slot::A, a, Departure::Lost),
        Err(Gone::Fenced)
    ));
    assert!(matches!(bench.append(Slot::A, a, 1), Err(Gone::Fenced)));
    assert_eq!(bench.append(Slot::B, b, 1).unwrap(), Appended::Stored);
    bench.wait(LIFE - Duration::from_secs(1));
    let resumed = bench.bind(again(Slot::A, 1, 2, 0));
    assert_eq!(
        plain(&bench.waiting(Slot::A, resumed.epoch)),
        [(1, 1, Some("B1"))]
    );
}

#[test]
fn a_session_that_both_left_ends_5_s_later_unless_one_comes_back() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    bench.unbind(Slot::A, a, Departure::Bye).unwrap();
    bench.unbind(Slot::B, b, Departure::Bye).unwrap();
    bench.wait(Duration::from_millis(4999));
    assert!(!bench.record.is_over(bench.now));

    let back = bench.bind(again(Slot::A, 1, 2, 0));
    bench.wait(Duration::from_secs(60));
    assert!(!bench.record.is_over(bench.now));

    // A refused dial is no return.
    bench.unbind(Slot::A, back.epoch, Departure::Bye).unwrap();
    assert!(bench.try_bind(again(Slot::A, 1, 2, 0)).is_err());
    bench.wait(Duration::from_secs(5));
    assert!(bench.record.is_over(bench.now));
}

#[test]
fn one_that_is_lost_has_not_said_goodbye() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    bench.unbind(Slot::A, a, Departure::Bye).unwrap();
    bench.unbind(Slot::B, b, Departure::Lost).unwrap();
    bench.wait(LIFE - Duration::from_millis(1));
    assert!(!bench.record.is_over(bench.now));
    bench.wait(Duration::from_millis(1));
    assert!(bench.record.is_over(bench.now));
}

#[test]
fn goodbyes_never_lengthen_a_session() {
    let mut bench = Bench::new();
    bench.wait(LIFE - Duration::from_secs(2));
    let (a, b) = bench.both();
    bench.unbind(Slot::A, a, Departure::Bye).unwrap();
    bench.unbind(Slot::B, b, Departure::Bye).unwrap();
    bench.wait(Duration::from_secs(2));
    assert!(bench.record.is_over(bench.now));
}

#[test]
fn a_ticket_of_another_incarnation_opens_nothing() {
    let mut bench = Bench::new();
    let before = bench.everything();
    let other = Bind {
        incarnation: Incarnation(78),
        ..hello(Slot::A, 1)
    };
    assert!(matches!(
        bench.try_bind(other),
        Err(BindRefusal::Gone(Gone::NoSession))
    ));
    assert_eq!(bench.everything(), before);
}

#[test]
fn two_instances_meet_and_a_third_finds_it_full() {
    let mut bench = Bench::of(&meeting(1));
    assert_eq!(bench.record.place_of_maker(&meeting(1)).slot, Some(Slot::A));
    let refused = bench.try_bind(hello(Slot::B, 1));
    assert!(
        matches!(refused, Err(BindRefusal::Gone(Gone::NoSession))),
        "nobody's slot"
    );

    let place = |slot| {
        Creation::Joined(Place {
            incarnation: Incarnation(77),
            expires_at: BEGAN.plus(LIFE).unix,
            slot: Some(slot),
        })
    };
    let later = NewSession {
        incarnation: Incarnation(5),
        life: Duration::from_secs(30),
        ..meeting(2)
    };
    for _ in 0..2 {
        assert_eq!(bench.record.join(&meeting(1)), place(Slot::A));
        assert_eq!(bench.record.join(&later), place(Slot::B));
    }
    assert_eq!(bench.record.join(&meeting(3)), Creation::Full);
    for (instance, is_in) in [(1, true), (2, true), (3, false)] {
        assert_eq!(bench.record.belongs_to(asked(instance).instance), is_in);
    }
    assert_eq!(bench.bind(hello(Slot::B, 1)).instance, asked(2).instance);
}

#[test]
fn a_session_with_other_settings_is_joined_by_nobody() {
    let mut bench = Bench::of(&meeting(1));
    let mut other = meeting(2);
    other.settings.e2e = EndToEnd::Required;
    assert_eq!(bench.record.join(&other), Creation::Conflict);
    assert!(!bench.record.belongs_to(other.instance));
    // TURN is the first one's affair.
    let mut relayed = meeting(2);
    relayed.settings.turn = true;
    assert!(matches!(bench.record.join(&relayed), Creation::Joined(_)));
    assert!(!bench.bind(hello(Slot::B, 1)).settings.turn);
}

#[test]
fn who_makes_a_plain_session_has_both_slots() {
    let mut bench = Bench::new();
    assert_eq!(bench.record.place_of_maker(&asked(1)).slot, None);
    let (a, b) = bench.both();
    bench.append(Slot::A, a, 1).unwrap();
    bench.append(Slot::A, a, 2).unwrap();
    bench.unbind(Slot::B, b, Departure::Bye).unwrap();
    let view = bench.record.view(asked(1).id, bench.now);
    assert_eq!((view.slots.a.state, view.slots.a.queued), (PeerState::Online, 0));
    assert_eq!((view.slots.b.state, view.slots.b.queued), (PeerState::Left, 2));
    assert_eq!(
        (view.slots.b.generation, view.expires_at),
        (1, BEGAN.plus(LIFE).unix)
    );
}
