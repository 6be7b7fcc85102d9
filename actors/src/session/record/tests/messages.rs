//! What is stored, for whom, and for how long.

use super::*;

#[test]
fn a_message_is_stored_once_and_a_gap_is_refused() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    assert_eq!(bench.append(Slot::A, a, 2).unwrap(), Appended::OutOfStep);
    assert_eq!(bench.append(Slot::A, a, 1).unwrap(), Appended::Stored);
    assert_eq!(bench.append(Slot::A, a, 1).unwrap(), Appended::Duplicate);
    assert_eq!(bench.append(Slot::A, a, 3).unwrap(), Appended::OutOfStep);
    assert_eq!(bench.append(Slot::A, a, 2).unwrap(), Appended::Stored);
    assert_eq!(bench.append(Slot::A, a, 1).unwrap(), Appended::Duplicate);
    let expected = [(1, 1, Some("A1")), (2, 1, Some("A2"))];
    assert_eq!(plain(&bench.waiting(Slot::B, b)), expected);
    assert_eq!(plain(&bench.waiting(Slot::A, a)), []);
}

#[test]
fn what_is_said_before_the_peer_ever_came_waits_for_it() {
    let mut bench = Bench::new();
    let a = bench.bind(hello(Slot::A, 1)).epoch;
    for n in 1..=21 {
        assert_eq!(bench.append(Slot::A, a, n).unwrap(), Appended::Stored);
    }
    bench.unbind(Slot::A, a, Departure::Bye).unwrap();
    bench.wait(Duration::from_secs(60));
    let b = bench.bind(hello(Slot::B, 2)).epoch;
    let seqs: Vec<_> = bench.waiting(Slot::B, b).iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (1..=21).collect::<Vec<_>>());
}

#[test]
fn the_4096_messages_of_a_session_are_counted_for_both_together() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    let half = u64::from(SESSION_MESSAGES / 2);
    for n in 1..=half {
        assert_eq!(bench.append(Slot::A, a, n).unwrap(), Appended::Stored);
        assert_eq!(bench.append(Slot::B, b, n).unwrap(), Appended::Stored);
        bench.process(Slot::A, a, n);
        bench.process(Slot::B, b, n);
    }
    for (slot, epoch) in [(Slot::A, a), (Slot::B, b)] {
        assert_eq!(
            bench.append(slot, epoch, half + 1).unwrap(),
            Appended::SessionTotal
        );
        assert_eq!(bench.append(slot, epoch, half).unwrap(), Appended::Duplicate);
        assert_eq!(bench.append(slot, epoch, half + 2).unwrap(), Appended::OutOfStep);
    }
    // A page load is no way around it.
    let reloaded = bench.bind(hello(Slot::A, 3)).epoch;
    assert_eq!(
        bench.append(Slot::A, reloaded, 1).unwrap(),
        Appended::SessionTotal
    );
}

#[test]
fn a_full_mailbox_refuses_what_is_new_and_says_the_truth_of_what_is_not() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    let most = MAILBOX_MESSAGES as u64;
    for n in 1..=most {
        assert_eq!(bench.append(Slot::A, a, n).unwrap(), Appended::Stored);
    }
    let before = bench.everything();
    assert_eq!(bench.append(Slot::A, a, most + 1).unwrap(), Appended::MailboxFull);
    assert_eq!(bench.append(Slot::A, a, most).unwrap(), Appended::Duplicate);
    assert_eq!(bench.append(Slot::A, a, most + 2).unwrap(), Appended::OutOfStep);
    assert_eq!(bench.everything(), before);
    // The other way is as free as ever, and one acknowledgement makes room for one.
    assert_eq!(bench.append(Slot::B, b, 1).unwrap(), Appended::Stored);
    bench.process(Slot::B, b, 1);
    assert_eq!(bench.append(Slot::A, a, most + 1).unwrap(), Appended::Stored);
    assert_eq!(bench.append(Slot::A, a, most + 2).unwrap(), Appended::MailboxFull);
}

#[test]
fn without_room_elsewhere_only_what_is_new_is_refused() {
    let mut bench = Bench::new();
    let (a, _) = bench.both();
    bench.append(Slot::A, a, 1).unwrap();
    let before = bench.everything();
    let answers = [1, 2, 3].map(|n| bench.record.append_without_room(Slot::A, a, n).unwrap());
    assert_eq!(
        answers,
        [Appended::Duplicate, Appended::MailboxFull, Appended::OutOfStep]
    );
    assert_eq!(bench.everything(), before);
}

