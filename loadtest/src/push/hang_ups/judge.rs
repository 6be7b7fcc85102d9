//! Whether something has stayed behind: two looks at the relay at rest, one after the warm-up and one at the end.

use serde::Serialize;

/// Connections to providers come and go by themselves.
const FILES_OF_ITS_OWN: usize = 4;

/// The relay at rest.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Look {
    pub(super) resident_kib: u64,
    pub(super) open_files: usize,
    /// `relay_pushes_in_flight`
    pub(super) in_flight: f64,
}

impl Look {
    /// Resident memory, in per cent of what it was.
    pub(super) fn growth_since(&self, earlier: &Self) -> f64 {
        (self.resident_kib as f64 / earlier.resident_kib as f64 - 1.0) * 100.0
    }
}

/// What is wrong, if anything. `failed`: pushes whose callers waited for the answer.
pub(super) fn faults(first: &Look, last: &Look, failed: u64, most_growth: f64) -> Vec<String> {
    let mut faults = Vec::new();
    let growth = last.growth_since(first);
    // Not "grew by more": what is no number is no proof.
    let is_bounded = growth < most_growth;
    if !is_bounded {
        faults.push(format!("resident memory grew by {growth:.1} %"));
    }
    let most_files = first.open_files + FILES_OF_ITS_OWN;
    if last.open_files > most_files {
        faults.push(format!(
            "{} files are open, {} were after the warm-up",
            last.open_files, first.open_files
        ));
    }
    for (look, moment) in [(first, "after the warm-up"), (last, "at the end")] {
        if look.in_flight != 0.0 {
            faults.push(format!("{} pushes stay in flight {moment}", look.in_flight));
        }
    }
    if failed > 0 {
        faults.push(format!("{failed} pushes that were waited for were not sent"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARM: Look = Look {
        resident_kib: 100_000,
        open_files: 30,
        in_flight: 0.0,
    };

    fn at_the_end(change: fn(&mut Look)) -> Vec<String> {
        let mut last = WARM;
        change(&mut last);
        faults(&WARM, &last, 0, 5.0)
    }

    #[test]
    fn what_is_as_it_was_or_a_little_more_or_less_is_no_fault() {
        assert!(at_the_end(|_| {}).is_empty());
        assert!(at_the_end(|last| last.resident_kib = 104_900).is_empty());
        assert!(at_the_end(|last| last.resident_kib = 60_000).is_empty());
        assert!(at_the_end(|last| last.open_files = 20).is_empty());
    }

    #[test]
    fn a_leak_of_twelve_bytes_a_push_is_a_fault() {
        let leaked = at_the_end(|last| last.resident_kib += 800_000 * 12 / 1024);
        assert_eq!(leaked, ["resident memory grew by 9.4 %"]);
        assert_eq!(at_the_end(|last| last.resident_kib = 105_000).len(), 1);
    }

    #[test]
    fn files_that_stay_open_and_pushes_that_stay_in_flight_are_faults() {
        let files = at_the_end(|last| last.open_files += 100);
        assert_eq!(files, ["130 files are open, 30 were after the warm-up"]);
        let pushes = at_the_end(|last| last.in_flight = 1.0);
        assert_eq!(pushes, ["1 pushes stay in flight at the end"]);
        let mut stuck = WARM;
        stuck.in_flight = 2.0;
        assert_eq!(
            faults(&stuck, &WARM, 0, 5.0),
            ["2 pushes stay in flight after the warm-up"]
        );
    }

    #[test]
    fn a_push_that_was_waited_for_and_not_sent_is_a_fault_and_each_fault_is_named() {
        let worst = Look {
            resident_kib: 200_000,
            open_files: 1000,
            in_flight: 7.0,
        };
        assert_eq!(faults(&WARM, &worst, 1, 5.0).len(), 4);
        let nothing = Look {
            resident_kib: 0,
            ..WARM
        };
        assert_eq!(
            faults(&nothing, &nothing, 0, 5.0).len(),
            1,
            "no number is no proof"
        );
    }
}
