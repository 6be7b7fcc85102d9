//! A socket that can be frozen, thawed and cut from outside.
//!
//! It lies under TLS, so a frozen connection is what a black hole looks like to the other side: TCP still
//! acknowledges, and nothing is ever answered, no PING, no close. Invariant: while frozen not a byte is read from or
//! written to the socket, and whoever waited goes on when it is thawed.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::task::AtomicWaker;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
};

/// The handle of one connection's socket.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    frozen: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
    killed: Notify,
}

impl Gate {
    pub(crate) fn set_frozen(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::SeqCst);
        if !frozen {
            self.reader.wake();
            self.writer.wake();
        }
    }

    /// Cuts the connection: whoever serves it is dropped, and the socket with it.
    pub(crate) fn kill(&self) {
        self.killed.notify_one();
    }

    /// Returns once [`Gate::kill`] was called, also if that was before.
    pub(crate) async fn killed(&self) {
        self.killed.notified().await;
    }

    /// Ready while not frozen; registers before it looks again, so that no thaw is missed.
    fn poll_open(&self, waker: &AtomicWaker, context: &Context<'_>) -> Poll<()> {
        if !self.frozen.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        waker.register(context.waker());
        if self.frozen.load(Ordering::SeqCst) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

/// A TCP stream behind its gate.
#[derive(Debug)]
pub(crate) struct GatedStream {
    stream: TcpStream,
    gate: Arc<Gate>,
}

impl GatedStream {
    pub(crate) fn new(stream: TcpStream, gate: Arc<Gate>) -> Self {
        Self { stream, gate }
    }
}

impl AsyncRead for GatedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        std::task::ready!(self.gate.poll_open(&self.gate.reader, context));
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for GatedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        std::task::ready!(self.gate.poll_open(&self.gate.writer, context));
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.gate.poll_open(&self.gate.writer, context));
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.gate.poll_open(&self.gate.writer, context));
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
