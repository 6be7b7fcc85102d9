//! How long a connection is given between one request and the next.
//!
//! The HTTP server times the head of a connection's first request only. Of any later one, a client could send a byte a
//! minute and hold its connection, and all it had sent, for ever. So the socket is wrapped: a read fails once a head
//! that has begun isn't whole in time, whichever request it is of.
//!
//! ```text
//! First --a request reaches the service--> Serving --answered--> Idle --bytes--> Head
//!                                             ^--------a request reaches the service----|
//! ```
//!
//! First has the server's own timer, which also answers 408; Serving has the handler's times; Idle ends with the
//! server's keep-alive, or shortly after it where bytes that came with the last request have stopped that. Head has
//! [`Patience::head`].
//!
//! Called by [`super::server`], which puts a [`Watch`] beside each connection and tells it of every request.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// Times between requests.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// From a head's first byte to its last.
    pub(super) head: Duration,
    /// From an answer to the next head's first byte.
    pub(super) idle: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    First,
    Serving,
    Idle,
    Head,
}

/// What a connection is about, shared by its socket and its requests. The number tells turns of a phase apart.
#[derive(Clone)]
pub(super) struct Watch(Rc<Cell<(Phase, u64)>>);

impl Watch {
    fn new() -> Self {
        Self(Rc::new(Cell::new((Phase::First, 0))))
    }

    /// A request has reached the service; it is over when this is dropped.
    pub(super) fn serve(&self) -> Served {
        self.enter(Phase::Serving);
        Served(self.clone())
    }

    fn bytes_came(&self) {
        if self.0.get().0 == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    fn enter(&self, phase: Phase) {
        self.0.set((phase, self.0.get().1.wrapping_add(1)));
    }
}

/// A request under way.
pub(super) struct Served(Watch);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
    }
}

/// A socket whose reads fail when the patience is over.
pub(super) struct Patient<S> {
    socket: S,
    /// Read before the socket is: what was read of it already and is to be read again.
    unread: BytesMut,
    patience: Patience,
    watch: Watch,
    timer: Option<Pin<Box<Sleep>>>,
    /// The turn that the timer is for.
    timed: u64,
}

impl<S> Patient<S> {
    pub(super) fn new(socket: S, patience: Patience) -> Self {
        Self {
            socket,
            unread: BytesMut::new(),
            patience,
            watch: Watch::new(),
            timer: None,
            timed: 0,
        }
    }

    /// For the connection's requests.
    pub(super) fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// As a connection that has just come, and begins with these bytes.
    pub(super) fn again(self, unread: BytesMut) -> Self {
        Self {
            unread,
            ..Self::new(self.socket, self.patience)
        }
    }

    /// The socket, for what comes after HTTP.
    pub(super) fn into_socket(self) -> S {
        self.socket
    }

    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let (phase, turn) = self.watch.0.get();
        if self.timed != turn {
            self.timed = turn;
            self.timer = match phase {
                Phase::First | Phase::Serving => None,
                Phase::Idle => Some(self.patience.idle.saturating_add(self.patience.head)),
                Phase::Head => Some(self.patience.head),
            }
            .map(|time| Box::pin(sleep(time)));
        }
        self.timer
            .as_mut()
            .is_some_and(|timer| timer.as_mut().poll(context).is_ready())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let length = buffer.remaining().min(self.unread.len());
            buffer.put_slice(&self.unread.split_to(length));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.watch.bytes_came();
        }
        if read.is_pending() && self.is_over(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use sovereign_relay_actors::ports::Clock as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;
    use crate::clock::SystemClock;

    const PATIENCE: Patience = Patience {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(75),
    };

    fn connection() -> (DuplexStream, Patient<DuplexStream>, Watch) {
        let (client, socket) = duplex(1024);
        let socket = Patient::new(socket, PATIENCE);
        let watch = socket.watch();
        (client, socket, watch)
    }

    /// Reads until something ends it, while the client sends a byte a second. Gives the seconds that it took.
    async fn trickled(client: &mut DuplexStream, socket: &mut Patient<DuplexStream>) -> u64 {
        let clock = SystemClock::new();
        let trickle = async {
            loop {
                client.write_all(b"a").await.unwrap();
                sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = trickle => unreachable!(),
            error = until_it_fails(socket) => assert_eq!(error.kind(), io::ErrorKind::TimedOut),
        }
        clock.now().mono.as_secs()
    }

    async fn until_it_fails(socket: &mut Patient<DuplexStream>) -> io::Error {
        loop {
            match socket.read_u8().await {
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_head_that_trickles_is_cut_whichever_it_is() {
        let (mut client, mut socket, watch) = connection();
        for _ in 0..3 {
            drop(watch.serve());
            assert_eq!(trickled(&mut client, &mut socket).await, 10);
        }
    }

    #[tokio::test]
    async fn what_is_to_be_read_again_comes_before_what_was_not_read_yet() {
        let (mut client, socket, _) = connection();
        let mut socket = socket.again(BytesMut::from("again "));
        client.write_all(b"and on").await.unwrap();
        drop(client);
        let mut read = String::new();
        socket.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "again and on");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_after_an_answer_ends_after_the_keep_alive() {
        let (_client, mut socket, watch) = connection();
        drop(watch.serve());
        let clock = SystemClock::new();
        until_it_fails(&mut socket).await;
        assert_eq!(clock.now().mono.as_secs(), 85);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_and_the_first_head_are_timed_by_others() {
        let (mut client, mut socket, watch) = connection();
        for _ in 0..2 {
            let reads = tokio::time::timeout(Duration::from_secs(1000), trickled(&mut client, &mut socket));
            assert!(reads.await.is_err());
            std::mem::forget(watch.serve());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_comes_in_time_ends_the_timer_of_its_head() {
        let (mut client, mut socket, watch) = connection();
        drop(watch.serve());
        client.write_all(b"a").await.unwrap();
        let waits = async { tokio::time::timeout(Duration::from_secs(9), until_it_fails(&mut socket)).await };
        assert!(waits.await.is_err());
        let served = watch.serve();
        let waits =
            async { tokio::time::timeout(Duration::from_secs(900), until_it_fails(&mut socket)).await };
        assert!(waits.await.is_err());
        drop(served);
        assert_eq!(trickled(&mut client, &mut socket).await, 10);
    }
}
