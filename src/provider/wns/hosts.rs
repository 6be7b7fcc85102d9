//! Which hosts have been heard of as WNS, so that a failure to reach one says something of WNS.
//!
//! A channel URI is the caller's, and so is its host, as long as it lies under the channel rule. [`super`] notes here
//! how each call to a host ended, and asks what its failures count for; the lane asks who may probe an open breaker.
//!
//! ```text
//!   Unknown --- answers with a header of WNS ---> Known --- fails, while others answer for 30 s ---> Retired
//!                                                   ^------------------- answers ---------------------'
//! ```
//!
//! Invariant: only a known host's failures say something of WNS. So nobody can make WNS look down by naming hosts
//! that are not there, nor do channels on a host that Microsoft has retired, while a real outage is one of known hosts,
//! of which none answers. Until one is known no failure of a host counts: at a first start within an outage calls end
//! without a breaker. Counting distinct hosts or instances instead could be forged, since both cost nothing; and the
//! token endpoint, which is the operator's word and comes first, counts from the start.

use std::{collections::HashMap, time::Duration};

/// Most hosts known, 100 KB or so; WNS has some dozens of names. When full, the one that answered longest ago goes: its
/// failures count for nothing until it answers again.
pub(super) const KNOWN: usize = 1_024;
/// Others have answered for so long since a host began to fail: then it is the host.
const RETIRED_AFTER: Duration = Duration::from_secs(30);

/// The hosts known.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    known: HashMap<Box<str>, Host>,
    /// When the latest of them answered.
    answered_at: Duration,
}

#[derive(Debug)]
struct Host {
    answered_at: Duration,
    /// First failure since.
    failing_since: Option<Duration>,
}

impl Hosts {
    /// `host` answered as WNS.
    pub(super) fn answered(&mut self, host: &str, now: Duration) {
        let answer = Host {
            answered_at: now,
            failing_since: None,
        };
        self.answered_at = now;
        if let Some(known) = self.known.get_mut(host) {
            *known = answer;
            return;
        }
        if self.known.len() >= KNOWN {
            self.forget_one();
        }
        self.known.insert(host.into(), answer);
    }

    /// `host` was not reached, gave no answer, or an error that is not WNS's own.
    pub(super) fn failed(&mut self, host: &str, now: Duration) {
        if let Some(known) = self.known.get_mut(host) {
            known.failing_since.get_or_insert(now);
        }
    }

    /// Whether a failure of `host` says something of WNS.
    pub(super) fn speaks(&self, host: &str) -> bool {
        self.known.get(host).is_some_and(|known| {
            let is_retired = known
                .failing_since
                .is_some_and(|since| self.answered_at >= since.saturating_add(RETIRED_AFTER));
            !is_retired
        })
    }

    /// Whether a call to `host` can find out how WNS is; anybody's can until a host is known.
    pub(super) fn can_probe(&self, host: &str) -> bool {
        self.known.is_empty() || self.speaks(host)
    }

    fn forget_one(&mut self) {
        let oldest = self.known.iter().min_by_key(|(_, known)| known.answered_at);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.known.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_host_speaks_for_wns_once_it_has_answered() {
        let mut hosts = Hosts::default();
        hosts.failed("a", s(1));
        assert!(!hosts.speaks("a"));
        hosts.answered("a", s(2));
        hosts.failed("a", s(3));
        assert!(hosts.speaks("a") && !hosts.speaks("b"));
    }

    #[test]
    fn until_one_is_known_any_call_may_probe_and_then_only_those_to_known_ones() {
        let mut hosts = Hosts::default();
        assert!(hosts.can_probe("a"));
        hosts.answered("b", s(1));
        assert!(hosts.can_probe("b") && !hosts.can_probe("a"));
    }

    #[test]
    fn a_retired_host_speaks_no_more_while_others_answer_and_again_when_it_answers() {
        let mut hosts = Hosts::default();
        hosts.answered("retired", s(0));
        hosts.failed("retired", s(1));
        hosts.answered("alive", s(30));
        assert!(
            hosts.speaks("retired"),
            "it may be WNS as long as the others are new to it too"
        );
        hosts.failed("retired", s(31));
        hosts.answered("alive", s(31));
        assert!(!hosts.speaks("retired") && hosts.speaks("alive"));
        hosts.answered("retired", s(40));
        assert!(hosts.speaks("retired"));
    }

    #[test]
    fn in_an_outage_of_all_everybody_goes_on_speaking() {
        let mut hosts = Hosts::default();
        for host in ["a", "b"] {
            hosts.answered(host, s(0));
        }
        for second in 1..10_000 {
            hosts.failed("a", s(second));
            hosts.failed("b", s(second));
        }
        assert!(hosts.speaks("a") && hosts.speaks("b"));
    }

    #[test]
    fn a_full_memory_forgets_the_host_that_answered_longest_ago() {
        let mut hosts = Hosts::default();
        for number in 0..KNOWN {
            hosts.answered(&number.to_string(), s(1));
        }
        hosts.answered("0", s(2));
        for number in 0..KNOWN - 1 {
            hosts.answered(&format!("new {number}"), s(3));
        }
        assert_eq!(hosts.known.len(), KNOWN);
        assert!(hosts.speaks("0") && !hosts.speaks("1"));
    }
}
