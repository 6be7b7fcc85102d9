//! One signaling connection, from its `hello` to its end.
//!
//! ```text
//! hello -> ticket, revocations -> session.dial -> welcome
//!   text in  -> session.submit, one at a time   (its answer comes over the link)
//!   link     -> ack, err, peer, goaway          (the session's actor speaks)
//!   mailbox  -> msg                             (pulled, page by page, while the client reads)
//! ```
//!
//! One task does all of it: reading stops while a frame is being answered or too much waits to be written, so a client
//! that is slow or floods slows itself alone. Nothing is queued but what is being written.
//!
//! Invariant: however it ends, its link falls silent ([`Voice`]) once nothing of a message is written any more, and only
//! then its slot is given back ([`Held`]). So whoever ends a session knows of every connection that may still write.

use std::{future::pending, rc::Rc, sync::Arc, time::Duration};

use actix_http::ws::Message;
use bytes::Bytes;
use futures_util::{FutureExt as _, future::LocalBoxFuture};
use sovereign_relay_actors::session::{
    link::{Link, Words},
    port::{Bound, Page},
    registry::Held,
};
use sovereign_relay_protocol::{
    limits::{GRACE_SECONDS, HEARTBEAT_SECONDS},
    signal::{
        close::CloseCode,
        frame::{Hello, ServerFrame, Welcome},
    },
};

mod inbound;

use crate::{shutdown::Phase, turn::Ice};

use super::{
    Endpoint, Guest,
    crowd::Stay,
    end::{End, close, finish},
    greeting::{admit, dial, greet},
    heartbeat::{Due, Heartbeat},
    outbox::Outbox,
    socket::{Mark, Socket, WRITE_HIGH, Wrote},
};

/// How long a `hello` may take.
const HELLO: Duration = Duration::from_secs(5);
/// About how much of a mailbox is pulled at a time.
const PAGE_BYTES: usize = 16 * 1024;

/// Serves a connection whose WebSocket handshake is done.
pub(super) async fn serve(endpoint: &Endpoint, socket: &mut Socket, knock: Stay, address: u64) -> End {
    let end = match converse(endpoint, socket, knock, address).await {
        Ok(never) => match never {},
        Err(end) => end,
    };
    close(socket, end, || endpoint.door.leave(address)).await;
    end
}

async fn converse(
    endpoint: &Endpoint,
    socket: &mut Socket,
    knock: Stay,
    address: u64,
) -> Result<std::convert::Infallible, End> {
    let hello = tokio::select! {
        hello = greet(socket) => hello?,
        () = knock.sent_away() => return Err(CloseCode::NoHello.into()),
        () = tokio::time::sleep(HELLO) => return Err(CloseCode::NoHello.into()),
    };
    let guest = admit(endpoint, &hello, address)?;
    let _place = endpoint
        .door
        .enter(address, &guest)
        .ok_or(CloseCode::TryAgainLater)?;
    let link = Arc::new(Link::default());
    let voice = Voice(link.clone());
    let (bound, held) = dial(endpoint, &guest, &hello, &link).await?;
    // Whoever gets a slot from now on was not asked to leave with the others.
    if endpoint.lifecycle.phase() >= Phase::Draining {
        return Err(CloseCode::ServiceRestart.into());
    }
    // Between the ticket's check and now: whoever revoked it then did not see this connection yet.
    if endpoint.guard.is_revoked(&guest) {
        return Err(CloseCode::Revoked.into());
    }
    drop(knock);
    socket.set_limit(endpoint.sessions.limits().frame_bytes);
    let mut connection = Connection::new(endpoint, socket, guest, &bound, &hello, voice, held);
    connection.welcome(&bound).await;
    let end = connection.run().await;
    let end = finish(connection.socket, end).await;
    Err(end)
}

/// A link that falls silent when its connection is done, however that came about.
struct Voice(Arc<Link>);

impl Drop for Voice {
    fn drop(&mut self) {
        self.0.fall_silent();
    }
}

