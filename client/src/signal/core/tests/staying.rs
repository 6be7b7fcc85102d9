//! Liveness, interruptions, and when the next dial comes.

use sovereign_relay_protocol::signal::frame::{ClientFrame, ServerFrame};

use super::{super::*, kit::*};

#[test]
fn a_silent_connection_is_pinged_after_20_s_and_dropped_10_s_later() {
    let mut bench = Bench::connected();
    bench.pass_to_deadline();
    assert_eq!(bench.now, seconds(20));
    assert_eq!(bench.frames(), [ClientFrame::Ping]);
    bench.pass_to_deadline();
    assert_eq!(bench.now, seconds(30));
    assert_eq!(bench.interruption().0, Interruption::Silent);
    assert_eq!(bench.effects(), [Effect::HangUp(CloseCode::HeartbeatsMissed)]);
}

#[test]
fn an_answered_ping_keeps_the_connection_for_as_long_as_it_is_answered() {
    let mut bench = Bench::connected();
    while bench.now < seconds(600) {
        bench.pass_to_deadline();
        assert_eq!(bench.frames(), [ClientFrame::Ping]);
        bench.say(&ServerFrame::Pong);
    }
    assert_eq!((bench.events(), bench.effects()), (vec![], vec![]));
}

#[test]
fn timers_that_run_once_a_minute_never_drop_a_healthy_connection() {
    let mut bench = Bench::connected();
    for _ in 0..9 {
        bench.pass(seconds(60));
        assert_eq!(bench.frames(), [ClientFrame::Ping]);
    }
    assert_eq!((bench.events(), bench.effects()), (vec![], vec![]));
}

#[test]
fn a_ping_of_the_relay_is_answered() {
    let mut bench = Bench::connected();
    bench.say(&ServerFrame::Ping);
    assert_eq!(bench.frames(), [ClientFrame::Pong]);
}

#[test]
fn an_application_that_takes_nothing_stops_the_reading_but_not_the_connection() {
    let mut bench = Bench::connected();
    let mut seq = 0;
    while bench.core.is_reading() {
        seq += 1;
        bench.say(&message(seq, 1));
    }
    for _ in 0..20 {
        bench.pass_to_deadline();
    }
    assert_eq!(bench.effects(), []);
    assert_eq!(bench.events().len() as u64, seq);
    assert!(bench.core.is_reading());
}

#[test]
fn every_close_code_has_its_consequence() {
    for code in CloseCode::ALL {
        let mut bench = Bench::connected();
        bench.core.closed(code.code(), bench.now);
        match code.next() {
            Next::Stop => assert_eq!(bench.events(), [ConnectionEvent::Ended(Ended::Closed(code))]),
            Next::Resume | Next::ResumeWithinGoaway => {
                let (cause, retry_in) = bench.interruption();
                assert_eq!(cause, Interruption::Closed(code.code()));
                assert!(retry_in <= Duration::from_millis(500), "{code:?}");
            }
            Next::ResumeLater => assert!(bench.interruption().1 >= seconds(5)),
        }
    }
    for (code, ended) in [
        (4499, Ended::ClosedUnknown(4499)),
        (1000, Ended::Closed(CloseCode::Normal)),
    ] {
        let mut bench = Bench::connected();
        bench.core.closed(code, bench.now);
        assert_eq!(bench.events(), [ConnectionEvent::Ended(ended)]);
        assert_eq!(bench.core.deadline(bench.now), None);
    }
}

#[test]
fn a_final_code_ends_it_before_the_welcome_as_well() {
    // The session expired or was deleted, or the ticket did, while this side was away.
    for code in [
        CloseCode::NoSuchSession,
        CloseCode::BadTicket,
        CloseCode::Replaced,
    ] {
        let mut bench = Bench::connected();
        bench.core.closed(1006, bench.now);
        bench.pass_to_deadline();
        bench.dial();
        bench.events();
        bench.core.closed(code.code(), bench.now);
        assert_eq!(bench.events(), [ConnectionEvent::Ended(Ended::Closed(code))]);
        assert_eq!(bench.core.deadline(bench.now), None);
        bench.core.wake(bench.now);
        bench.core.tick(bench.now);
        assert_eq!(bench.effects(), []);
    }
}

