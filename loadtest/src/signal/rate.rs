//! Messages at a fixed rate, whatever the answers do: one-way latency, and the server's processor time for each.

use std::time::Duration;

use serde::Serialize;
use sovereign_relay_protocol::redacted::Redacted;

use super::{
    check_descriptors,
    conversation::Speaks,
    drive::{Load, millis, open},
    echo::EchoProcess,
    sessions,
    socket::Socket,
    start_relay,
};
use crate::{
    process::Process,
    report::{self, Row},
};

/// `signal rate`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Messages a second, over all pairs and both ways
    #[arg(long, default_value_t = 5000)]
    rate: u32,
    /// Pairs of peers
    #[arg(long, default_value_t = 500)]
    pairs: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// How often both servers are measured, in turn
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(super) async fn run(options: Options) -> anyhow::Result<()> {
    check_descriptors(2 * u64::try_from(options.pairs)?)?;
    options.load().check(options.pairs)?;
    let mut rows = Vec::new();
    for _ in 0..options.rounds {
        let echo = EchoProcess::start().await?;
        let sockets = open(2 * options.pairs, |number| Socket::open(&echo.url, "/", number)).await?;
        rows.push(options.measure(Speaks::Echo, &echo.process, sockets).await?);
        drop(echo);
        let directory = tempfile::tempdir()?;
        let (relay, secret) = start_relay(directory.path()).await?;
        let tickets = sessions::make(&relay.url, &secret, options.pairs).await?;
        let ticket = |number: usize| tickets.get(number).cloned().unwrap_or_else(|| Redacted::new(""));
        let join = |number| Socket::join(&relay.url, ticket(number), number);
        let sockets = open(2 * options.pairs, join).await?;
        rows.push(
            options
                .measure(Speaks::Signaling, &relay.process, sockets)
                .await?,
        );
    }
    report::print(&rows, options.json)
}

impl Options {
    fn load(&self) -> Load {
        Load {
            rate: self.rate,
            duration: Duration::from_secs(self.seconds),
        }
    }

    async fn measure(
        &self,
        speaks: Speaks,
        process: &Process,
        sockets: Vec<Socket>,
    ) -> anyhow::Result<Measurement> {
        let probe = async || process.cpu_seconds();
        let driven = self.load().drive(speaks, sockets, probe).await?;
        let latency = &driven.latency;
        Ok(Measurement {
            target: match speaks {
                Speaks::Echo => "bare actix-ws echo",
                Speaks::Signaling => "relay",
            },
            load: format!("{}/s over {} pairs, open loop", self.rate, self.pairs),
            per_second: latency.len() as f64 / self.seconds as f64,
            p50_ms: millis(latency, 0.5),
            p99_ms: millis(latency, 0.99),
            lost: driven.lost,
            cpu_micros: (driven.after - driven.before) * 1e6 / latency.len().max(1) as f64,
            resident_kib: process.resident_kib()?,
        })
    }
}

/// One measurement.
#[derive(Serialize)]
struct Measurement {
    target: &'static str,
    load: String,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    lost: u64,
    /// Processor time of the server for each message, user and system.
    cpu_micros: f64,
    resident_kib: u64,
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "target",
        "load",
        "messages/s",
        "p50 ms",
        "p99 ms",
        "lost",
        "server CPU us/message",
        "server RSS MiB",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.target.to_owned(),
            self.load.clone(),
            format!("{:.0}", self.per_second),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
            self.lost.to_string(),
            format!("{:.0}", self.cpu_micros),
            (self.resident_kib / 1024).to_string(),
        ]
    }
}
