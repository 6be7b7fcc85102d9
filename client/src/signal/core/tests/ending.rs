//! Leaving, and what can't be mended.

use sovereign_relay_protocol::signal::{
    frame::{ClientFrame, ServerFrame, Welcome},
    id::Role,
};

use super::{super::*, kit::*};

const BYE: ClientFrame = ClientFrame::Bye {
    mood: Some(Mood::Direct),
};

#[test]
fn who_leaves_waits_for_what_was_sent_then_acknowledges_and_says_bye() {
    let mut bench = Bench::connected();
    bench.say(&message(1, 1));
    bench.events();
    bench.send(1);
    bench.core.leave(Mood::Direct, bench.now);
    assert_eq!(bench.numbers(), [1]);
    bench.say(&ServerFrame::Ack { n: 1 });
    assert_eq!(bench.frames(), [ClientFrame::Ack { seq: 1 }, BYE]);
    assert_eq!(bench.events(), [ConnectionEvent::Ended(Ended::Left)]);
    assert_eq!(bench.effects(), [Effect::HangUp(CloseCode::Normal)]);
    assert!(bench.core.is_over() && bench.core.deadline(bench.now).is_none());
}

#[test]
fn who_leaves_while_not_connected_connects_to_say_so_but_not_for_long() {
    let mut bench = Bench::connected();
    bench.core.closed(1006, bench.now);
    bench.core.leave(Mood::Direct, bench.now);
    bench.pass_to_deadline();
    bench.dial();
    bench.greet(welcome(1, 0));
    assert_eq!(bench.frames(), [BYE]);

    let mut bench = Bench::new();
    bench.core.leave(Mood::Direct, bench.now);
    while !bench.core.is_over() {
        bench.pass_to_deadline();
    }
    assert_eq!(bench.now, seconds(5));
    assert!(bench.events().contains(&ConnectionEvent::Ended(Ended::Left)));
}

#[test]
fn a_relay_that_lost_what_it_acknowledged_or_claims_more_than_was_said_is_out_of_step() {
    let wrong = [welcome(1, 0), welcome(4, 0), welcome(3, 2)];
    for wrong in wrong {
        let mut bench = Bench::connected();
        bench.say(&message(1, 1));
        bench.send(2);
        bench.frames();
        bench.say(&ServerFrame::Ack { n: 1 });
        bench.core.closed(1006, bench.now);
        bench.pass_to_deadline();
        bench.dial();
        bench.greet(wrong);
        assert!(bench.events().contains(&ConnectionEvent::Ended(Ended::OutOfStep)));
        assert_eq!(bench.effects(), [Effect::HangUp(CloseCode::OutOfStep)]);
    }
}

#[test]
fn a_relay_that_claims_to_have_stored_what_only_waits_here_is_out_of_step() {
    let mut bench = Bench::new();
    bench.send(3);
    bench.core.tick(bench.now);
    bench.dial();
    bench.greet(welcome(2, 0));
    assert_eq!(bench.events(), [ConnectionEvent::Ended(Ended::OutOfStep)]);
    assert_eq!((bench.core.stored(), bench.frames()), (0, vec![]));
}

#[test]
fn a_slot_does_not_change_hands() {
    let mut bench = Bench::connected();
    bench.core.closed(1006, bench.now);
    bench.pass_to_deadline();
    bench.dial();
    bench.greet(Welcome {
        slot: Slot::B,
        role: Role::Polite,
        ..welcome(1, 0)
    });
    assert!(bench.events().contains(&ConnectionEvent::Ended(Ended::OutOfStep)));
}

#[test]
fn a_relay_that_stays_away_for_longer_than_a_session_lives_is_given_up() {
    let mut bench = Bench::connected();
    bench.core.closed(1006, bench.now);
    while !bench.core.is_over() {
        bench.pass_to_deadline();
        if bench.effects() == [Effect::Dial] {
            bench.core.dial_failed(None, bench.now);
        }
    }
    assert!((seconds(660)..seconds(680)).contains(&bench.now));
    assert!(
        bench
            .events()
            .contains(&ConnectionEvent::Ended(Ended::Unreachable))
    );
}

#[test]
fn an_address_that_is_no_relay_is_final_and_nothing_follows_the_end() {
    let mut bench = Bench::new();
    bench.core.tick(bench.now);
    assert_eq!(bench.effects(), [Effect::Dial]);
    bench.core.dial_failed(Some(404), bench.now);
    bench.core.closed(1006, bench.now);
    bench.core.dial_failed(None, bench.now);
    bench.say(&ServerFrame::Ping);
    bench.pass(seconds(60));
    assert_eq!(bench.events(), [ConnectionEvent::Ended(Ended::Refused(404))]);
    assert_eq!((bench.effects(), bench.frames()), (vec![], vec![]));
}
