//! What is decided of each frame, one rule at a time; `honest.rs` throws all that may happen at a client that follows them.

use sovereign_relay_protocol::{
    limits::{MESSAGES_BURST, MESSAGES_PER_SECOND},
    signal::frame::PeerPresence,
    time::UnixMillis,
};

use super::*;
use crate::{
    ports::StoreError,
    session::port::{Presence, Settings},
};

mod honest;

const EPOCH: u64 = 7;
const RATE: Duration = Duration::from_millis(1000 / MESSAGES_PER_SECOND as u64);

/// Slot a's connection on this replica, and the time.
struct Bench {
    state: SessionState,
    now: Now,
}

impl Bench {
    fn new(e2e: EndToEnd) -> Self {
        Self::within(&SessionLimits::default(), e2e)
    }

    fn within(limits: &SessionLimits, e2e: EndToEnd) -> Self {
        let mut bench = Self {
            state: SessionState::new(limits),
            now: at(Duration::from_secs(50)),
        };
        assert!(bench.state.on_bound(Slot::A, &bound(EPOCH, 1, e2e)));
        bench
    }

    fn judge(&mut self, n: u64) -> Verdict {
        self.judge_content(n, "x")
    }

    fn judge_content(&mut self, n: u64, content: &str) -> Verdict {
        self.state
            .judge(Slot::A, EPOCH, n, &Opaque::new(content), self.now)
    }

    fn answer(&mut self, n: u64, outcome: Result<Appended, Gone>) -> Answer {
        self.state.on_appended(Slot::A, EPOCH, n, &outcome)
    }

    /// A message that the store answers so.
    fn send(&mut self, n: u64, outcome: Result<Appended, Gone>) -> Answer {
        assert_eq!(self.judge(n), Verdict::Append, "{n}");
        self.answer(n, outcome)
    }

    fn wait(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
    }
}

fn at(mono: Duration) -> Now {
    Now {
        mono,
        unix: UnixMillis(1_800_000_000_000),
    }
}

fn bound(epoch: u64, next: u64, e2e: EndToEnd) -> Bound {
    let told = PeerPresence {
        state: sovereign_relay_protocol::signal::frame::PeerState::Absent,
        generation: 0,
    };
    Bound {
        epoch,
        generation: 1,
        is_new_load: next == 1,
        next,
        base: 0,
        peer: Presence {
            told,
            changes_in: None,
        },
        settings: Settings { e2e, turn: false },
        instance: InstanceId::from_bytes([1; 16]),
        expires_at: UnixMillis(1_800_000_120_000),
        expires_in: Duration::from_secs(120),
    }
}

fn unavailable<T>() -> Result<T, Gone> {
    Err(Gone::Unavailable(StoreError("away".to_owned())))
}

fn refusal(code: Refused, n: u64, retry: Duration) -> Refusal {
    Refusal { code, n, retry }
}

#[test]
fn each_stored_message_is_acknowledged_once_the_store_has_it() {
    let mut bench = Bench::new(EndToEnd::Optional);
    for n in 1..=5 {
        assert_eq!(bench.send(n, Ok(Appended::Stored)), Answer::Ack(n, true));
    }
}

#[test]
fn a_repeated_message_is_acknowledged_up_to_what_is_stored_and_is_no_news() {
    let mut bench = Bench::new(EndToEnd::Optional);
    for n in 1..=3 {
        bench.send(n, Ok(Appended::Stored));
    }
    assert_eq!(bench.judge(1), Verdict::Repeat(3));
    assert_eq!(bench.judge(3), Verdict::Repeat(3));
    assert_eq!(bench.send(4, Ok(Appended::Stored)), Answer::Ack(4, true));
}

#[test]
fn a_resumed_connection_goes_on_where_the_store_says() {
    let mut bench = Bench::new(EndToEnd::Optional);
    bench
        .state
        .on_bound(Slot::A, &bound(EPOCH, 9, EndToEnd::Optional));
    assert_eq!(bench.judge(10), Verdict::Close(CloseCode::OutOfStep));
    assert_eq!(bench.judge(1), Verdict::Repeat(8));
    assert_eq!(bench.send(9, Ok(Appended::Stored)), Answer::Ack(9, true));
}

#[test]
fn a_gap_without_a_refusal_is_out_of_step() {
    let mut bench = Bench::new(EndToEnd::Optional);
    assert_eq!(bench.judge(2), Verdict::Close(CloseCode::OutOfStep));
    bench.send(1, Ok(Appended::Stored));
    assert_eq!(bench.judge(3), Verdict::Close(CloseCode::OutOfStep));
    assert_eq!(
        bench.send(2, Ok(Appended::OutOfStep)),
        Answer::Close(CloseCode::OutOfStep)
    );
}