/// A connection that has its slot.
struct Connection<'a> {
    endpoint: &'a Endpoint,
    socket: &'a mut Socket,
    guest: Guest,
    turn: bool,
    outbox: Outbox,
    heartbeat: Heartbeat,
    leaves: Option<Duration>,
    /// Whether it said goodbye.
    is_leaving: bool,
    iced: Option<Duration>,
    /// Where the last `pong` ends.
    pong: Mark,
    /// Whether messages are queued that the client has not taken.
    has_messages: bool,
    // Dropped in this order: silent first, then the slot is given back, which the futures hold too.
    voice: Voice,
    answer: Option<LocalBoxFuture<'static, Result<(), CloseCode>>>,
    page: Option<LocalBoxFuture<'static, Result<Page, CloseCode>>>,
    ice: Option<LocalBoxFuture<'static, Ice>>,
    held: Rc<Held>,
}

enum Event {
    News,
    Readable,
    Writable,
    Answer(Result<(), CloseCode>),
    Page(Result<Page, CloseCode>),
    Ice(Ice),
    Time,
    Lost,
}

impl<'a> Connection<'a> {
    fn new(
        endpoint: &'a Endpoint,
        socket: &'a mut Socket,
        guest: Guest,
        bound: &Bound,
        hello: &Hello,
        voice: Voice,
        held: Held,
    ) -> Self {
        let now = endpoint.clock.now().mono;
        Self {
            endpoint,
            socket,
            guest,
            turn: bound.settings.turn,
            outbox: Outbox::new(bound.base.max(hello.last), bound.peer.told),
            heartbeat: Heartbeat::new(now, endpoint.jitter()),
            leaves: None,
            is_leaving: false,
            iced: None,
            pong: Mark::default(),
            has_messages: false,
            voice,
            answer: None,
            page: None,
            ice: None,
            held: Rc::new(held),
        }
    }

    async fn welcome(&mut self, bound: &Bound) {
        let now = self.endpoint.clock.now();
        let ice = self.endpoint.guard.ice(&self.guest, self.turn, now).await;
        self.say(&ServerFrame::Welcome(Welcome {
            slot: self.guest.slot,
            role: self.guest.slot.role(),
            generation: bound.generation,
            next: bound.next,
            base: bound.base,
            peer: bound.peer.told,
            expires_at: bound.expires_at,
            grace_seconds: GRACE_SECONDS,
            heartbeat_seconds: HEARTBEAT_SECONDS,
            limits: self.endpoint.sessions.limits(),
            ice_servers: ice.servers,
        }));
    }

    /// Runs until it ends.
    async fn run(&mut self) -> End {
        // What came right behind the hello was read with it.
        if let Err(end) = self.process() {
            return end;
        }
        loop {
            let event = match self.next_event().await {
                Ok(event) => event,
                Err(end) => return end,
            };
            if let Err(end) = self.on_event(event) {
                return end;
            }
        }
    }

    async fn next_event(&mut self) -> Result<Event, End> {
        self.pull();
        let sleep = self.sleep()?;
        let reads = self.reads();
        let writes = self.socket.waiting() > 0;
        let Self {
            socket,
            answer,
            page,
            ice,
            voice,
            ..
        } = self;
        let event = tokio::select! {
            biased;
            () = voice.0.news() => Event::News,
            ready = socket.writable(), if writes => ready.map_or(Event::Lost, |()| Event::Writable),
            answer = poll(answer) => Event::Answer(answer),
            page = poll(page) => Event::Page(page),
            ice = poll(ice) => Event::Ice(ice),
            ready = socket.readable(), if reads => ready.map_or(Event::Lost, |()| Event::Readable),
            () = tokio::time::sleep(sleep) => Event::Time,
        };
        Ok(event)
    }

