//! One socket under load: it sends when it is told to and notes how long what it receives was under way.
//!
//! A message carries the moment it was due. So a sender that is late, for whatever reason, is charged to the message.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail};
use sovereign_relay_protocol::signal::frame::{ClientFrame, Opaque, ServerFrame};
use tokio::{
    sync::{mpsc::UnboundedReceiver, watch},
    time::Instant,
};

use super::socket::Socket;

/// Acknowledgements are held back so long, as client libraries do.
const ACK_DELAY: Duration = Duration::from_millis(200);
/// `e1.`, a page load's number and a dot.
const HEAD: &str = "e1.AAAAAAAAAAAAAAAAAAAAAA.";
/// What a sealed candidate has after them: 256 padded bytes and a tag, in base64.
const SEALED_CHARS: usize = 363;

/// What is on the other side of a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    /// The relay: numbers, acknowledgements, and a peer.
    Signaling,
    /// Whatever is sent comes back.
    Echo,
}

/// One socket and what it has said and heard.
pub(super) struct Conversation {
    pub(super) socket: Socket,
    pub(super) speaks: Speaks,
    /// When messages are due, since the run began. Each is told when it is.
    pub(super) due: UnboundedReceiver<Duration>,
    pub(super) began: Instant,
    /// Arrivals of all sockets.
    pub(super) arrived: Arc<AtomicU64>,
    pub(super) stop: watch::Receiver<bool>,
}

/// Something heard: when it was due, and how long after that it came.
pub(super) struct Arrival {
    pub(super) due: Duration,
    pub(super) took: Duration,
}

/// The highest `seq` that is to be acknowledged, and when.
struct Owed {
    seq: u64,
    at: Instant,
}

impl Conversation {
    /// Talks until it is stopped.
    pub(super) async fn run(mut self) -> anyhow::Result<Vec<Arrival>> {
        let (mut arrivals, mut said, mut owed) = (Vec::new(), 0, None);
        loop {
            tokio::select! {
                Some(due) = self.due.recv() => {
                    said += 1;
                    self.socket.send(message(said, due)).await?;
                }
                text = self.socket.next() => {
                    let text = text?.context("the server ended a connection under load")?;
                    let arrival = self.hear(&text, &mut owed)?;
                    arrivals.extend(arrival);
                }
                () = until(owed.as_ref()) => self.acknowledge(owed.take()).await?,
                _ = self.stop.changed() => return Ok(arrivals),
            }
        }
    }

    fn hear(&self, text: &str, owed: &mut Option<Owed>) -> anyhow::Result<Option<Arrival>> {
        let content = match self.speaks {
            Speaks::Echo => match ClientFrame::parse(text)? {
                ClientFrame::Message { content, .. } => content,
                other => bail!("the echo said {other:?}"),
            },
            Speaks::Signaling => match ServerFrame::parse(text)? {
                Some(ServerFrame::Message { seq, content, .. }) => {
                    let at = owed.as_ref().map_or_else(|| now() + ACK_DELAY, |owed| owed.at);
                    *owed = Some(Owed { seq, at });
                    content
                }
                Some(ServerFrame::Err { code, .. }) => bail!("the relay refused a message: {code:?}"),
                _ => return Ok(None),
            },
        };
        let due = due_of(&content).context("a message that nobody sent")?;
        let took = self.began.elapsed().saturating_sub(due);
        self.arrived.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Arrival { due, took }))
    }

    async fn acknowledge(&mut self, owed: Option<Owed>) -> anyhow::Result<()> {
        if let Some(Owed { seq, .. }) = owed {
            self.socket.send(ClientFrame::Ack { seq }.to_text()).await?;
        }
        Ok(())
    }
}

fn message(n: u64, due: Duration) -> String {
    let content = format!("{HEAD}{}.{}", due.as_nanos(), "x".repeat(SEALED_CHARS));
    let content = Opaque::new(content);
    ClientFrame::Message { n, content }.to_text()
}

fn due_of(content: &Opaque) -> Option<Duration> {
    let (due, _) = content.expose().strip_prefix(HEAD)?.split_once('.')?;
    Some(Duration::from_nanos(due.parse().ok()?))
}

async fn until(owed: Option<&Owed>) {
    match owed {
        Some(owed) => tokio::time::sleep_until(owed.at).await,
        None => std::future::pending().await,
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "measuring time is what this program is for"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}