#[test]
fn what_was_under_way_behind_a_refused_message_is_skipped_and_all_of_it_passes_later() {
    for refused in [Ok(Appended::MailboxFull), unavailable()] {
        let mut bench = Bench::new(EndToEnd::Optional);
        bench.send(1, Ok(Appended::Stored));
        assert!(matches!(
            bench.send(2, refused),
            Answer::Refuse(Refusal { n: 2, .. })
        ));
        for n in 3..=7 {
            assert_eq!(bench.judge(n), Verdict::Skip);
        }
        for n in 2..=7 {
            assert_eq!(bench.send(n, Ok(Appended::Stored)), Answer::Ack(n, true));
        }
        assert_eq!(bench.judge(9), Verdict::Close(CloseCode::OutOfStep));
    }
}

#[test]
fn a_message_refused_again_is_waited_for_again() {
    let mut bench = Bench::new(EndToEnd::Optional);
    let full = Answer::Refuse(refusal(Refused::MailboxFull, 1, MAILBOX_RETRY));
    let away = Answer::Refuse(refusal(Refused::Unavailable, 1, STORE_RETRY));
    assert_eq!(bench.send(1, Ok(Appended::MailboxFull)), full);
    assert_eq!(bench.judge(2), Verdict::Skip);
    assert_eq!(bench.send(1, unavailable()), away);
    assert_eq!(bench.judge(2), Verdict::Skip);
    assert_eq!(bench.send(1, Ok(Appended::Stored)), Answer::Ack(1, true));
    assert_eq!(bench.send(2, Ok(Appended::Stored)), Answer::Ack(2, true));
}

#[test]
fn a_message_that_was_stored_though_nobody_could_tell_is_acknowledged_when_it_comes_again() {
    let mut bench = Bench::new(EndToEnd::Optional);
    bench.send(1, Ok(Appended::Stored));
    bench.send(2, unavailable());
    assert_eq!(bench.send(2, Ok(Appended::Duplicate)), Answer::Ack(2, false));
    assert_eq!(bench.send(3, Ok(Appended::Stored)), Answer::Ack(3, true));
}

#[test]
fn an_older_message_that_comes_again_does_not_end_the_wait_for_a_refused_one() {
    let mut bench = Bench::new(EndToEnd::Optional);
    bench.send(1, Ok(Appended::Stored));
    bench.send(2, Ok(Appended::MailboxFull));
    assert_eq!(bench.judge(1), Verdict::Repeat(1));
    assert_eq!(bench.judge(3), Verdict::Skip);
    assert_eq!(bench.send(2, Ok(Appended::Stored)), Answer::Ack(2, true));
}

#[test]
fn sixty_come_at_once_and_the_next_is_refused_for_exactly_as_long_as_it_takes() {
    let mut bench = Bench::new(EndToEnd::Optional);
    let burst = u64::from(MESSAGES_BURST);
    for n in 1..=burst {
        bench.send(n, Ok(Appended::Stored));
    }
    let next = burst + 1;
    let refused = Verdict::Refuse(refusal(Refused::RateLimited, next, RATE));
    assert_eq!(bench.judge(next), refused);
    assert_eq!(bench.judge(next + 1), Verdict::Skip);
    bench.wait(RATE - Duration::from_nanos(1));
    let moment = Verdict::Refuse(refusal(Refused::RateLimited, next, Duration::from_nanos(1)));
    assert_eq!(bench.judge(next), moment);
    bench.wait(Duration::from_nanos(1));
    assert_eq!(bench.send(next, Ok(Appended::Stored)), Answer::Ack(next, true));
    let refused = Verdict::Refuse(refusal(Refused::RateLimited, next + 1, RATE));
    assert_eq!(bench.judge(next + 1), refused);
}

#[test]
fn messages_pass_as_often_and_as_many_at_once_as_the_limits_say() {
    let limits = SessionLimits {
        messages_per_second: 2,
        burst: 3,
        ..SessionLimits::default()
    };
    let mut bench = Bench::within(&limits, EndToEnd::Optional);
    for n in 1..=3 {
        bench.send(n, Ok(Appended::Stored));
    }
    let refused = Verdict::Refuse(refusal(Refused::RateLimited, 4, Duration::from_millis(500)));
    assert_eq!(bench.judge(4), refused);
    bench.wait(Duration::from_millis(500));
    bench.send(4, Ok(Appended::Stored));
}

#[test]
fn skipped_messages_cost_nothing_and_a_new_connection_brings_no_new_budget() {
    let mut bench = Bench::new(EndToEnd::Optional);
    let burst = u64::from(MESSAGES_BURST);
    for n in 1..burst {
        bench.send(n, Ok(Appended::Stored));
    }
    bench.send(burst, Ok(Appended::MailboxFull));
    for n in 0..1000 {
        assert_eq!(bench.judge(burst + 1 + n), Verdict::Skip);
    }
    bench.wait(RATE);
    bench.send(burst, Ok(Appended::Stored));
    bench.state.on_departed(Slot::A, EPOCH);
    let resumed = bound(EPOCH + 1, burst + 1, EndToEnd::Optional);
    bench.state.on_bound(Slot::A, &resumed);
    let content = Opaque::new("x");
    let verdict = bench
        .state
        .judge(Slot::A, EPOCH + 1, burst + 1, &content, bench.now);
    assert_eq!(
        verdict,
        Verdict::Refuse(refusal(Refused::RateLimited, burst + 1, RATE))
    );
    // The peer has its own.
    bench
        .state
        .on_bound(Slot::B, &bound(EPOCH, 1, EndToEnd::Optional));
    let verdict = bench.state.judge(Slot::B, EPOCH, 1, &content, bench.now);
    assert_eq!(verdict, Verdict::Append);
}

