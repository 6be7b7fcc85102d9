//! One WebSocket over one TCP connection: bytes to messages and back (RFC 6455), bounded both ways.
//!
//! The codec is actix-http's. What is added here is what a relay of idle connections needs: buffers exist only while
//! there is something in them; a message's declared length never makes us wait for more than the limit; what was not
//! written yet can be taken back at a frame's boundary.
//!
//! Invariant: at most one message more than [`WRITE_HIGH`] waits to be written, at most one pong among it, and at most
//! one frame to be read. The system holds no more than [`SYSTEM_BUFFER`] each way.

use std::io;

use actix_codec::{Decoder as _, Encoder as _};
use actix_http::ws::{self, Codec, Frame, Item, Message, ProtocolError};
use actix_rt::net::TcpStream;
use bytes::{Buf as _, Bytes, BytesMut};
use socket2::SockRef;
use sovereign_relay_protocol::signal::close::CloseCode;

/// With so much waiting to be written, nothing more is read or pulled.
pub(super) const WRITE_HIGH: usize = 64 * 1024;
/// What the system is asked to hold each way (Linux takes it twice, for its bookkeeping): two of the longest frames, and
/// at a round trip of 100 ms still 640 KB/s. Left to itself it grows them to several megabytes for a client that
/// doesn't read, of memory that no limit of ours sees.
const SYSTEM_BUFFER: usize = 64 * 1024;
/// Longest header of a client's frame: opcode, 64-bit length, mask.
const HEADER_BYTES: usize = 14;
/// How much is read at a time.
const CHUNK: usize = 4096;

/// A WebSocket.
pub(super) struct Socket {
    io: TcpStream,
    codec: Codec,
    input: BytesMut,
    /// Longest message.
    limit: usize,
    /// The parts of a message so far.
    parts: Option<BytesMut>,
    output: BytesMut,
    /// How much of a frame that was written in part is left in `output`.
    begun: usize,
    /// Bytes that have left `output`.
    gone: u64,
    /// Where the last pong ends.
    pong: Mark,
    /// What the latest ping said that came while a pong waits.
    ping: Option<Bytes>,
}

/// A place in all that is ever written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Mark(u64);

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A text message.
    Text(Bytes),
    /// A ping, to be answered with [`Socket::answer`].
    Ping(Bytes),
    /// An answer to our ping.
    Pong,
    /// The client ends the connection.
    Close,
    /// A proxy ends it, and tells the client itself.
    Cut,
}

/// What one attempt to write came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// Something was written.
    Some,
    /// The other side takes nothing now.
    Nothing,
}

impl Socket {
    /// Takes over a connection after its handshake; `input` is what was read beyond it.
    pub(super) fn new(io: TcpStream, input: BytesMut, limit: usize) -> Self {
        // The buffer of the HTTP half is large; what is left of it is nearly always nothing.
        let input = BytesMut::from(&*input);
        bound_system_buffers(&io);
        Self {
            io,
            codec: Codec::new().max_size(limit),
            input,
            limit,
            parts: None,
            output: BytesMut::new(),
            begun: 0,
            gone: 0,
            pong: Mark::default(),
            ping: None,
        }
    }

