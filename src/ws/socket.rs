//! One WebSocket over one TCP connection: bytes to messages and back (RFC 6455), bounded both ways.
//!
//! The codec is actix-http's. What is added here is what a relay of idle connections needs: buffers exist only while
//! there is something in them; a message's declared length never makes us wait for more than the limit; what was not
//! written yet can be taken back at a frame's boundary.
//!
//! Invariant: at most one message more than [`WRITE_HIGH`] waits to be written, and at most one frame to be read.

use std::{collections::VecDeque, io};

use actix_codec::{Decoder as _, Encoder as _};
use actix_http::ws::{self, Codec, Frame, Item, Message, ProtocolError};
use actix_rt::net::TcpStream;
use bytes::{Bytes, BytesMut};
use sovereign_relay_protocol::signal::close::CloseCode;

/// With so much waiting to be written, nothing more is read or pulled.
pub(super) const WRITE_HIGH: usize = 64 * 1024;
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
    /// Lengths of the frames in `output`, the first one's without what was written of it.
    ends: VecDeque<usize>,
    /// Whether a part of the first frame was written.
    is_begun: bool,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A text message.
    Text(Bytes),
    /// A ping, to be answered.
    Ping(Bytes),
    /// An answer to our ping.
    Pong,
    /// The client ends the connection.
    Close,
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
        Self {
            io,
            codec: Codec::new().max_size(limit),
            input,
            limit,
            parts: None,
            output: BytesMut::new(),
            ends: VecDeque::new(),
            is_begun: false,
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
        let before = self.output.len();
        // Only parts of messages out of order are refused, and we send none.
        if self.codec.encode(message, &mut self.output).is_ok() {
            self.ends.push_back(self.output.len() - before);
        }
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

    /// Takes back every frame of which nothing was written yet.
    pub(super) fn cut(&mut self) {
        let kept = if self.is_begun {
            self.ends.front().copied()
        } else {
            None
        };
        self.output.truncate(kept.unwrap_or(0));
        self.ends.truncate(usize::from(kept.is_some()));
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
        let _ = self.output.split_to(written);
        let mut left = written;
        while let Some(first) = self.ends.front_mut() {
            if *first > left {
                *first -= left;
                self.is_begun |= left > 0;
                break;
            }
            left -= *first;
            self.is_begun = false;
            self.ends.pop_front();
        }
        if self.output.is_empty() {
            (self.output, self.ends) = (BytesMut::new(), VecDeque::new());
        }
    }
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