    fn on_event(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::News => self.on_news(),
            Event::Readable => self.on_readable(),
            Event::Writable => {
                self.write()?;
                // What was read while too much waited.
                self.process()
            }
            Event::Answer(answer) => {
                self.answer = None;
                // Time spent waiting for the store is not the client's silence.
                self.heartbeat.on_heard(self.endpoint.clock.now().mono);
                self.on_answer(answer)?;
                self.process()
            }
            Event::Page(page) => {
                self.page = None;
                self.on_page(page)
            }
            Event::Ice(ice) => {
                self.ice = None;
                self.say_all(&[ServerFrame::Ice {
                    ice_servers: ice.servers,
                    expires_at: ice.expires_at,
                }])
            }
            Event::Time => Ok(()),
            Event::Lost => Err(End::Lost),
        }
    }

    /// Says what is due by time, and how long until something else is.
    fn sleep(&mut self) -> Result<Duration, End> {
        let now = self.endpoint.clock.now();
        if self.leaves.is_some_and(|leaves| leaves <= now.mono) {
            return Err(CloseCode::ServiceRestart.into());
        }
        loop {
            match self.heartbeat.due(now.mono, || self.endpoint.jitter()) {
                Due::Close(code) => return Err(code.into()),
                Due::Ping => {
                    self.socket.queue(Message::Ping(Bytes::new()));
                    self.write()?;
                }
                Due::Later(then) => {
                    return Ok(now.until(self.leaves.map_or(then, |leaves| leaves.min(then))));
                }
            }
        }
    }

    fn reads(&self) -> bool {
        self.answer.is_none() && self.socket.waiting() < WRITE_HIGH
    }

    /// Begins to read the mailbox, if there may be something in it and the client takes it.
    fn pull(&mut self) {
        if self.is_leaving || self.page.is_some() || self.socket.waiting() >= PAGE_BYTES {
            return;
        }
        if let Some(after) = self.outbox.wants_page() {
            self.outbox.on_reading();
            let held = self.held.clone();
            self.page = Some(async move { held.read(after, PAGE_BYTES).await }.boxed_local());
        }
    }

    fn on_news(&mut self) -> Result<(), End> {
        let words: Words = self.voice.0.take();
        if let Some(code) = words.close {
            return Err(code.into());
        }
        if let Some(within) = words.goaway {
            self.leaves = Some(self.endpoint.clock.now().mono.saturating_add(within));
        }
        let frames = self.outbox.on_words(&words);
        self.say_all(&frames)
    }

    fn on_page(&mut self, page: Result<Page, CloseCode>) -> Result<(), End> {
        // A session that was ended meanwhile delivers nothing more, and its link says why the slot is lost.
        if self.voice.0.is_closed() {
            return self.on_news();
        }
        let page = page?;
        self.has_messages |= !page.entries.is_empty();
        let frames = self.outbox.on_page(page);
        self.say_all(&frames)
    }

    fn on_readable(&mut self) -> Result<(), End> {
        if self.socket.fill()? > 0 {
            self.heartbeat.on_heard(self.endpoint.clock.now().mono);
        }
        self.process()
    }

    fn on_answer(&mut self, answer: Result<(), CloseCode>) -> Result<(), End> {
        // The session closes a connection that lost its slot over the link, with the better reason.
        match (answer, self.voice.0.is_closed()) {
            (Ok(()), _) => Ok(()),
            (Err(_), true) => self.on_news(),
            (Err(code), false) => Err(code.into()),
        }
    }

    fn say_all(&mut self, frames: &[ServerFrame]) -> Result<(), End> {
        frames.iter().for_each(|frame| self.say(frame));
        self.write()
    }

    fn say(&mut self, frame: &ServerFrame) {
        self.socket.queue(Message::Text(frame.to_text().into()));
    }

    /// Writes what the client takes now; the rest when it takes more.
    fn write(&mut self) -> Result<(), End> {
        if self.has_messages && self.held.is_muted() {
            // They are read again by whoever comes back.
            return Err(CloseCode::TryAgainLater.into());
        }
        while self.socket.waiting() > 0 {
            match self.socket.write()? {
                Wrote::Some => self.heartbeat.on_progress(),
                Wrote::Nothing => {
                    self.heartbeat.on_stalled(self.endpoint.clock.now().mono);
                    return Ok(());
                }
            }
        }
        self.has_messages = false;
        self.heartbeat.on_progress();
        Ok(())
    }
}

/// Polls what is there; nothing never comes.
async fn poll<T>(future: &mut Option<LocalBoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
