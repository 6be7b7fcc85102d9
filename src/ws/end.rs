//! How a connection ends, and the closing handshake (RFC 6455, 7.1).
//!
//! ```text
//! finish: the frame that is begun -> the link falls silent -> close: the close frame, and the client's
//! ```

use std::{io, time::Duration};

use actix_http::ws::Message;
use sovereign_relay_protocol::signal::close::CloseCode;

use super::{
    crowd::Stay,
    socket::{Input, Socket},
};

/// How long a closing handshake is waited for.
const CLOSING: Duration = Duration::from_secs(5);
/// How long a client may take for the rest of a frame when its connection ends. Whoever ends the session waits for it.
const FINISHING: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// We end it.
    Close(CloseCode),
    /// We end it, and the client can't be told: it doesn't take the rest of a frame.
    Untold(CloseCode),
    /// The client closed it.
    ByClient,
    /// The bytes stopped.
    Lost,
}

impl End {
    /// In words.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Close(code) | Self::Untold(code) => code.reason(),
            Self::ByClient => "closed by the client",
            Self::Lost => "connection lost",
        }
    }
}

impl From<CloseCode> for End {
    fn from(code: CloseCode) -> Self {
        Self::Close(code)
    }
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Lost
    }
}

/// Takes back every frame that was not begun and writes the rest of one that was, so that nothing of a message is
/// written afterwards. A client that doesn't take it in time gets nothing more at all: no frame may stand in another.
pub(super) async fn finish(socket: &mut Socket, end: End) -> End {
    let untold = match end {
        End::Close(code) => End::Untold(code),
        End::ByClient => End::Lost,
        End::Untold(_) | End::Lost => return end,
    };
    socket.cut();
    match tokio::time::timeout(FINISHING, flush(socket)).await {
        Ok(Ok(())) => end,
        Ok(Err(_)) | Err(_) => untold,
    }
}

/// Says goodbye and waits a little for the client to say it too (RFC 6455, 7.1.1). `leave`: its place among those who
/// wait, where the room is for the newest.
pub(super) async fn close(socket: &mut Socket, end: End, leave: impl FnOnce() -> Stay) {
    socket.cut();
    match end {
        End::Untold(_) | End::Lost => return,
        End::Close(code) => socket.queue_close(code),
        End::ByClient => socket.queue(Message::Close(None)),
    }
    let waits_for_client = matches!(end, End::Close(_));
    let stay = leave();
    // Before any waiting: whoever is sent away the next moment has still been told. Whatever goes wrong now, it is over.
    let _ = socket.write();
    tokio::select! {
        _ = tokio::time::timeout(CLOSING, say_goodbye(socket, waits_for_client)) => {}
        () = stay.sent_away() => {}
    }
}

async fn say_goodbye(socket: &mut Socket, waits_for_client: bool) -> io::Result<()> {
    flush(socket).await?;
    if waits_for_client {
        closed_by_client(socket).await?;
    }
    Ok(())
}

async fn flush(socket: &mut Socket) -> io::Result<()> {
    while socket.waiting() > 0 {
        socket.writable().await?;
        socket.write()?;
    }
    Ok(())
}

async fn closed_by_client(socket: &mut Socket) -> io::Result<()> {
    loop {
        match socket.next() {
            Ok(Some(Input::Close | Input::Cut)) | Err(_) => return Ok(()),
            Ok(Some(_)) => {}
            Ok(None) => {
                socket.readable().await?;
                socket.fill()?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
