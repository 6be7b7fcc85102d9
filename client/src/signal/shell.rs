//! The task around the core: it owns the socket and the one timer, and does what the core says.
//!
//! ```text
//! messages, orders, processed -> core -> frame -> socket
//!                     events  <- core <- frame <- socket
//! ```
//!
//! Invariant: nothing is buffered here. A caller's message is taken when the outbox has room, a frame is made when the
//! socket can take it, and the socket is read when the application keeps up.

use std::{collections::VecDeque, future::pending};

use futures_util::future::BoxFuture;
use sovereign_relay_protocol::signal::{
    close::CloseCode,
    frame::{Mood, Opaque},
    session::SessionLimits,
};
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    connection::NotStored,
    core::{Core, Effect, events::Delivery, outbox::TooLarge},
    dial::{DialError, Dialer},
    socket::{Socket, SocketEvent},
};
use crate::clock::Clock;

/// A message on its way into the outbox.
pub(super) struct Outgoing {
    pub(super) content: Opaque,
    /// Told once the relay has stored it, or can't; dropped when nobody will know.
    pub(super) stored: Stored,
}

type Stored = oneshot::Sender<Result<(), NotStored>>;

/// What the application asks for beside sending.
pub(super) enum Order {
    Leave(Mood),
    Wake,
    RequestIce,
}

/// The other ends of the application's channels.
pub(super) struct Ends {
    pub(super) messages: mpsc::Receiver<Outgoing>,
    pub(super) orders: mpsc::Receiver<Order>,
    /// Highest seq that the application took.
    pub(super) processed: watch::Receiver<u64>,
    pub(super) events: mpsc::Sender<Delivery>,
    /// What the relay allows.
    pub(super) limits: watch::Sender<SessionLimits>,
}

pub(super) struct Shell {
    core: Core,
    clock: Clock,
    dialer: Dialer,
    wire: Wire,
    ends: Ends,
    /// Whether a message may still come.
    sending: bool,
    /// Whether the core had nothing to transmit when it was last asked.
    idle: bool,
    receipts: VecDeque<(u64, Stored)>,
}

enum Wire {
    Down,
    Dialing(BoxFuture<'static, Result<Box<Socket>, DialError>>),
    Up(Box<Socket>),
}

enum WireEvent {
    Dialled(Result<Box<Socket>, DialError>),
    Socket(SocketEvent),
}

enum Input {
    Order(Order),
    Processed,
    Delivered,
    ApplicationGone,
    Wire(WireEvent),
    Message(Option<Outgoing>),
    Timer,
}

impl Shell {
    pub(super) fn new(core: Core, clock: Clock, dialer: Dialer, ends: Ends) -> Self {
        Self {
            core,
            clock,
            dialer,
            wire: Wire::Down,
            ends,
            sending: true,
            idle: true,
            receipts: VecDeque::new(),
        }
    }

    /// Runs until the connection has ended and the application has heard of it, or is gone.
    pub(super) async fn run(mut self) {
        while !self.core.is_over() || self.core.has_event() {
            match self.input().await {
                Input::ApplicationGone => return,
                input => self.take(input),
            }
            self.obey().await;
            self.tell_limits();
            self.settle_receipts();
        }
    }

    async fn input(&mut self) -> Input {
        let now = self.clock.now();
        let deadline = self.core.deadline(now).map(|at| self.clock.instant(at));
        let (reading, writing) = (self.core.is_reading(), !self.idle);
        tokio::select! {
            // The application first, so that it is never behind; the timer last, after all that came in time.
            biased;
            order = self.ends.orders.recv() => order.map_or(Input::ApplicationGone, Input::Order),
            changed = self.ends.processed.changed() => match changed {
                Ok(()) => Input::Processed,
                Err(_) => Input::ApplicationGone,
            },
            permit = self.ends.events.reserve(), if self.core.has_event() => match permit {
                Ok(permit) => {
                    if let Some(delivery) = self.core.take_event() {
                        permit.send(delivery);
                    }
                    Input::Delivered
                }
                Err(_) => Input::ApplicationGone,
            },
            event = self.wire.event(reading, writing) => Input::Wire(event),
            message = self.ends.messages.recv(), if self.sending && self.core.has_room() => Input::Message(message),
            () = sleep_until(deadline) => Input::Timer,
        }
    }

