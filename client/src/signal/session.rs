//! One peer's side of a session: typed messages, sealed end to end, over a connection that comes back by itself.
//!
//! ```text
//! send(message) -> seal -> connection -> relay       relay -> connection -> open -> next() -> acknowledged
//! ```

use std::{collections::VecDeque, sync::Arc, time::Duration};

use sovereign_relay_protocol::{
    signal::{
        frame::{IceServer, Mood, PeerPresence, Refused, Welcome},
        seal::SealError,
    },
    time::UnixMillis,
};
use thiserror::Error;
use tokio::time::timeout;

use super::{
    connection::{Connection, Receipt, SendError, Sender},
    envelope::{Opened, Opening, Sealing},
    event::{ConnectionEvent, Ended, Interruption},
    invitation::Invitation,
    message::Message,
};
use crate::{
    entropy::random_bytes,
    trust::{AddressError, Trust},
};

pub use super::envelope::Rejection;

/// Somebody is waiting for the first welcome; later ones may take as long as the session lives.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// How to connect.
#[derive(Clone)]
pub struct Options {
    /// Whom to believe.
    pub trust: Trust,
    /// How long the first welcome may take, with all its dials; 30 s by default.
    pub connect_within: Duration,
}

impl Options {
    /// The defaults.
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            connect_within: CONNECT_WITHIN,
        }
    }
}

/// A session could not be joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ConnectError {
    /// The invitation's address is not one that a ticket may be sent to.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The relay said no.
    #[error("the session can't be joined: {0}")]
    Ended(Ended),
    /// There was no welcome in time; the last thing that went wrong, if anything did.
    #[error("the relay did not welcome this side in time")]
    TimedOut(Option<Interruption>),
}

/// A session that was joined. Dropping it cuts the connection; [`Session::close`] leaves.
pub struct Session {
    connection: Connection,
    sender: SessionSender,
    opening: Opening,
    welcome: Welcome,
    waiting: VecDeque<Event>,
}

/// The sending half of a session. Clones don't keep it alive.
#[derive(Clone)]
pub struct SessionSender {
    sender: Sender,
    sealing: Arc<Sealing>,
}

/// Something that happened in a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A message of the peer: each once, in the order of sending.
    Message(Message),
    /// The peer came, went, or was replaced by another page load, which knows nothing of what this one was told.
    Peer(PeerPresence),
    /// Something came that the peer did not say, or said too late. It was not taken.
    Rejected(Rejection),
    /// The relay did not deliver so many messages of the peer.
    Missing(u64),
    /// Connected again.
    Connected(Box<Welcome>),
    /// Not connected for the moment. Nothing is lost.
    Interrupted {
        /// Why.
        cause: Interruption,
        /// Until the next dial.
        retry_in: Duration,
    },
    /// The relay takes no messages for a while. They are sent again by themselves.
    Delayed {
        /// Why.
        code: Refused,
        /// Until they are.
        retry_in: Duration,
    },
    /// Fresh TURN credentials, as asked for.
    IceServers {
        /// In the browser's shape.
        servers: Vec<IceServer>,
        /// When the credentials end.
        expires_at: Option<UnixMillis>,
    },
    /// The session is over for this side; nothing comes after it.
    Ended(Ended),
}

impl Session {
    /// Joins a session: dials until the relay welcomes this side. Call it on a Tokio runtime. Cancel-safe.
    pub async fn connect(invitation: Invitation, options: &Options) -> Result<Self, ConnectError> {
        let mut connection = Connection::open(&invitation.url, invitation.ticket, &options.trust)?;
        let mut interruption = None;
        let first = timeout(
            options.connect_within,
            first_welcome(&mut connection, &mut interruption),
        )
        .await;
        let welcome = match first {
            Ok(Ok(welcome)) => *welcome,
            Ok(Err(ended)) => return Err(ConnectError::Ended(ended)),
            Err(_) => return Err(ConnectError::TimedOut(interruption)),
        };
        let (secret, session, slot) = (invitation.secret, invitation.session_id, welcome.slot);
        let sealing = Sealing::new(&secret, session, slot, random_bytes());
        Ok(Self {
            sender: SessionSender {
                sender: connection.sender(),
                sealing: Arc::new(sealing),
            },
            connection,
            opening: Opening::new(secret, session, slot.other()),
            welcome,
            waiting: VecDeque::new(),
        })
    }

