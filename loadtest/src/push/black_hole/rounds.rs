//! The rounds of [`black_hole`](super): both loads at the same time, beside a provider that answers and beside the same
//! one when it does not. Where the pushes go is the caller's; the test of this is one, too.
//!
//! Invariant: a stretch counts only when the provider was what it is called, for every push to it: all are sent while
//! it answers, none is while it does not. Else there is no figure but an error.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use sovereign_relay_simulator::{Behaviour, Script};
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until, timeout},
};

use super::run::{self, Call, Measured, Pace};

/// Before the first round, so that connections, keys and tokens are there.
const WARM_UP: Duration = Duration::from_secs(2);
/// So many pushes in a row are sent when a provider is back for everybody.
const IN_A_ROW: usize = 20;
/// Between looks whether it is back.
const LOOKS: Duration = Duration::from_millis(250);
/// Longer than the longest step of the relay's breaker, many times.
const BACK_WITHIN: Duration = Duration::from_secs(90);

/// What is to be measured.
pub(super) struct Plan {
    /// Calls a second at APNs.
    pub(super) rate: u32,
    /// Calls a second at the other provider.
    pub(super) beside: u32,
    /// Of each stretch.
    pub(super) duration: Duration,
    pub(super) rounds: usize,
}

/// Both stretches.
pub(super) struct Round {
    pub(super) answering: Stretch,
    pub(super) black_holed: Stretch,
}

/// What came out of both loads.
pub(super) struct Stretch {
    pub(super) apns: Measured,
    pub(super) beside: Counts,
}

/// What became of the pushes to the other provider.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) failed: u64,
}

impl Round {
    /// Pushes to APNs that failed.
    pub(super) fn failed(&self) -> u64 {
        self.answering.apns.failed + self.black_holed.apns.failed
    }
}

/// Measures. `script`: the other provider's.
pub(super) async fn measure<A: Call, B: Call>(
    apns: &Arc<A>,
    beside: &Arc<B>,
    script: &Script,
    plan: &Plan,
) -> anyhow::Result<Vec<Round>> {
    let warm_up = Plan {
        duration: WARM_UP.min(plan.duration),
        ..*plan
    };
    stretch(apns, beside, &warm_up).await?;
    let mut rounds = Vec::with_capacity(plan.rounds);
    for _ in 0..plan.rounds {
        back(beside).await?;
        let answering = stretch(apns, beside, plan).await?;
        ensure!(
            answering.beside.failed == 0,
            "no baseline: {:?} beside a provider that answers",
            answering.beside
        );
        script.always(Behaviour::never_answer());
        let black_holed = stretch(apns, beside, plan).await;
        script.clear();
        let black_holed = black_holed?;
        ensure!(
            black_holed.beside.sent == 0,
            "no black hole: {:?} of a provider that does not answer",
            black_holed.beside
        );
        rounds.push(Round {
            answering,
            black_holed,
        });
    }
    Ok(rounds)
}

async fn stretch<A: Call, B: Call>(apns: &Arc<A>, beside: &Arc<B>, plan: &Plan) -> anyhow::Result<Stretch> {
    let measured = run::run(Arc::clone(apns), Pace::PerSecond(plan.rate), plan.duration);
    let (apns, beside) = tokio::try_join!(measured, push_on(beside, plan))?;
    Ok(Stretch { apns, beside })
}

/// A call at each moment that one is due, however many wait for their answers; then the answers.
async fn push_on<B: Call>(beside: &Arc<B>, plan: &Plan) -> anyhow::Result<Counts> {
    let start = run::now();
    let (mut calls, mut counts) = (JoinSet::new(), Counts::default());
    for number in 0.. {
        let after = Duration::from_secs_f64(number as f64 / f64::from(plan.beside));
        if after >= plan.duration {
            break;
        }
        sleep_until(start + after).await;
        let beside = Arc::clone(beside);
        calls.spawn(async move { beside.call(number).await });
        while let Some(done) = calls.try_join_next() {
            counts.add(done?);
        }
    }
    while let Some(done) = calls.join_next().await {
        counts.add(done?);
    }
    Ok(counts)
}

/// The relay uses the provider (again).
async fn back<B: Call>(beside: &Arc<B>) -> anyhow::Result<()> {
    let (mut in_a_row, mut number) = (0, 0);
    let found_out = async {
        while in_a_row < IN_A_ROW {
            number += 1;
            if beside.call(number).await {
                in_a_row += 1;
            } else {
                in_a_row = 0;
                sleep(LOOKS).await;
            }
        }
    };
    let in_time = timeout(BACK_WITHIN, found_out).await.is_ok();
    ensure!(
        in_time,
        "the relay has not come back to the provider within {BACK_WITHIN:?}"
    );
    Ok(())
}

impl Counts {
    fn add(&mut self, sent: bool) {
        match sent {
            true => self.sent += 1,
            false => self.failed += 1,
        }
    }
}
