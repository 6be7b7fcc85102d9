//! Between TLS and `h2`: sees every frame, and sends what the server side of `h2` can't, a stream limit that moves and
//! a GOAWAY with debug data.
//!
//! Flow: bytes that `h2` writes are cut into frames, shown to the [`Ledger`] and queued; commands from outside
//! ([`WireHandle`]) are queued between two frames, never inside a header block, and wake the connection's task, which
//! sends them on its next read. Inbound frames are shown to the ledger, and acknowledgements of injected SETTINGS are
//! kept from `h2`, which would take them for a protocol error. Invariant: what leaves is always whole frames.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, atomic::Ordering},
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    apns::{
        frames::{self, Head, SETTINGS, Splitter},
        ledger::{Admission, Inbound, Ledger},
        registry::Counters,
    },
    sync::lock,
};

/// Bytes queued towards the peer before `h2` has to wait.
const MAX_QUEUED_BYTES: usize = 256 * 1024;
/// Bytes read at a time, the largest TLS record.
const READ_BYTES: usize = 16 * 1024;
/// Commands waiting for the connection's task; while it is frozen the oldest are dropped.
const MAX_COMMANDS: usize = 64;

/// Commands one connection from outside.
#[derive(Clone)]
pub(crate) struct WireHandle {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    waker: AtomicWaker,
    counters: Arc<Counters>,
}

struct State {
    ledger: Ledger,
    commands: VecDeque<WireCommand>,
    /// The limit last asked for, so that asking for it again sends nothing.
    limit: u32,
}

enum WireCommand {
    StreamLimit(u32),
    GoAway {
        reason: String,
        last_stream_id: Option<u32>,
    },
}

impl WireHandle {
    /// Sends SETTINGS with this stream limit, unless it is the present one.
    pub(crate) fn set_stream_limit(&self, limit: u32) {
        let mut state = lock(&self.shared.state);
        if state.limit != limit {
            state.limit = limit;
            self.command(&mut state, WireCommand::StreamLimit(limit));
        }
    }

    /// Sends GOAWAY; without a last stream id it names the highest one seen.
    pub(crate) fn goaway(&self, reason: &str, last_stream_id: Option<u32>) {
        let mut state = lock(&self.shared.state);
        self.command(
            &mut state,
            WireCommand::GoAway {
                reason: reason.to_owned(),
                last_stream_id,
            },
        );
    }

    /// What is to become of a stream. Asked once per stream.
    pub(crate) fn admission(&self, stream: u32) -> Admission {
        lock(&self.shared.state).ledger.admission(stream)
    }

    /// Whether GOAWAY has promised that this stream is not processed.
    pub(crate) fn is_after_goaway(&self, stream: u32) -> bool {
        lock(&self.shared.state).ledger.is_after_goaway(stream)
    }

    fn command(&self, state: &mut State, command: WireCommand) {
        if state.commands.len() >= MAX_COMMANDS {
            state.commands.pop_front();
        }
        state.commands.push_back(command);
        self.shared.waker.wake();
    }
}