    /// Allows longer messages from now on.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.codec = std::mem::take(&mut self.codec).max_size(limit);
    }

    /// Waits until there may be something to read. Cancel-safe.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.io.readable().await
    }

    /// Waits until something may be written. Cancel-safe.
    pub(super) async fn writable(&self) -> io::Result<()> {
        self.io.writable().await
    }

    /// Reads what is there; `Ok(0)` is "nothing now", the end is an error.
    pub(super) fn fill(&mut self) -> io::Result<usize> {
        let mut chunk = [0; CHUNK];
        match self.io.try_read(&mut chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.input
                    .extend_from_slice(chunk.get(..read).unwrap_or_default());
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The next message in what was read; `None` needs more bytes.
    pub(super) fn next(&mut self) -> Result<Option<Input>, CloseCode> {
        loop {
            if is_proxys_close(&self.input) {
                return Ok(Some(Input::Cut));
            }
            let decoded = self
                .codec
                .decode(&mut self.input)
                .map_err(|error| code_of(&error))?;
            if self.input.is_empty() {
                self.input = BytesMut::new();
            }
            match decoded {
                Some(frame) => {
                    if let Some(input) = self.accept(frame)? {
                        return Ok(Some(input));
                    }
                }
                // The codec judges a frame's length only when it is complete.
                None if self.input.len() > self.limit + HEADER_BYTES => return Err(CloseCode::TooLarge),
                None => return Ok(None),
            }
        }
    }

    /// Whether a message has begun and not ended.
    pub(super) fn is_incomplete(&self) -> bool {
        self.parts.is_some() || !self.input.is_empty()
    }

    /// Whether parts of a message came and its last didn't. Control frames may stand between them (RFC 6455, 5.4).
    pub(super) fn is_between_parts(&self) -> bool {
        self.parts.is_some()
    }

    fn accept(&mut self, frame: Frame) -> Result<Option<Input>, CloseCode> {
        match frame {
            Frame::Text(text) => Ok(Some(Input::Text(text))),
            Frame::Ping(data) => Ok(Some(Input::Ping(data))),
            Frame::Pong(_) => Ok(Some(Input::Pong)),
            Frame::Close(_) => Ok(Some(Input::Close)),
            Frame::Binary(_) | Frame::Continuation(Item::FirstBinary(_)) => Err(CloseCode::Unsupported),
            Frame::Continuation(Item::FirstText(part)) => {
                self.parts = Some(BytesMut::from(&*part));
                Ok(None)
            }
            Frame::Continuation(Item::Continue(part)) => self.add_part(&part).map(|()| None),
            Frame::Continuation(Item::Last(part)) => {
                self.add_part(&part)?;
                let whole = self.parts.take().unwrap_or_default();
                Ok(Some(Input::Text(whole.freeze())))
            }
        }
    }

    fn add_part(&mut self, part: &[u8]) -> Result<(), CloseCode> {
        let parts = self.parts.get_or_insert_default();
        if parts.len().saturating_add(part.len()) > self.limit {
            return Err(CloseCode::TooLarge);
        }
        parts.extend_from_slice(part);
        Ok(())
    }

    /// Adds a message to what is to be written.
    pub(super) fn queue(&mut self, message: Message) {
        // Only parts of messages out of order are refused, and we send none.
        let _ = self.codec.encode(message, &mut self.output);
    }

    /// Answers a ping. While an answer waits, the next one is for the latest ping alone (RFC 6455, 5.5.3): pings of a
    /// client that doesn't read cost nothing.
    pub(super) fn answer(&mut self, ping: &[u8]) {
        // A copy: what was read is not kept for it.
        let ping = Bytes::copy_from_slice(ping);
        if self.has_passed(self.pong) {
            self.queue(Message::Pong(ping));
            self.pong = self.mark();
        } else {
            self.ping = Some(ping);
        }
    }

    /// Where what was added so far ends.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.gone.saturating_add(self.output.len() as u64))
    }

    /// Whether all before a mark was written.
    pub(super) fn has_passed(&self, mark: Mark) -> bool {
        mark <= Mark(self.gone)
    }

    /// Adds the end.
    pub(super) fn queue_close(&mut self, code: CloseCode) {
        self.queue(Message::Close(Some(ws::CloseReason {
            code: code.code().into(),
            description: Some(code.reason().to_owned()),
        })));
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.output.len()
    }

    /// Takes back every frame of which nothing was written yet. What may follow is the end.
    pub(super) fn cut(&mut self) {
        self.output.truncate(self.begun);
        self.ping = None;
    }

    /// Writes what the other side takes.
    pub(super) fn write(&mut self) -> io::Result<Wrote> {
        match self.io.try_write(&self.output) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                self.wrote(written);
                Ok(Wrote::Some)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Wrote::Nothing),
            Err(error) => Err(error),
        }
    }

    fn wrote(&mut self, written: usize) {
        let mut end = self.begun;
        while end < written {
            end = end.saturating_add(frame_bytes(self.output.get(end..).unwrap_or_default()));
        }
        self.begun = end - written;
        self.output.advance(written);
        self.gone = self.gone.saturating_add(written as u64);
        if self.has_passed(self.pong)
            && let Some(ping) = self.ping.take()
        {
            self.answer(&ping);
        }
        if self.output.is_empty() {
            self.output = BytesMut::new();
        }
    }
}

/// Where the system refuses, its own sizes hold, and all else is as it should be.
fn bound_system_buffers(io: &TcpStream) {
    let socket = SockRef::from(io);
    let _ = socket.set_send_buffer_size(SYSTEM_BUFFER);
    let _ = socket.set_recv_buffer_size(SYSTEM_BUFFER);
}

/// Length of the frame that begins here. Ours are whole, and not masked (RFC 6455, 5.2).
fn frame_bytes(bytes: &[u8]) -> usize {
    match *bytes {
        [_, 127, a, b, c, d, e, f, g, h, ..] => {
            let length = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            usize::try_from(length).map_or(usize::MAX, |length| length.saturating_add(10))
        }
        [_, 126, a, b, ..] => usize::from(u16::from_be_bytes([a, b])) + 4,
        [_, length, ..] => usize::from(length) + 2,
        [_] | [] => 1,
    }
}

/// A close without a mask. No client's is (RFC 6455, 5.1), but Caddy before 2.7 sends it to both sides when it gets another
/// configuration. A code of ours in answer can overtake its 1001, and 1002 would be the client's last word.
fn is_proxys_close(bytes: &[u8]) -> bool {
    matches!(bytes, [0x88, length, ..] if length & 0x80 == 0)
}

fn code_of(error: &ProtocolError) -> CloseCode {
    match error {
        ProtocolError::Overflow => CloseCode::TooLarge,
        ProtocolError::UnmaskedFrame
        | ProtocolError::MaskedFrame
        | ProtocolError::InvalidOpcode(_)
        | ProtocolError::InvalidLength(_)
        | ProtocolError::BadOpCode
        | ProtocolError::ContinuationNotStarted
        | ProtocolError::ContinuationStarted
        | ProtocolError::ContinuationFragment(_)
        | ProtocolError::Io(_) => CloseCode::ProtocolError,
    }
}

#[cfg(test)]
mod tests;
