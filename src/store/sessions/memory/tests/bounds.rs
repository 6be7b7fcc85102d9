//! Bounds over all sessions.

use super::*;

#[test]
fn an_instance_that_fills_its_mailboxes_is_refused_and_its_neighbours_go_on() {
    let bench = Bench::new(10, 1000, 100_000);
    let (first, second, neighbour) = (bench.open(1, 1), bench.open(2, 1), bench.open(3, 2));
    assert_eq!(bench.append(1, first, 1, 600), Appended::Stored);
    assert_eq!(bench.append(2, second, 1, 401), Appended::MailboxFull);
    assert_eq!(bench.append(2, second, 1, 400), Appended::Stored);
    assert_eq!(bench.append(2, second, 2, 100), Appended::MailboxFull);
    // What was stored is said to be, and what comes too early is out of step, room or not.
    assert_eq!(bench.append(2, second, 1, 400), Appended::Duplicate);
    assert_eq!(bench.append(2, second, 3, 100), Appended::OutOfStep);
    assert_eq!(bench.append(3, neighbour, 1, 1000), Appended::Stored);

    // An acknowledgement in one session is room in another.
    let receiver = bench.bind(1, Slot::B, 2).unwrap().epoch;
    bench.process(1, receiver, 1);
    assert_eq!(bench.append(2, second, 2, 600), Appended::Stored);
    assert_eq!(bench.kept(), (3, 2000, 2));
}

#[test]
fn a_receivers_bytes_are_the_senders() {
    let bench = Bench::new(10, 1000, 100_000);
    let meeting = |by| NewSession {
        is_rendezvous: true,
        ..asked(1, by)
    };
    bench.create(meeting(1));
    bench.create(meeting(2));
    let a = bench.bind(1, Slot::A, 1).unwrap().epoch;
    let b = bench.bind(1, Slot::B, 2).unwrap().epoch;
    assert_eq!(bench.append(1, a, 1, 1000), Appended::Stored);
    assert_eq!(bench.append(1, a, 2, 100), Appended::MailboxFull);
    let answer = |n| {
        now(bench
            .store
            .append(id(1), Slot::B, b, n, Opaque::new("x".repeat(500 - ENTRY_BYTES))))
        .unwrap()
    };
    assert_eq!(
        [answer(1), answer(2), answer(3)],
        [Appended::Stored, Appended::Stored, Appended::MailboxFull]
    );
}

#[test]
fn when_all_mailboxes_are_full_the_heaviest_is_refused_first_and_nobody_makes_sessions() {
    let bench = Bench::new(10, 1000, 1000);
    let (heavy, light) = (bench.open(1, 1), bench.open(2, 2));
    assert_eq!(bench.append(1, heavy, 1, 900), Appended::Stored);
    assert!(matches!(bench.create(asked(3, 3)), Creation::Made(_)));
    assert_eq!(bench.append(2, light, 1, 100), Appended::Stored);

    assert_eq!(bench.append(1, heavy, 2, 100), Appended::MailboxFull);
    assert_eq!(bench.append(2, light, 2, 100), Appended::Stored);
    for by in [1, 2, 4] {
        assert_eq!(bench.create(asked(9, by)), Creation::Overloaded);
    }
    // Sessions that are there can be found, and are worked in.
    let again = NewSession {
        is_rendezvous: true,
        ..asked(2, 2)
    };
    assert!(matches!(bench.create(again), Creation::Joined(_)));

    let receiver = bench.bind(1, Slot::B, 2).unwrap().epoch;
    bench.process(1, receiver, 1);
    assert_eq!(bench.append(1, heavy, 2, 100), Appended::Stored);
    assert!(matches!(bench.create(asked(9, 4)), Creation::Made(_)));
}

#[test]
fn a_sweep_frees_what_is_over_and_nothing_else() {
    let bench = Bench::new(1, 1000, 1000);
    let early = bench.open(1, 1);
    assert_eq!(bench.append(1, early, 1, 400), Appended::Stored);
    bench.clock.advance(Duration::from_secs(60));
    let late = bench.open(2, 2);
    assert_eq!(bench.append(2, late, 1, 300), Appended::Stored);
    bench.store.sweep();
    assert_eq!(bench.kept(), (2, 700, 2));
    assert_eq!(bench.create(asked(3, 1)), Creation::TooMany);

    bench.clock.advance(Duration::from_secs(60));
    bench.store.sweep();
    assert_eq!(bench.kept(), (1, 300, 1));
    assert!(matches!(bench.create(asked(3, 1)), Creation::Made(_)));
    assert_eq!(bench.append(2, late, 2, 100), Appended::Stored);

    assert!(now(bench.store.remove(id(2), instance(2))).unwrap());
    assert_eq!(bench.kept(), (1, 0, 1));
}

#[test]
fn what_is_over_is_not_seen_though_no_sweep_came_and_its_id_is_free() {
    let bench = Bench::new(1, 1000, 1000);
    let epoch = bench.open(1, 1);
    bench.append(1, epoch, 1, 1000);
    bench.clock.advance(Duration::from_secs(120));
    assert_eq!(now(bench.store.view(id(1), instance(1))).unwrap(), None);
    assert_eq!(bench.kept(), (1, 1000, 1));
    // The books are made straight before the new one is let in.
    assert!(matches!(bench.create(asked(1, 1)), Creation::Made(_)));
    assert_eq!(bench.kept(), (1, 0, 1));
}

#[test]
fn a_refused_session_leaves_nothing() {
    let bench = Bench::new(0, 1000, 1000);
    for number in 1..=100 {
        assert_eq!(bench.create(asked(number, number)), Creation::TooMany);
    }
    assert_eq!(bench.kept(), (0, 0, 0));
}