    fn take(&mut self, input: Input) {
        let now = self.clock.now();
        if matches!(input, Input::Wire(WireEvent::Socket(SocketEvent::Writable))) {
            self.transmit();
            return;
        }
        self.idle = false;
        match input {
            Input::Order(Order::Leave(mood)) => self.leave(mood),
            Input::Order(Order::Wake) => {
                self.core.wake(now);
                self.core.tick(now);
            }
            Input::Order(Order::RequestIce) => self.core.request_ice(),
            Input::Processed => {
                let seq = *self.ends.processed.borrow_and_update();
                self.core.processed(seq, now);
            }
            Input::Wire(event) => self.heed(event),
            Input::Message(Some(message)) => self.queue(message),
            Input::Message(None) => self.sending = false,
            Input::Timer => self.core.tick(now),
            Input::Delivered | Input::ApplicationGone => {}
        }
    }

    fn heed(&mut self, event: WireEvent) {
        let now = self.clock.now();
        match event {
            WireEvent::Dialled(Ok(socket)) => {
                self.wire = Wire::Up(socket);
                self.core.dialled(now);
            }
            WireEvent::Dialled(Err(error)) => {
                self.wire = Wire::Down;
                tracing::debug!(%error, "dial failed");
                self.core.dial_failed(error.refused(), now);
            }
            WireEvent::Socket(SocketEvent::Text(text)) => self.core.text(&text, now),
            WireEvent::Socket(SocketEvent::Control) => self.core.life(now),
            WireEvent::Socket(SocketEvent::Binary) => self.core.binary(now),
            WireEvent::Socket(SocketEvent::Closed(code)) => {
                self.wire = Wire::Down;
                self.core.closed(code, now);
            }
            WireEvent::Socket(SocketEvent::Writable) => self.transmit(),
        }
    }

    fn transmit(&mut self) {
        let Wire::Up(socket) = &mut self.wire else {
            return;
        };
        match self.core.transmit(self.clock.now()) {
            Some(frame) => socket.write(&frame),
            None => self.idle = true,
        }
    }

    fn queue(&mut self, Outgoing { content, stored }: Outgoing) {
        match self.core.send(content) {
            Ok(n) => self.receipts.push_back((n, stored)),
            // It was measured by the limits of the welcome before.
            Err(TooLarge) => drop(stored.send(Err(NotStored::TooLarge))),
        }
    }

    /// Nothing more is taken than what is in the channel, which is short.
    fn leave(&mut self, mood: Mood) {
        self.ends.messages.close();
        while let Ok(message) = self.ends.messages.try_recv() {
            self.queue(message);
        }
        self.core.leave(mood, self.clock.now());
    }

    async fn obey(&mut self) {
        while let Some(effect) = self.core.effect() {
            match effect {
                Effect::Dial => self.wire = Wire::Dialing(self.dialer.dial()),
                Effect::HangUp(code) => self.hang_up(code).await,
            }
        }
    }

    async fn hang_up(&mut self, code: CloseCode) {
        let Wire::Up(socket) = std::mem::replace(&mut self.wire, Wire::Down) else {
            return;
        };
        if code == CloseCode::Normal {
            socket.close(code).await;
        } else {
            socket.drop_with(code);
        }
    }

    /// Before the application hears of the welcome that brought them.
    fn tell_limits(&self) {
        let limits = self.core.limits();
        self.ends.limits.send_if_modified(|told| {
            let changed = *told != limits;
            *told = limits;
            changed
        });
    }

    fn settle_receipts(&mut self) {
        while let Some(dropped) = self.core.take_dropped() {
            self.refuse(dropped);
        }
        let stored = self.core.stored();
        while self.receipts.front().is_some_and(|(n, _)| *n <= stored) {
            if let Some((_, receipt)) = self.receipts.pop_front() {
                // Not everybody waits for it.
                let _ = receipt.send(Ok(()));
            }
        }
    }

    /// Those behind it move up by one.
    fn refuse(&mut self, dropped: u64) {
        let index = self.receipts.partition_point(|(n, _)| *n < dropped);
        if let Some((_, receipt)) = self.receipts.remove(index) {
            let _ = receipt.send(Err(NotStored::TooLarge));
        }
        for (n, _) in self.receipts.iter_mut().skip(index) {
            *n -= 1;
        }
    }
}

impl Wire {
    async fn event(&mut self, reading: bool, writing: bool) -> WireEvent {
        match self {
            Self::Down => pending().await,
            Self::Dialing(dial) => WireEvent::Dialled(dial.await),
            Self::Up(socket) => WireEvent::Socket(socket.event(reading, writing).await),
        }
    }
}

async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}