    /// What the relay said when it last welcomed this side: slot, role, TURN servers, limits.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Sends; see [`SessionSender::send`].
    pub async fn send(&self, message: &Message) -> Result<Receipt, SendError> {
        self.sender.send(message).await
    }

    /// The next event; `None` after [`Event::Ended`]. Taking a message acknowledges it. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.waiting.pop_front() {
            return Some(event);
        }
        let event = self.connection.next().await?;
        self.read(event);
        self.waiting.pop_front()
    }

    /// The sending half, for another task.
    pub fn sender(&self) -> SessionSender {
        self.sender.clone()
    }

    /// Leaves: waits a few seconds for the relay to store what was sent, then tells the peer how it went.
    pub async fn close(self, mood: Mood) -> Ended {
        self.connection.leave(mood).await
    }

    fn read(&mut self, event: ConnectionEvent) {
        let event = match event {
            ConnectionEvent::Message { content, .. } => {
                let Opened { missing, message } = self.opening.open(&content, &self.sender.sealing);
                if missing > 0 {
                    self.waiting.push_back(Event::Missing(missing));
                }
                message.map_or_else(Event::Rejected, Event::Message)
            }
            ConnectionEvent::Connected { welcome, .. } => {
                self.welcome = Welcome::clone(&welcome);
                Event::Connected(welcome)
            }
            ConnectionEvent::Stale => Event::Rejected(Rejection::StaleGeneration),
            ConnectionEvent::Peer(presence) => Event::Peer(presence),
            ConnectionEvent::Interrupted { cause, retry_in } => Event::Interrupted { cause, retry_in },
            ConnectionEvent::Delayed { code, retry_in } => Event::Delayed { code, retry_in },
            ConnectionEvent::IceServers { servers, expires_at } => Event::IceServers { servers, expires_at },
            ConnectionEvent::Ended(ended) => Event::Ended(ended),
        };
        self.waiting.push_back(event);
    }
}

impl SessionSender {
    /// Seals and sends; returns when the message is in line, which waits when the relay is far behind. The receipt
    /// tells when the relay has stored it. Cancel-safe: a message is in line or it isn't.
    pub async fn send(&self, message: &Message) -> Result<Receipt, SendError> {
        let place = self.sender.place().await?;
        self.sealing
            .seal(message, &self.sender.limits(), |sealed| place.send(sealed))
            .map_err(|error| match error {
                SealError::TooLarge => SendError::TooLarge,
                SealError::Exhausted => SendError::Ended,
            })
    }

    /// The network may have changed: a wait for the next dial is over, and an open connection has to prove itself.
    pub fn wake(&self) {
        self.sender.wake();
    }

    /// Asks for fresh TURN credentials; [`Event::IceServers`] brings them, at most once in 30 s.
    pub fn request_ice(&self) {
        self.sender.request_ice();
    }
}

async fn first_welcome(
    connection: &mut Connection,
    interruption: &mut Option<Interruption>,
) -> Result<Box<Welcome>, Ended> {
    while let Some(event) = connection.next().await {
        match event {
            ConnectionEvent::Connected { welcome, .. } => return Ok(welcome),
            ConnectionEvent::Interrupted { cause, .. } => *interruption = Some(cause),
            ConnectionEvent::Ended(ended) => return Err(ended),
            // Nothing else comes before a welcome.
            ConnectionEvent::Message { .. }
            | ConnectionEvent::Peer(_)
            | ConnectionEvent::IceServers { .. }
            | ConnectionEvent::Delayed { .. }
            | ConnectionEvent::Stale => {}
        }
    }
    Err(Ended::Unreachable)
}