/// The stream that `h2` serves.
pub(crate) struct Wire<S> {
    stream: S,
    shared: Arc<Shared>,
    initial_limit: u32,
    settings_sent: bool,
    header_block_open: bool,
    from_h2: Splitter,
    to_peer: BytesMut,
    /// Written to the stream, which may still hold it.
    unflushed: bool,
    from_peer: Splitter,
    to_h2: BytesMut,
    chunk: Box<[u8]>,
    write_closed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(stream: S, initial_limit: u32, counters: Arc<Counters>) -> (Self, WireHandle) {
        let state = State {
            ledger: Ledger::new(initial_limit),
            commands: VecDeque::new(),
            limit: initial_limit,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            waker: AtomicWaker::new(),
            counters,
        });
        let handle = WireHandle {
            shared: Arc::clone(&shared),
        };
        let wire = Self {
            stream,
            shared,
            initial_limit,
            settings_sent: false,
            header_block_open: false,
            from_h2: Splitter::default(),
            to_peer: BytesMut::new(),
            unflushed: false,
            from_peer: Splitter::after_preface(),
            to_h2: BytesMut::new(),
            chunk: vec![0; READ_BYTES].into_boxed_slice(),
            write_closed: false,
        };
        (wire, handle)
    }

    /// Queues the whole frames that `h2` has written.
    fn queue_frames(&mut self) -> io::Result<()> {
        while let Some((head, frame)) = self.from_h2.next_frame().map_err(invalid)? {
            if head.kind == SETTINGS && !head.is_ack() {
                self.queue_settings(&frame);
            } else {
                lock(&self.shared.state).ledger.outbound(head);
                self.to_peer.extend_from_slice(&frame);
            }
            self.header_block_open = head.leaves_header_block_open();
        }
        Ok(())
    }

    /// The first SETTINGS carry the initial limit; `h2` itself knows only a hard cap, so that violations come through.
    fn queue_settings(&mut self, frame: &[u8]) {
        let first = !self.settings_sent;
        self.settings_sent = true;
        let limit = first.then_some(self.initial_limit);
        lock(&self.shared.state).ledger.settings_sent(limit, false);
        match limit {
            Some(limit) => self
                .to_peer
                .extend_from_slice(&frames::with_stream_limit(frame, limit)),
            None => self.to_peer.extend_from_slice(frame),
        }
    }

    /// Queues what was commanded, where a frame may come.
    fn queue_commands(&mut self) {
        if !self.settings_sent || self.header_block_open || !self.from_h2.is_at_boundary() {
            return;
        }
        let mut state = lock(&self.shared.state);
        while let Some(command) = state.commands.pop_front() {
            let frame = match command {
                WireCommand::StreamLimit(limit) => {
                    state.ledger.settings_sent(Some(limit), true);
                    frames::stream_limit(limit)
                }
                WireCommand::GoAway {
                    reason,
                    last_stream_id,
                } => {
                    let last = state.ledger.goaway_sent(last_stream_id);
                    frames::goaway(
                        last,
                        serde_json::json!({ "reason": reason }).to_string().as_bytes(),
                    )
                }
            };
            self.to_peer.extend_from_slice(&frame);
        }
    }

    /// Sends all that is queued.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.to_peer.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.to_peer))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.to_peer.advance(sent);
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and forgets until the peer has closed too. A socket that is closed with bytes unread is reset by the
    /// system, which takes back answers and GOAWAY from a peer that has not read them yet.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut chunk = ReadBuf::new(&mut self.chunk);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut chunk));
            if read.is_err() || chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Whether GOAWAY was sent, its streams are finished, and all of it has left.
    fn is_finished(&self) -> bool {
        self.to_peer.is_empty() && !self.unflushed && lock(&self.shared.state).ledger.is_finished()
    }

    /// Gives `h2` the whole frames that the peer has sent, but for acknowledgements that are not its business.
    fn sort_inbound(&mut self) -> io::Result<()> {
        let preface = self.from_peer.preface();
        self.to_h2.extend_from_slice(&preface);
        while let Some((head, frame)) = self.from_peer.next_frame().map_err(invalid)? {
            let inbound = lock(&self.shared.state).ledger.inbound(head);
            self.shared.counters.count(inbound, head);
            if inbound != Inbound::AcknowledgedInjected {
                self.to_h2.extend_from_slice(&frame);
            }
        }
        Ok(())
    }
}

impl Counters {
    fn count(&self, inbound: Inbound, head: Head) {
        if head.has_priority() {
            self.priorities_received.fetch_add(1, Ordering::Relaxed);
        }
        match inbound {
            Inbound::Opened { open, limit } => {
                self.count_open(u64::try_from(open).unwrap_or(u64::MAX), limit)
            }
            Inbound::Reset => {
                self.resets_received.fetch_add(1, Ordering::Relaxed);
            }
            Inbound::Ping => {
                self.pings_received.fetch_add(1, Ordering::Relaxed);
            }
            Inbound::GoAway => {
                self.goaways_received.fetch_add(1, Ordering::Relaxed);
            }
            Inbound::AcknowledgedInjected | Inbound::Other => {}
        }
    }

    fn count_open(&self, open: u64, limit: u32) {
        self.most_streams_open.fetch_max(open, Ordering::Relaxed);
        let beyond = open.saturating_sub(u64::from(limit));
        if beyond > 0 {
            self.limit_violations.fetch_add(1, Ordering::Relaxed);
            self.most_streams_beyond_limit
                .fetch_max(beyond, Ordering::Relaxed);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.shared.waker.register(context.waker());
        this.queue_commands();
        // Not sent yet is fine: the socket's readiness wakes this task for the write as well.
        if let Poll::Ready(Err(error)) = this.poll_send(context) {
            return Poll::Ready(Err(error));
        }
        while this.to_h2.is_empty() {
            if this.is_finished() {
                return Poll::Ready(Ok(()));
            }
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.from_peer.push(chunk.filled());
            this.sort_inbound()?;
        }
        let given = this.to_h2.len().min(buffer.remaining());
        buffer.put_slice(&this.to_h2.split_to(given));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.to_peer.len() >= MAX_QUEUED_BYTES {
            ready!(self.poll_send(context))?;
        }
        self.from_h2.push(bytes);
        self.queue_frames()?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.queue_commands();
        ready!(self.poll_send(context))?;
        if self.is_finished() {
            // The next read ends the connection.
            self.shared.waker.wake();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.write_closed {
            ready!(self.poll_send(context))?;
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.write_closed = true;
        }
        self.poll_drain(context)
    }
}

fn invalid(error: frames::FrameTooLarge) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
