//! Memory of connections that say nothing: the kernel's account of the server before, with and after them.
//!
//! Kernel memory of the sockets is not in it. It is the same for every server.

use std::time::Duration;

use anyhow::ensure;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use sovereign_relay_protocol::{
    redacted::Redacted,
    signal::frame::{ClientFrame, Mood},
};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{check_descriptors, echo::EchoProcess, sessions, socket::Socket, start_relay};
use crate::{
    process::Process,
    report::{self, Row},
};

/// Pairs that come and go before anything is measured, so that code, threads and tables are there already.
const WARM_UP_PAIRS: usize = 100;
/// After this every connection was pinged once, and the allocator has given back what only the handshakes needed.
const SETTLE: Duration = Duration::from_secs(35);
/// How long memory may take to be given back.
const GIVE_BACK: Duration = Duration::from_secs(30);
/// Handshakes at once: fewer than the relay lets stand before its door.
const AT_ONCE: usize = 64;
/// Longer than a closing handshake may take.
const GOODBYE: Duration = Duration::from_secs(20);

/// `signal idle`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pairs of peers, two connections each
    #[arg(long, default_value_t = 10_000)]
    pairs: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(super) async fn run(options: Options) -> anyhow::Result<()> {
    check_descriptors(2 * u64::try_from(options.pairs)?)?;
    let mut rows = Vec::new();
    let echo = EchoProcess::start().await?;
    let open =
        async |pairs: usize| Crowd::open(2 * pairs, |number| Socket::open(&echo.url, "/", number)).await;
    measure(
        "bare actix-ws echo",
        &echo.process,
        options.pairs,
        open,
        &mut rows,
    )
    .await?;
    drop(echo);
    let directory = tempfile::tempdir()?;
    let (relay, secret) = start_relay(directory.path()).await?;
    let open = async |pairs: usize| {
        let tickets = sessions::make(&relay.url, &secret, pairs).await?;
        let ticket = |number: usize| tickets.get(number).cloned().unwrap_or_else(|| Redacted::new(""));
        Crowd::open(2 * pairs, |number| {
            Socket::join(&relay.url, ticket(number), number)
        })
        .await
    };
    measure("relay", &relay.process, options.pairs, open, &mut rows).await?;
    report::print(&rows, options.json)
}

async fn measure(
    target: &'static str,
    process: &Process,
    pairs: usize,
    open: impl AsyncFn(usize) -> anyhow::Result<Crowd>,
    rows: &mut Vec<Measurement>,
) -> anyhow::Result<()> {
    open(WARM_UP_PAIRS).await?.leave().await?;
    sleep(GIVE_BACK).await;
    let before = process.resident_kib()?;
    let mut row = |moment, connections: usize| -> anyhow::Result<()> {
        let resident_kib = process.resident_kib()?;
        let each = |connections: f64| (resident_kib as f64 - before as f64) / connections;
        rows.push(Measurement {
            target,
            moment,
            connections,
            resident_kib,
            kib_each: (connections > 0).then(|| each(connections as f64)),
        });
        Ok(())
    };
    row("before", 0)?;
    let crowd = open(pairs).await?;
    row("just connected", 2 * pairs)?;
    sleep(SETTLE).await;
    row("idle for 35 s", 2 * pairs)?;
    crowd.leave().await?;
    row("just gone", 0)?;
    sleep(GIVE_BACK).await;
    row("gone for 30 s", 0)
}

/// Connections that say nothing but answer pings.
struct Crowd {
    sockets: JoinSet<anyhow::Result<()>>,
    leave: watch::Sender<bool>,
}

impl Crowd {
    async fn open<F: Future<Output = anyhow::Result<Socket>>>(
        count: usize,
        open: impl Fn(usize) -> F,
    ) -> anyhow::Result<Self> {
        let (leave, left) = watch::channel(false);
        let mut sockets = JoinSet::new();
        let mut opened = stream::iter(0..count).map(open).buffer_unordered(AT_ONCE);
        while let Some(socket) = opened.try_next().await? {
            sockets.spawn(idle(socket, left.clone()));
        }
        drop(opened);
        Ok(Self { sockets, leave })
    }

    /// All say goodbye. An error if one was gone before.
    async fn leave(mut self) -> anyhow::Result<()> {
        self.leave.send_replace(true);
        while let Some(left) = self.sockets.join_next().await {
            left??;
        }
        Ok(())
    }
}

async fn idle(mut socket: Socket, mut leave: watch::Receiver<bool>) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            text = socket.next() => ensure!(text?.is_some(), "the server ended an idle connection"),
            _ = leave.wait_for(|leave| *leave) => break,
        }
    }
    let bye = ClientFrame::Bye {
        mood: Some(Mood::Cancelled),
    };
    socket.send(bye.to_text()).await?;
    // The echo knows no `bye`.
    timeout(GOODBYE, socket.close()).await?;
    Ok(())
}

/// One measurement.
#[derive(Serialize)]
struct Measurement {
    target: &'static str,
    moment: &'static str,
    connections: usize,
    resident_kib: u64,
    /// More than before, for each connection.
    kib_each: Option<f64>,
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "target",
        "moment",
        "connections",
        "RSS MiB",
        "KiB for each connection",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.target.to_owned(),
            self.moment.to_owned(),
            self.connections.to_string(),
            format!("{:.1}", self.resident_kib as f64 / 1024.0),
            report::or_dash(self.kib_each.map(|kib| format!("{kib:.2}"))),
        ]
    }
}
