//! What a connection tells the application.

use std::time::Duration;

use sovereign_relay_protocol::{
    signal::{
        close::CloseCode,
        frame::{IceServer, Opaque, PeerPresence, Refused, Welcome},
    },
    time::UnixMillis,
};
use thiserror::Error;

/// Something that happened on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// Connected, for the first time or again.
    Connected {
        /// What the relay said.
        welcome: Box<Welcome>,
        /// False the first time.
        resumed: bool,
    },
    /// Not connected. It is dialled again by itself, and nothing is lost.
    Interrupted {
        /// Why.
        cause: Interruption,
        /// Until the next dial.
        retry_in: Duration,
    },
    /// A message of the peer: each once, in the order of sending.
    Message {
        /// Which of the peer's page loads sent it, as the relay says.
        generation: u32,
        /// The content.
        content: Opaque,
    },
    /// The peer came, went or was replaced. A new generation knows nothing of what an earlier one was told.
    Peer(PeerPresence),
    /// Fresh TURN credentials, as asked for.
    IceServers {
        /// In the browser's shape; empty where there are none to give.
        servers: Vec<IceServer>,
        /// When the credentials end.
        expires_at: Option<UnixMillis>,
    },
    /// The relay takes no messages for a while. They are sent again by themselves.
    Delayed {
        /// Why.
        code: Refused,
        /// Until they are.
        retry_in: Duration,
    },
    /// A message of a page load of the peer that another has replaced; no honest relay sends one.
    Stale,
    /// The connection is over for good; nothing comes after it.
    Ended(Ended),
}

/// Why there is no connection for the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Interruption {
    /// The relay could not be reached, or refused for now.
    #[error("the relay can't be reached")]
    Unreachable,
    /// It said nothing, or not enough, when greeted.
    #[error("the relay did not greet in time")]
    NoWelcome,
    /// The connection was closed with this code, or lost (1006).
    #[error("the connection was closed with code {0}")]
    Closed(u16),
    /// Nothing came, not even an answer to a ping.
    #[error("the relay does not answer")]
    Silent,
    /// The relay said something that it must not.
    #[error("the relay broke the protocol")]
    Fault,
    /// The relay asked to dial again.
    #[error("the relay is about to restart")]
    Moving,
}

/// Why there is no connection any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Ended {
    /// This side left.
    #[error("this side left")]
    Left,
    /// The relay closed it for good.
    #[error("the relay closed the connection: {}", .0.reason())]
    Closed(CloseCode),
    /// The relay closed it for good, with a code of a later version.
    #[error("the relay closed the connection with code {0}")]
    ClosedUnknown(u16),
    /// The address answers, but not as a relay that takes this connection: the HTTP status.
    #[error("the relay refused the connection with HTTP status {0}")]
    Refused(u16),
    /// The relay could not be reached for longer than a session lives.
    #[error("the relay could not be reached for longer than a session lives")]
    Unreachable,
    /// The relay lost what it had acknowledged, or claims what was never said. No other connection could mend that.
    #[error("the relay and this side disagree on what was sent")]
    OutOfStep,
}
