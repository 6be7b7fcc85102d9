//! A signaling connection that survives lost networks and restarted relays, for content that is somebody else's
//! business. [`super::session::Session`] puts sealing and typed messages on top; that is what most callers want.

use sovereign_relay_protocol::{
    redacted::Redacted,
    signal::{
        frame::{Mood, Opaque},
        id::ConnectionId,
        session::SessionLimits,
    },
};
use thiserror::Error;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};

use super::{
    core::{Core, Identity, events::Delivery},
    dial::Dialer,
    event::{ConnectionEvent, Ended},
    limits::fits,
    shell::{Ends, Order, Outgoing, Shell},
};
use crate::{
    clock::Clock,
    entropy::{Jitter, random_bytes},
    trust::{AddressError, Trust},
};

/// Messages between callers and the outbox. The outbox is the queue; this only hands over.
const HANDOVER: usize = 4;
/// Orders wait for microseconds. When there are more, the same one is among them.
const ORDERS: usize = 16;

/// A connection to one slot of a session, dialled again whenever it is lost. Dropping it ends its task and cuts the
/// socket; the peer then sees this side `away`. Leave with [`Connection::leave`] where there is time.
pub struct Connection {
    sender: Sender,
    events: mpsc::Receiver<Delivery>,
    processed: watch::Sender<u64>,
    task: Task,
}

/// The sending half of a connection. Clones don't keep it alive.
#[derive(Clone)]
pub struct Sender {
    messages: mpsc::Sender<Outgoing>,
    orders: mpsc::Sender<Order>,
    limits: watch::Receiver<SessionLimits>,
}

/// A message was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SendError {
    /// The connection has ended.
    #[error("the connection has ended")]
    Ended,
    /// It is longer than this relay takes; before the first welcome, than relays take by default.
    #[error("the message is too large")]
    TooLarge,
}

/// The relay will never say that it stored the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NotStored {
    /// The connection ended before. The relay may have stored it.
    #[error("the connection ended before the relay acknowledged the message")]
    Ended,
    /// The relay's welcome showed that it takes no message as long as this one, which was in line already. It was not
    /// sent.
    #[error("the message is longer than this relay takes")]
    TooLarge,
}

/// Tells when the relay has stored a message. Who doesn't care drops it.
#[must_use = "dropping a receipt is fine, but say so with `let _ =`"]
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<Result<(), NotStored>>);

impl Receipt {
    /// Waits until the relay has stored the message: from then on the peer gets it even if this side is gone.
    pub async fn stored(self) -> Result<(), NotStored> {
        self.0.await.unwrap_or(Err(NotStored::Ended))
    }
}

impl Connection {
    /// Starts dialling, and keeps at it. Call it on a Tokio runtime.
    pub fn open(url: &str, ticket: Redacted, trust: &Trust) -> Result<Self, AddressError> {
        let dialer = Dialer::new(url, trust)?;
        let identity = Identity {
            ticket,
            connection: ConnectionId::from_bytes(random_bytes()),
        };
        let clock = Clock::new();
        let core = Core::new(identity, Jitter::system(), clock.now());
        let (messages, messages_end) = mpsc::channel(HANDOVER);
        let (orders, orders_end) = mpsc::channel(ORDERS);
        let (processed, processed_end) = watch::channel(0);
        let (events_end, events) = mpsc::channel(1);
        let (limits_end, limits) = watch::channel(core.limits());
        let ends = Ends {
            messages: messages_end,
            orders: orders_end,
            processed: processed_end,
            events: events_end,
            limits: limits_end,
        };
        let shell = Shell::new(core, clock, dialer, ends);
        Ok(Self {
            sender: Sender {
                messages,
                orders,
                limits,
            },
            events,
            processed,
            task: Task(tokio::spawn(shell.run())),
        })
    }

    /// The next event; `None` after [`ConnectionEvent::Ended`]. Taking a message acknowledges it. Cancel-safe.
    pub async fn next(&mut self) -> Option<ConnectionEvent> {
        let Delivery { seq, event } = self.events.recv().await?;
        if let Some(seq) = seq {
            self.processed.send_replace(seq);
        }
        Some(event)
    }

    /// Sends; see [`Sender::send`].
    pub async fn send(&self, content: Opaque) -> Result<Receipt, SendError> {
        self.sender.send(content).await
    }

    /// The sending half, for another task.
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// Leaves: waits a few seconds for the relay to store what was sent, then tells the peer. Events are discarded,
    /// messages without acknowledging them.
    pub async fn leave(mut self, mood: Mood) -> Ended {
        // When nobody takes the order, it has ended, and says why.
        let _ = self.sender.orders.send(Order::Leave(mood)).await;
        while let Some(Delivery { event, .. }) = self.events.recv().await {
            if let ConnectionEvent::Ended(ended) = event {
                let _ = (&mut self.task.0).await;
                return ended;
            }
        }
        Ended::Left
    }
}

impl Sender {
    /// Sends; returns when the message is in line, which waits when the relay is far behind. Cancel-safe: a message is
    /// in line or it isn't. In a session that requires sealing the relay ends a connection whose content doesn't begin
    /// with `e1.`.
    pub async fn send(&self, content: Opaque) -> Result<Receipt, SendError> {
        let place = self.place().await?;
        if !fits(&content, &self.limits()) {
            return Err(SendError::TooLarge);
        }
        Ok(place.send(content))
    }

    /// What the relay allows; before its first welcome, what relays allow by default.
    pub fn limits(&self) -> SessionLimits {
        *self.limits.borrow()
    }

    /// The network may have changed: a wait for the next dial is over, and an open connection has to prove itself.
    pub fn wake(&self) {
        self.order(Order::Wake);
    }

    /// Asks for fresh TURN credentials; [`ConnectionEvent::IceServers`] brings them, at most once in 30 s.
    pub fn request_ice(&self) {
        self.order(Order::RequestIce);
    }

    /// A place in line.
    pub(super) async fn place(&self) -> Result<Place<'_>, SendError> {
        self.messages
            .reserve()
            .await
            .map(Place)
            .map_err(|_| SendError::Ended)
    }

    fn order(&self, order: Order) {
        // Full: the same order waits already. Closed: there is nothing to do.
        let _ = self.orders.try_send(order);
    }
}

/// A place in line that nobody else can take.
pub(super) struct Place<'a>(mpsc::Permit<'a, Outgoing>);

impl Place<'_> {
    pub(super) fn send(self, content: Opaque) -> Receipt {
        let (stored, receipt) = oneshot::channel();
        self.0.send(Outgoing { content, stored });
        Receipt(receipt)
    }
}

/// The shell's task, which ends with its owner.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