#[test]
fn who_is_not_connected_keeps_as_much_as_a_mailbox_and_sends_it_in_order_when_it_is() {
    let mut bench = Bench::connected();
    bench.core.closed(1006, bench.now);
    let mut sent = 0;
    while bench.core.has_room() {
        bench.send(1);
        sent += 1;
    }
    assert_eq!(sent, limits::MAILBOX_MESSAGES);
    bench.pass_to_deadline();
    bench.dial();
    bench.greet(welcome(1, 0));
    assert_eq!(bench.numbers(), (1..=32).collect::<Vec<_>>());
}

#[test]
fn the_first_goaway_says_when_it_moves() {
    let mut bench = Bench::connected();
    bench.say(&ServerFrame::Goaway { in_ms: 10_000 });
    bench.pass(seconds(4));
    bench.say(&ServerFrame::Goaway { in_ms: 10_000 });
    bench.pass_to_deadline();
    assert_eq!(
        (bench.now, bench.interruption().0),
        (seconds(5), Interruption::Moving)
    );
}

#[test]
fn after_a_goaway_it_moves_at_a_moment_within() {
    let mut bench = Bench::connected();
    bench.say(&ServerFrame::Goaway { in_ms: 10_000 });
    bench.send(1);
    assert_eq!(bench.numbers(), [1], "the connection still works");
    bench.pass_to_deadline();
    assert_eq!(bench.now, seconds(5));
    assert_eq!(bench.interruption(), (Interruption::Moving, Duration::ZERO));
    let effects = bench.effects();
    assert_eq!(effects, [Effect::HangUp(CloseCode::GoingAway), Effect::Dial]);
}

#[test]
fn a_restart_before_that_moment_does_not_bring_it_forward() {
    let mut bench = Bench::connected();
    bench.say(&ServerFrame::Goaway { in_ms: 10_000 });
    bench.pass(seconds(1));
    bench.core.closed(1012, bench.now);
    assert_eq!(bench.interruption().1, seconds(4));
}

#[test]
fn dials_that_fail_or_hang_or_are_not_greeted_are_tried_again_ever_later() {
    let mut bench = Bench::new();
    let mut waits = Vec::new();
    for round in 0..6 {
        bench.pass_to_deadline();
        assert_eq!(bench.effects(), [Effect::Dial]);
        match round % 3 {
            0 => bench.core.dial_failed(None, bench.now),
            1 => bench.pass(seconds(10)),
            _ => {
                bench.core.dialled(bench.now);
                bench.pass(seconds(10));
            }
        }
        let expected = if round % 3 == 2 {
            Interruption::NoWelcome
        } else {
            Interruption::Unreachable
        };
        let (cause, retry_in) = bench.interruption();
        assert_eq!(cause, expected);
        bench.effects();
        waits.push(retry_in.as_millis());
    }
    assert_eq!(waits, [250, 500, 1000, 2000, 4000, 7500]);
}

#[test]
fn a_wake_up_dials_at_once_but_not_a_relay_that_asked_for_patience() {
    let mut bench = Bench::connected();
    bench.core.closed(1006, bench.now);
    bench.core.wake(bench.now);
    bench.core.tick(bench.now);
    assert_eq!(bench.effects(), [Effect::Dial]);

    let mut bench = Bench::connected();
    bench.core.closed(1013, bench.now);
    bench.core.wake(bench.now);
    bench.core.tick(bench.now);
    assert_eq!(bench.effects(), []);
}

#[test]
fn a_wake_up_asks_an_open_connection_and_gives_it_4_s() {
    let mut bench = Bench::connected();
    bench.pass(seconds(1));
    bench.core.wake(bench.now);
    assert_eq!(bench.frames(), [ClientFrame::Ping]);
    bench.pass_to_deadline();
    assert_eq!(bench.now, seconds(5));
    assert_eq!(bench.interruption().0, Interruption::Silent);
}

#[test]
fn a_wake_up_gives_a_dial_and_a_greeting_under_way_4_s() {
    for dialled in [false, true] {
        let mut bench = Bench::new();
        bench.core.tick(bench.now);
        assert_eq!(bench.effects(), [Effect::Dial]);
        if dialled {
            bench.core.dialled(bench.now);
        }
        bench.pass(seconds(1));
        bench.core.wake(bench.now);
        bench.pass_to_deadline();
        assert_eq!(bench.now, seconds(5));
        assert_eq!(bench.effects(), [Effect::HangUp(CloseCode::NoHello)]);
    }
}
