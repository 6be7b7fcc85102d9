//! When to ping, and when silence or a stalled reader has lasted too long. Pure.
//!
//! Any inbound byte is life. Pings are spread by up to a fifth either way, so that sockets that came together after a
//! deploy don't ping together for ever.

use std::time::Duration;

use sovereign_relay_protocol::{
    limits::{HEARTBEAT_SECONDS, SILENCE_SECONDS},
    signal::close::CloseCode,
};

/// How long a write may make no progress.
pub(super) const WRITE_STALL: Duration = Duration::from_secs(10);
/// How long the parts of one message may take.
pub(super) const FRAGMENTS: Duration = Duration::from_secs(10);

const PERIOD: Duration = Duration::from_secs(HEARTBEAT_SECONDS);
const SILENCE: Duration = Duration::from_secs(SILENCE_SECONDS);

/// The times of one connection, on the monotonic clock.
#[derive(Debug)]
pub(super) struct Heartbeat {
    heard: Duration,
    ping: Duration,
    /// Since when written bytes wait without any progress.
    stalled: Option<Duration>,
    /// Since when a message is incomplete.
    incomplete: Option<Duration>,
}

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Nothing; look again then.
    Later(Duration),
    /// A ping.
    Ping,
    /// The end.
    Close(CloseCode),
}

impl Heartbeat {
    /// `jitter` is any number; it decides when the first ping goes out.
    pub(super) fn new(now: Duration, jitter: u8) -> Self {
        Self {
            heard: now,
            ping: now.saturating_add(period(jitter)),
            stalled: None,
            incomplete: None,
        }
    }

    /// Bytes came.
    pub(super) fn on_heard(&mut self, now: Duration) {
        self.heard = now;
    }

    /// Bytes went, or there are none to go.
    pub(super) fn on_progress(&mut self) {
        self.stalled = None;
    }

    /// Bytes are to go and can't.
    pub(super) fn on_stalled(&mut self, now: Duration) {
        self.stalled.get_or_insert(now);
    }

    /// A message is whole, or its parts are not waited for: those that come next are timed anew.
    pub(super) fn on_whole(&mut self) {
        self.incomplete = None;
    }

    /// All that came was looked at; whether it ends within a message.
    pub(super) fn on_fragments(&mut self, is_incomplete: bool, now: Duration) {
        self.incomplete = is_incomplete.then(|| self.incomplete.unwrap_or(now));
    }

    /// What is due. `jitter` gives any number; it decides when the next ping goes out.
    pub(super) fn due(&mut self, now: Duration, jitter: impl FnOnce() -> u8) -> Due {
        let silent = self.heard.saturating_add(SILENCE);
        let stalled = self.stalled.map(|since| since.saturating_add(WRITE_STALL));
        let incomplete = self.incomplete.map(|since| since.saturating_add(FRAGMENTS));
        let ends = [
            (Some(silent), CloseCode::HeartbeatsMissed),
            (stalled, CloseCode::SlowConsumer),
            (incomplete, CloseCode::ProtocolError),
        ];
        for (end, code) in ends {
            if end.is_some_and(|end| end <= now) {
                return Due::Close(code);
            }
        }
        if self.ping <= now {
            self.ping = now.saturating_add(period(jitter()));
            return Due::Ping;
        }
        let next = ends.into_iter().filter_map(|(end, _)| end).min();
        Due::Later(next.map_or(self.ping, |next| next.min(self.ping)))
    }
}

