//! Each rule is the operator's: with another number the record does otherwise, and nothing else changes.

use super::*;

fn bench(rules: SessionRules) -> Bench {
    Bench::within(&asked(1), rules)
}

/// What becomes of messages of `length` bytes each that slot a sends.
fn stored(bench: &mut Bench, length: usize) -> Vec<Appended> {
    let (a, _) = bench.both();
    (1..=4)
        .map(|n| {
            bench
                .record
                .append(Slot::A, a, n, text(&"x".repeat(length)))
                .unwrap()
        })
        .take_while(|appended| *appended != Appended::OutOfStep)
        .collect()
}

#[test]
fn so_many_messages_wait_as_the_rules_say() {
    let mut rules = SessionRules::default();
    rules.limits.mailbox_messages = 2;
    assert_eq!(
        stored(&mut bench(rules), 1),
        [Appended::Stored, Appended::Stored, Appended::MailboxFull]
    );
}

#[test]
fn so_many_bytes_wait_as_the_rules_say() {
    let mut rules = SessionRules::default();
    rules.limits.mailbox_bytes = 2 * (10 + ENTRY_BYTES);
    assert_eq!(
        stored(&mut bench(rules), 10),
        [Appended::Stored, Appended::Stored, Appended::MailboxFull]
    );
}

#[test]
fn a_session_carries_as_many_messages_as_the_rules_say() {
    let rules = SessionRules {
        messages: 3,
        ..SessionRules::default()
    };
    let mut bench = bench(rules);
    assert_eq!(
        stored(&mut bench, 1),
        [
            Appended::Stored,
            Appended::Stored,
            Appended::Stored,
            Appended::SessionTotal
        ]
    );
}

#[test]
fn pages_load_and_connections_resume_as_often_as_the_rules_say() {
    let rules = SessionRules {
        loads_per_minute: 2,
        resumes_per_minute: 3,
        ..SessionRules::default()
    };
    let mut bench = bench(rules);
    bench.bind(hello(Slot::A, 1));
    bench.bind(hello(Slot::A, 2));
    for attempt in 2..5 {
        bench.bind(again(Slot::A, 2, attempt, 0));
    }
    let resumed = bench.try_bind(again(Slot::A, 2, 5, 0));
    assert!(matches!(resumed, Err(BindRefusal::TooManyResumes)));
    let loaded = bench.try_bind(hello(Slot::A, 3));
    assert!(matches!(loaded, Err(BindRefusal::TooManyLoads)));
    bench.wait(Duration::from_secs(60));
    bench.bind(again(Slot::A, 2, 5, 0));
    bench.bind(hello(Slot::A, 3));
}

#[test]
fn a_record_is_48_bytes_larger_for_its_rules_and_no_more() {
    assert!(size_of::<SessionRules>() <= 48);
}
