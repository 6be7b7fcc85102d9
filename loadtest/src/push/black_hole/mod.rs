//! `push --black-hole`: whether pushes to APNs wait while another provider takes every push and answers none.
//!
//! ```text
//! round: open loop at APNs | the same rate at the other, which answers           -> APNs' p50, p99
//!        open loop at APNs | the same rate at the other, which never answers     -> APNs' p50, p99
//!        the other answers again; the next round begins when the relay has found out
//! ```
//!
//! The first ten seconds without answers, the relay's deadline, are the worst for the others: pushes pile up, each with
//! its caller's connection. Then the relay's breaker opens and they are refused at once, but for the probes.

mod judge;
mod rounds;

use std::{sync::Arc, time::Duration};

use anyhow::{bail, ensure};
use clap::ValueEnum;
use sovereign_relay_simulator::{Script, Simulators};

use self::{
    judge::{Limit, P99, Verdict},
    rounds::{Plan, Round, Stretch},
};
use super::{
    Place,
    measurement::Measurement,
    targets::{INSTANCES, apple_token, in_turn},
    through::{Devices, Through, keys},
};
use crate::{report, run};

/// Twice the relay's deadline: before and after it gives up.
const SECONDS: u64 = 20;

/// What only `--black-hole` needs.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Options {
    /// Measures APNs beside this provider, while it answers and while it takes every push and answers none, in turn;
    /// fails when APNs' p99 is more than --tolerance times as long beside the one that does not answer
    #[arg(long = "black-hole", value_name = "PROVIDER", conflicts_with = "share")]
    pub(super) provider: Option<Provider>,
    /// With --black-hole: calls a second at that provider
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..))]
    beside: u32,
    /// With --black-hole: times that both are measured; the medians are judged
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// With --black-hole: how many times the p99 beside the provider that answers is let pass. A millisecond more is,
    /// which is how coarse the timer is
    #[arg(long, default_value_t = 1.2)]
    tolerance: f64,
}

/// Who may be black-holed. APNs is who is measured.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Provider {
    /// Firebase Cloud Messaging
    Fcm,
    /// Windows Push Notification Services
    Wns,
}

/// Measures, prints and judges.
pub(super) async fn run(provider: Provider, options: &super::Options) -> anyhow::Result<()> {
    let own = &options.black_hole;
    ensure!(own.rounds > 0, "--rounds must be 1 or more");
    let place = Place::start(&[]).await?;
    let keys = keys(&place.secret, INSTANCES)?;
    let apns = Devices {
        platform: "ios",
        target: in_turn,
        token: Box::new(apple_token),
    };
    let apns = Arc::new(Through::new(&place.relay, keys.clone(), apns)?);
    let beside = provider.devices(&place.simulators);
    let beside = Arc::new(Through::new(&place.relay, keys, beside)?);
    let plan = Plan {
        rate: options.rate,
        beside: own.beside,
        duration: Duration::from_secs(options.seconds.unwrap_or(SECONDS)),
        rounds: own.rounds,
    };
    let rounds = rounds::measure(&apns, &beside, provider.script(&place.simulators), &plan).await?;
    report::print(&rows(&rounds, provider, &plan), options.json)?;
    place.stop().await;
    let limit = Limit {
        tolerance: own.tolerance,
    };
    judge(&rounds, provider, limit)
}

fn judge(rounds: &[Round], provider: Provider, limit: Limit) -> anyhow::Result<()> {
    let p99s: Vec<P99> = rounds
        .iter()
        .map(|round| P99 {
            answering: round.answering.apns.millis(0.99),
            black_holed: round.black_holed.apns.millis(0.99),
        })
        .collect();
    let verdict = Verdict::of(&p99s);
    report::say(&verdict.sentence(provider.name(), limit))?;
    if verdict.is_noisy(limit) {
        report::say(
            "where all answered, too, the rounds differ by more than that: this machine has other work",
        )?;
    }
    let failed: u64 = rounds.iter().map(Round::failed).sum();
    if failed > 0 {
        bail!("{failed} pushes to APNs failed");
    }
    if !verdict.keeps(limit) {
        bail!("pushes to APNs wait behind {}", provider.name());
    }
    Ok(())
}

fn rows(rounds: &[Round], provider: Provider, plan: &Plan) -> Vec<Measurement> {
    let load = format!("{}/s, open loop, and {}/s there", plan.rate, plan.beside);
    let row = |stretch: &Stretch, how: &str| {
        let target = format!("APNs beside {} {how}", provider.name());
        Measurement::new(target, &load, &stretch.apns)
    };
    rounds
        .iter()
        .flat_map(|round| {
            [
                row(&round.answering, "that answers"),
                row(&round.black_holed, "black-holed"),
            ]
        })
        .collect()
}

impl Provider {
    fn name(self) -> &'static str {
        match self {
            Self::Fcm => "FCM",
            Self::Wns => "WNS",
        }
    }

    fn script(self, simulators: &Simulators) -> &Script {
        match self {
            Self::Fcm => simulators.fcm.script(),
            Self::Wns => simulators.wns.script(),
        }
    }

    fn devices(self, simulators: &Simulators) -> Devices {
        let channels = simulators.wns.endpoint();
        match self {
            Self::Fcm => Devices {
                platform: "android",
                target: in_turn,
                token: Box::new(|device| format!("{device:064x}")),
            },
            Self::Wns => Devices {
                platform: "windows",
                target: in_turn,
                token: Box::new(move |device| format!("{channels}/?token={device:064x}")),
            },
        }
    }
}