/// 25 s, plus or minus a fifth.
fn period(jitter: u8) -> Duration {
    let least = PERIOD.saturating_mul(4) / 5;
    let spread = PERIOD.saturating_mul(2) / 5;
    least.saturating_add(spread.saturating_mul(u32::from(jitter)) / u32::from(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn pings_go_out_every_20_to_30_seconds() {
        assert_eq!((period(0), period(u8::MAX)), (at(20), at(30)));
        let mut heartbeat = Heartbeat::new(at(0), 0);
        assert_eq!(heartbeat.due(at(0), || 0), Due::Later(at(20)));
        assert_eq!(heartbeat.due(at(20), || u8::MAX), Due::Ping);
        assert_eq!(heartbeat.due(at(20), || 0), Due::Later(at(50)));
    }

    #[test]
    fn sixty_seconds_of_silence_end_it_and_any_byte_is_life() {
        let mut heartbeat = Heartbeat::new(at(0), u8::MAX);
        heartbeat.on_heard(at(5));
        assert_eq!(heartbeat.due(at(64), || 0), Due::Ping);
        assert_eq!(heartbeat.due(at(64), || 0), Due::Later(at(65)));
        assert_eq!(
            heartbeat.due(at(65), || 0),
            Due::Close(CloseCode::HeartbeatsMissed)
        );
        heartbeat.on_heard(at(65));
        assert_eq!(heartbeat.due(at(66), || 0), Due::Later(at(84)));
    }

    #[test]
    fn a_write_without_progress_for_ten_seconds_ends_it() {
        let mut heartbeat = Heartbeat::new(at(0), u8::MAX);
        heartbeat.on_stalled(at(1));
        heartbeat.on_stalled(at(5));
        assert_eq!(heartbeat.due(at(6), || 0), Due::Later(at(11)));
        assert_eq!(heartbeat.due(at(11), || 0), Due::Close(CloseCode::SlowConsumer));
        heartbeat.on_progress();
        assert_eq!(heartbeat.due(at(11), || 0), Due::Later(at(30)));
    }

    #[test]
    fn a_message_whose_parts_take_longer_than_ten_seconds_ends_it() {
        let mut heartbeat = Heartbeat::new(at(0), u8::MAX);
        heartbeat.on_fragments(true, at(1));
        heartbeat.on_fragments(true, at(8));
        assert_eq!(heartbeat.due(at(11), || 0), Due::Close(CloseCode::ProtocolError));
        heartbeat.on_fragments(false, at(11));
        assert_eq!(heartbeat.due(at(12), || 0), Due::Later(at(30)));
    }

    #[test]
    fn messages_that_follow_each_other_without_a_gap_are_timed_one_by_one() {
        let mut heartbeat = Heartbeat::new(at(0), u8::MAX);
        // Every read ends within a message; each takes six seconds.
        for second in (0..30).step_by(6) {
            heartbeat.on_heard(at(second));
            heartbeat.on_whole();
            heartbeat.on_fragments(true, at(second));
            let due = heartbeat.due(at(second + 5), || 255);
            assert!(!matches!(due, Due::Close(_)), "{due:?} after {second} s");
        }
        assert_eq!(heartbeat.due(at(34), || 0), Due::Close(CloseCode::ProtocolError));
    }

    #[test]
    fn a_client_that_only_answers_pings_is_kept_for_nine_minutes_and_bytes_flow_both_ways_twice_a_minute() {
        let (mut heartbeat, mut now, mut last) = (Heartbeat::new(at(0), 255), at(0), at(0));
        while now < at(540) {
            match heartbeat.due(now, || 255) {
                Due::Later(then) => now = then,
                Due::Ping => {
                    assert!(now - last <= at(30));
                    last = now;
                    // The answer.
                    heartbeat.on_heard(now);
                }
                Due::Close(code) => panic!("closed {code:?} at {now:?}"),
            }
        }
        assert!(last > at(500));
    }

    #[test]
    fn a_client_whose_control_frames_are_filtered_out_is_kept_by_a_text_ping_every_20_s() {
        let mut heartbeat = Heartbeat::new(at(0), 0);
        for second in 1..=600 {
            // Its pongs never come.
            if second % 20 == 0 {
                heartbeat.on_heard(at(second));
            }
            let due = heartbeat.due(at(second), || 0);
            assert!(!matches!(due, Due::Close(_)), "{due:?} at {second} s");
        }
    }
}