#[test]
fn what_is_acknowledged_is_forgotten_and_an_acknowledgement_may_come_twice() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    for n in 1..=4 {
        bench.append(Slot::A, a, n).unwrap();
    }
    bench.waiting(Slot::B, b);
    for seq in [3, 3, 1, 0] {
        assert_eq!(bench.record.trim(Slot::B, b, seq).unwrap(), Trimmed::Trimmed);
        assert_eq!(plain(&bench.waiting(Slot::B, b)), [(4, 1, Some("A4"))]);
    }
    assert_eq!(bench.record.trim(Slot::B, b, 5).unwrap(), Trimmed::BeyondSent);
    assert_eq!(plain(&bench.waiting(Slot::B, b)), [(4, 1, Some("A4"))]);
    assert_eq!(bench.record.trim(Slot::B, b, 4).unwrap(), Trimmed::Trimmed);
    assert_eq!(bench.record.trim(Slot::B, b, 5).unwrap(), Trimmed::BeyondSent);
    assert_eq!(
        (bench.waiting(Slot::B, b), bench.record.bytes_for(Slot::B)),
        (Vec::new(), 0)
    );
    // The numbers go on where they were.
    bench.append(Slot::A, a, 5).unwrap();
    assert_eq!(plain(&bench.waiting(Slot::B, b)), [(5, 1, Some("A5"))]);
}

#[test]
fn a_hello_acknowledges_as_an_ack_does() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    for n in 1..=3 {
        bench.append(Slot::A, a, n).unwrap();
    }
    bench.process(Slot::B, b, 1);
    let resumed = bench.bind(again(Slot::B, 2, 2, 2));
    assert_eq!(resumed.base, 2);
    assert_eq!(
        plain(&bench.waiting(Slot::B, resumed.epoch)),
        [(3, 1, Some("A3"))]
    );
    // One that is behind brings nothing back.
    let resumed = bench.bind(again(Slot::B, 2, 3, 0));
    assert_eq!(resumed.base, 2);
    assert_eq!(
        plain(&bench.waiting(Slot::B, resumed.epoch)),
        [(3, 1, Some("A3"))]
    );
}

#[test]
fn a_new_load_of_the_receiver_gets_what_the_old_one_had_not_acknowledged() {
    let mut bench = Bench::new();
    let (a, b) = bench.both();
    for n in 1..=3 {
        bench.append(Slot::A, a, n).unwrap();
    }
    bench.process(Slot::B, b, 1);
    let reloaded = bench.bind(hello(Slot::B, 3));
    assert_eq!((reloaded.base, reloaded.generation), (1, 2));
    let expected = [(2, 1, Some("A2")), (3, 1, Some("A3"))];
    assert_eq!(plain(&bench.waiting(Slot::B, reloaded.epoch)), expected);
}

#[test]
fn a_new_load_of_the_sender_stands_between_its_messages_and_those_of_the_old_one() {
    let mut bench = Bench::new();
    let (old, b) = bench.both();
    bench.append(Slot::A, old, 1).unwrap();
    let new = bench.bind(hello(Slot::A, 3));
    assert!(matches!(bench.append(Slot::A, old, 2), Err(Gone::Fenced)));
    bench.append(Slot::A, new.epoch, 1).unwrap();
    // A resume is no news.
    bench.bind(again(Slot::A, 3, 2, 0));
    let expected = [(1, 1, Some("A1")), (2, 2, None), (3, 2, Some("A1"))];
    assert_eq!(plain(&bench.waiting(Slot::B, b)), expected);
}

#[test]
fn the_first_arrival_takes_no_number_and_a_reload_finds_room_in_a_full_mailbox() {
    let mut bench = Bench::new();
    let a = bench.bind(hello(Slot::A, 1)).epoch;
    let b = bench.bind(hello(Slot::B, 2)).epoch;
    assert_eq!(bench.waiting(Slot::B, b), []);
    let most = MAILBOX_MESSAGES as u64;
    for n in 1..=most {
        bench.append(Slot::A, a, n).unwrap();
    }
    let reloaded = bench.bind(hello(Slot::A, 3));
    let waiting = bench.waiting(Slot::B, b);
    assert_eq!(plain(&waiting).last(), Some(&(most + 1, 2, None)));
    assert_eq!(
        bench.record.view(asked(1).id, bench.now).slots.b.queued,
        MAILBOX_MESSAGES
    );
    assert_eq!(
        bench.append(Slot::A, reloaded.epoch, 1).unwrap(),
        Appended::MailboxFull
    );
}

#[test]
fn a_reload_before_the_peer_ever_came_waits_for_it_too() {
    let mut bench = Bench::new();
    let first = bench.bind(hello(Slot::A, 1)).epoch;
    bench.append(Slot::A, first, 1).unwrap();
    let second = bench.bind(hello(Slot::A, 2)).epoch;
    bench.append(Slot::A, second, 1).unwrap();
    let b = bench.bind(hello(Slot::B, 3));
    assert_eq!(b.peer.told.generation, 2);
    let expected = [(1, 1, Some("A1")), (2, 2, None), (3, 2, Some("A1"))];
    assert_eq!(plain(&bench.waiting(Slot::B, b.epoch)), expected);
}