#[test]
fn a_repeated_message_is_acknowledged_even_when_nothing_new_would_pass() {
    let mut bench = Bench::new(EndToEnd::Optional);
    let burst = u64::from(MESSAGES_BURST);
    for n in 1..=burst {
        bench.send(n, Ok(Appended::Stored));
    }
    // An `err` for it would be wrong, and a client that has its acknowledgement could never answer it.
    assert_eq!(bench.judge(1), Verdict::Repeat(burst));
    bench.wait(RATE);
    assert_eq!(
        bench.send(burst + 1, Ok(Appended::Stored)),
        Answer::Ack(burst + 1, true)
    );
}

#[test]
fn content_must_look_sealed_only_where_that_is_required() {
    let malformed = Verdict::Close(CloseCode::Malformed);
    let mut required = Bench::new(EndToEnd::Required);
    for content in ["", "e1", "E1.", " e1.", "e2.x"] {
        assert_eq!(required.judge_content(1, content), malformed, "{content:?}");
    }
    assert_eq!(required.judge_content(1, "e1."), Verdict::Append);
    let mut optional = Bench::new(EndToEnd::Optional);
    for content in ["", "v=0"] {
        assert_eq!(optional.judge_content(1, content), Verdict::Append, "{content:?}");
    }
}

#[test]
fn there_is_no_message_0_and_none_that_is_bare_hides_behind_a_refusal() {
    let malformed = Verdict::Close(CloseCode::Malformed);
    let mut bench = Bench::new(EndToEnd::Required);
    assert_eq!(bench.judge_content(0, "e1.x"), malformed);
    assert_eq!(bench.judge_content(1, "e1.x"), Verdict::Append);
    bench.answer(1, Ok(Appended::MailboxFull));
    assert_eq!(bench.judge_content(2, "bare"), malformed);
    assert_eq!(bench.judge_content(2, "e1.x"), Verdict::Skip);
}

#[test]
fn whoever_lost_the_slot_is_told_so_whatever_the_store_said() {
    let mut bench = Bench::new(EndToEnd::Optional);
    assert_eq!(bench.judge(1), Verdict::Append);
    let newer = bound(EPOCH + 1, 1, EndToEnd::Optional);
    assert!(bench.state.on_bound(Slot::A, &newer));
    let replaced = Answer::Close(CloseCode::Replaced);
    for outcome in [Ok(Appended::Stored), Ok(Appended::MailboxFull), unavailable()] {
        assert_eq!(bench.answer(1, outcome), replaced);
    }
    assert_eq!(bench.judge(1), Verdict::Close(CloseCode::Replaced));
    // Its departure, however late, is not the newer one's; nor does its own bind come through any more.
    bench.state.on_departed(Slot::A, EPOCH);
    assert!(bench.state.is_live(Slot::A, EPOCH + 1));
    assert!(
        !bench
            .state
            .on_bound(Slot::A, &bound(EPOCH, 1, EndToEnd::Optional))
    );
    assert!(bench.state.is_live(Slot::A, EPOCH + 1) && !bench.state.is_live(Slot::A, EPOCH));
    assert!(!bench.state.is_live(Slot::B, EPOCH + 1));
}

#[test]
fn a_connection_is_found_by_the_instance_of_its_ticket_while_it_lives() {
    let mut bench = Bench::new(EndToEnd::Optional);
    let (own, other) = (InstanceId::from_bytes([1; 16]), InstanceId::from_bytes([2; 16]));
    assert_eq!(bench.state.epoch_of(Slot::A, own), Some(EPOCH));
    assert_eq!(bench.state.epoch_of(Slot::A, other), None);
    assert_eq!(bench.state.epoch_of(Slot::B, own), None);
    bench.state.on_departed(Slot::A, EPOCH);
    assert_eq!(bench.state.epoch_of(Slot::A, own), None);
}

#[test]
fn what_the_store_says_ends_a_connection_with_its_own_code() {
    for (outcome, code) in [
        (Ok(Appended::SessionTotal), CloseCode::SessionTotal),
        (Ok(Appended::OutOfStep), CloseCode::OutOfStep),
        (Err(Gone::NoSession), CloseCode::NoSuchSession),
        (Err(Gone::Fenced), CloseCode::Replaced),
    ] {
        let mut bench = Bench::new(EndToEnd::Optional);
        assert_eq!(bench.send(1, outcome), Answer::Close(code));
    }
    for (outcome, code) in [
        (Ok(Trimmed::Trimmed), None),
        (unavailable(), None),
        (Ok(Trimmed::BeyondSent), Some(CloseCode::NoSuchSession)),
        (Err(Gone::NoSession), Some(CloseCode::NoSuchSession)),
        (Err(Gone::Fenced), Some(CloseCode::Replaced)),
    ] {
        assert_eq!(after_trim(&outcome), code, "{outcome:?}");
    }
}
