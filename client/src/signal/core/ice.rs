//! Requests for fresh TURN credentials: the relay answers one in 30 s, so the others wait and become one.

use std::time::Duration;

const SPACING: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct IceRequests {
    wanted: bool,
    next_at: Duration,
}

impl IceRequests {
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// Whether a request goes out now.
    pub(crate) fn transmit(&mut self, now: Duration) -> bool {
        let due = self.wanted && now >= self.next_at;
        if due {
            self.wanted = false;
            self.next_at = now + SPACING;
        }
        due
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.wanted.then_some(self.next_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_requests_become_one_in_30_s() {
        let mut ice = IceRequests::default();
        ice.want();
        ice.want();
        assert!(ice.transmit(Duration::ZERO) && !ice.transmit(Duration::ZERO));
        ice.want();
        assert_eq!(ice.deadline(), Some(SPACING));
        assert!(!ice.transmit(SPACING / 2) && ice.transmit(SPACING));
    }
}
