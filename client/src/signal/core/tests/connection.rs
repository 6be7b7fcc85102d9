//! Greeting, sending, receiving, and doing so over several connections.

use sovereign_relay_protocol::signal::{
    frame::{ClientFrame, PeerPresence, PeerState, Refused, ServerFrame, Welcome},
    id::Role,
};

use super::{super::*, kit::*};

#[test]
fn a_hello_comes_first_and_messages_only_after_the_welcome() {
    let mut bench = Bench::new();
    bench.send(2);
    bench.core.tick(bench.now);
    let hello = bench.dial();
    assert_eq!((hello.attempt, hello.last), (1, 0));
    assert_eq!(bench.frames(), []);
    bench.greet(welcome(1, 0));
    assert_eq!(bench.numbers(), [1, 2]);
    let resumed =
        |event: &ConnectionEvent| matches!(event, ConnectionEvent::Connected { resumed: false, .. });
    assert!(bench.events().first().is_some_and(resumed));
}

#[test]
fn a_resume_has_the_same_secret_a_greater_try_and_what_was_processed() {
    let mut bench = Bench::connected();
    for seq in 1..=3 {
        bench.say(&message(seq, 1));
    }
    let taken = bench.core.take_event().unwrap();
    bench.core.processed(taken.seq.unwrap(), bench.now);
    bench.core.closed(1006, bench.now);
    bench.pass_to_deadline();
    let hello = bench.dial();
    assert_eq!((hello.attempt, hello.last), (2, 1));
    assert_eq!(hello.connection, ConnectionId::from_bytes([7; 16]));
    bench.greet(welcome(1, 1));
    bench.say(&message(2, 1));
    bench.say(&message(3, 1));
    bench.say(&message(4, 1));
    let messages = |event: &ConnectionEvent| matches!(event, ConnectionEvent::Message { .. });
    assert_eq!(bench.events().iter().filter(|event| messages(event)).count(), 3);
}

#[test]
fn what_the_relay_has_stored_is_dropped_and_the_rest_sent_again() {
    let mut bench = Bench::connected();
    bench.send(5);
    assert_eq!(bench.numbers(), [1, 2, 3, 4, 5]);
    bench.say(&ServerFrame::Ack { n: 2 });
    bench.core.closed(4512, bench.now);
    bench.pass_to_deadline();
    bench.dial();
    bench.greet(welcome(4, 0));
    assert_eq!(bench.core.stored(), 3);
    assert_eq!(bench.numbers(), [4, 5]);
}

#[test]
fn a_refused_message_and_those_after_it_go_again_after_the_delay() {
    let mut bench = Bench::connected();
    bench.send(6);
    bench.frames();
    let code = Refused::MailboxFull;
    bench.say(&ServerFrame::Err {
        code,
        n: 1,
        retry_ms: 800,
    });
    let retry_in = Duration::from_millis(800);
    assert_eq!(bench.events(), [ConnectionEvent::Delayed { code, retry_in }]);
    assert!(bench.numbers().is_empty());
    bench.pass_to_deadline();
    assert_eq!(bench.now, retry_in);
    assert_eq!(bench.numbers(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn what_the_welcome_allows_holds_from_then_on() {
    let mut bench = Bench::new();
    bench.core.tick(bench.now);
    bench.dial();
    for length in [5, 500, 6] {
        bench.core.send(Opaque::new("x".repeat(length))).unwrap();
    }
    let limits = SessionLimits {
        frame_bytes: 500,
        messages_per_second: 2,
        burst: 2,
        mailbox_messages: 3,
        ..SessionLimits::default()
    };
    bench.greet(Welcome {
        limits,
        ..welcome(1, 0)
    });
    assert_eq!(bench.core.limits(), limits);
    assert_eq!(
        (bench.core.take_dropped(), bench.core.take_dropped()),
        (Some(2), None)
    );
    assert_eq!(bench.numbers(), [1]);
    bench.pass_to_deadline();
    assert_eq!(
        (bench.now, bench.numbers()),
        (Duration::from_millis(500), vec![2])
    );
    assert_eq!(bench.core.send(Opaque::new("x".repeat(500))), Err(TooLarge));
    bench.send(1);
    assert!(!bench.core.has_room());
}

#[test]
fn after_a_rate_limit_the_rest_goes_one_at_a_time() {
    let mut bench = Bench::connected();
    bench.send(3);
    bench.frames();
    let (code, n, retry_ms) = (Refused::RateLimited, 2, 800);
    bench.say(&ServerFrame::Err { code, n, retry_ms });
    bench.pass_to_deadline();
    assert_eq!(
        (bench.now, bench.numbers()),
        (Duration::from_millis(800), vec![2])
    );
    bench.pass_to_deadline();
    assert_eq!(
        (bench.now, bench.numbers()),
        (Duration::from_millis(850), vec![3])
    );
}

#[test]
fn acknowledgements_are_cumulative_and_at_most_200_ms_late() {
    let mut bench = Bench::connected();
    for seq in 1..=5 {
        bench.say(&message(seq, 1));
    }
    assert_eq!(bench.events().len(), 5);
    assert_eq!(bench.frames(), []);
    bench.pass_to_deadline();
    assert!(bench.now <= Duration::from_millis(200));
    assert_eq!(bench.frames(), [ClientFrame::Ack { seq: 5 }]);
}

#[test]
fn what_the_application_has_not_taken_is_not_acknowledged() {
    let mut bench = Bench::connected();
    bench.say(&message(1, 1));
    bench.pass(seconds(1));
    assert_eq!(bench.frames(), []);
}

#[test]
fn a_new_generation_of_the_peer_comes_before_its_messages_and_an_old_one_never_returns() {
    let mut bench = Bench::connected();
    let online = |generation| PeerPresence {
        state: PeerState::Online,
        generation,
    };
    let peer = |generation, seq| ServerFrame::Peer {
        state: PeerState::Online,
        generation,
        seq,
    };
    bench.say(&peer(1, None));
    bench.say(&message(1, 1));
    // The unsequenced word of generation 2 overtakes.
    bench.say(&peer(2, None));
    bench.say(&peer(2, Some(2)));
    bench.say(&message(3, 1));
    bench.say(&message(4, 2));
    let expected = |seq, generation| ConnectionEvent::Message {
        generation,
        content: Opaque::new(format!("message {seq}")),
    };
    assert_eq!(
        bench.events(),
        [
            ConnectionEvent::Peer(online(1)),
            expected(1, 1),
            ConnectionEvent::Peer(online(2)),
            ConnectionEvent::Stale,
            expected(4, 2),
        ]
    );
}

#[test]
fn a_missing_number_is_a_fault_and_a_repeated_one_is_skipped() {
    let mut bench = Bench::connected();
    bench.say(&message(1, 1));
    bench.say(&message(1, 1));
    assert_eq!(bench.events().len(), 1);
    bench.say(&message(3, 1));
    assert_eq!(bench.interruption().0, Interruption::Fault);
    assert_eq!(bench.effects(), [Effect::HangUp(CloseCode::OutOfStep)]);
}

#[test]
fn anything_but_a_welcome_at_first_and_a_second_welcome_are_faults() {
    let wrong = [
        ServerFrame::Ping.to_text(),
        "[]".to_owned(),
        r#"{"t":"later"}"#.to_owned(),
    ];
    for text in wrong {
        let mut bench = Bench::new();
        bench.core.tick(bench.now);
        bench.dial();
        bench.core.text(&text, bench.now);
        assert_eq!(bench.interruption().0, Interruption::Fault, "{text}");
        assert_eq!(bench.effects(), [Effect::HangUp(CloseCode::Malformed)]);
    }
    let mut bench = Bench::connected();
    bench.greet(welcome(1, 0));
    assert_eq!(bench.interruption().0, Interruption::Fault);
}

#[test]
fn a_role_that_is_not_the_slots_is_a_fault() {
    let mut bench = Bench::new();
    bench.core.tick(bench.now);
    bench.dial();
    bench.greet(Welcome {
        role: Role::Polite,
        ..welcome(1, 0)
    });
    assert_eq!(bench.interruption().0, Interruption::Fault);
    assert_eq!(bench.effects(), [Effect::HangUp(CloseCode::Malformed)]);
}

#[test]
fn frames_of_a_later_version_are_skipped_and_what_is_no_frame_is_a_fault() {
    let mut bench = Bench::connected();
    bench.core.text(r#"{"t":"later","x":1}"#, bench.now);
    assert_eq!(bench.events(), []);
    bench.core.text("null", bench.now);
    assert_eq!(bench.interruption().0, Interruption::Fault);
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_a_fault() {
    let mut bench = Bench::connected();
    bench.send(1);
    bench.say(&ServerFrame::Ack { n: 1 });
    assert_eq!(bench.interruption().0, Interruption::Fault);
}

#[test]
fn turn_credentials_are_asked_for_at_most_once_in_30_s() {
    let mut bench = Bench::connected();
    bench.core.request_ice();
    assert_eq!(bench.frames(), [ClientFrame::Ice]);
    bench.core.request_ice();
    assert_eq!(bench.frames(), []);
    let (ice_servers, expires_at) = (Vec::new(), None);
    bench.say(&ServerFrame::Ice {
        ice_servers,
        expires_at,
    });
    assert_eq!(
        bench.events(),
        [ConnectionEvent::IceServers {
            servers: Vec::new(),
            expires_at: None
        }]
    );
    bench.pass_to_deadline();
    assert_eq!(bench.frames(), [ClientFrame::Ping]);
    bench.say(&ServerFrame::Pong);
    bench.pass_to_deadline();
    assert_eq!((bench.now, bench.frames()), (seconds(30), vec![ClientFrame::Ice]));
}
