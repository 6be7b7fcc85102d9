//! One HTTP/2 connection to APNs: opening it, keeping it honest, and one exchange over it.
//!
//! The pool opens connections and spawns [`Driver::run`]; a push calls [`Link::submit`] and then
//! [`Exchange::answer`].
//!
//! ```text
//! dial -> handshake -> Driver (reads, writes, pings; tells the pool of limits, GOAWAY and the end)
//!                      Link   (hands requests over while the connection takes any)
//! ```
//!
//! Invariant: what is reported as not taken was surely not processed by the peer (RFC 9113, sections 6.8 and 8.7),
//! and no exchange outlives its connection or its deadline.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream, SendStream,
    client::{Connection, ResponseFuture, SendRequest},
};
use http::{HeaderValue, Response, header::AUTHORIZATION};
use thiserror::Error;
use tokio::time::timeout;

use super::{
    error::ApnsReason,
    keep_alive::{KeepAlive, KeepAliveTiming},
    meter::{Meter, Metered},
    request::ApnsRequest,
};
use crate::provider::{
    http::BodyError,
    transport::{BoxStream, DialError, Endpoint, Transport},
};

/// Streams before the peer has shown its limit: APNs allows one until it has seen a valid token.
const FIRST_STREAMS: usize = 1;
/// Streams that timed out and whose late answers are still expected, at most: all of one connection. An answer to a
/// stream that h2 has forgotten counts as the peer's error, and too many of those end the connection.
const REMEMBERED_RESETS: usize = 1000;
/// How long they are: longer than a push lives.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// Largest header block accepted of an answer: Apple's have a few hundred bytes.
const HEADER_LIST_BYTES: u32 = 16 * 1024;
/// Largest body read of an answer: Apple's have under a hundred bytes.
const ANSWER_BYTES: usize = 4 * 1024;
/// Longest wait for the body once the head of an answer is here.
const ANSWER_BODY_WITHIN: Duration = Duration::from_secs(2);

type Wire = Connection<Metered<BoxStream>, Bytes>;

/// A connection could not be opened.
#[derive(Debug, Error)]
pub(super) enum OpenError {
    /// TCP, proxy, TLS.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// HTTP/2's first frames.
    #[error("the HTTP/2 handshake failed: {0}")]
    Handshake(#[from] h2::Error),
}

/// Opens a connection within `limit`.
pub(super) async fn open(
    transport: &Transport,
    endpoint: &Endpoint,
    limit: Duration,
    id: u64,
) -> Result<(Arc<Link>, Driver), OpenError> {
    let stream = transport.dial(endpoint, limit).await?;
    let meter = Arc::new(Meter::default());
    let mut builder = h2::client::Builder::new();
    builder
        .initial_max_send_streams(FIRST_STREAMS)
        .max_concurrent_reset_streams(REMEMBERED_RESETS)
        .reset_stream_duration(REMEMBERED_FOR)
        .enable_push(false)
        .max_header_list_size(HEADER_LIST_BYTES);
    let handshake = builder.handshake(Metered::new(stream, meter.clone()));
    let (sender, wire) = timeout(limit, handshake)
        .await
        .map_err(|_| DialError::TimedOut(limit))??;
    let link = Arc::new(Link {
        id,
        sender: Mutex::new(Some(sender)),
        meter,
        in_flight: AtomicUsize::new(0),
        awaits_pong: AtomicBool::new(false),
    });
    Ok((
        link.clone(),
        Driver {
            wire,
            link,
            limit: FIRST_STREAMS,
        },
    ))
}

/// The way in to a connection.
pub(super) struct Link {
    id: u64,
    sender: Mutex<Option<SendRequest<Bytes>>>,
    meter: Arc<Meter>,
    in_flight: AtomicUsize,
    /// A PING is out.
    awaits_pong: AtomicBool,
}

/// The connection takes no more requests; this one was not handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Closed;

impl Link {
    /// The pool's number of it.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Takes no more requests; those handed over end by themselves, and then the connection.
    pub(super) fn retire(&self) {
        drop(self.lock().take());
    }

    /// Hands a request over. The token is asked for under the connection's lock, so that tokens reach the peer in
    /// the order they were made: an older one after a newer one would count as two changes.
    pub(super) fn submit(
        self: &Arc<Self>,
        request: ApnsRequest,
        authorization: impl FnOnce() -> HeaderValue,
    ) -> Result<Exchange, Closed> {
        let ApnsRequest { mut head, body } = request;
        let sender = self.lock();
        // A handle of its own: one that has a stream waiting for the peer's permission hands nothing else over.
        let Some(mut handle) = sender.clone() else {
            return Err(Closed);
        };
        head.headers_mut().insert(AUTHORIZATION, authorization());
        let written = self.meter.written();
        let (response, mut stream) = handle.send_request(head, false).map_err(|_| Closed)?;
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        // A failure here is the connection's, which the response reports with its cause.
        let _ = stream.send_data(body, true);
        Ok(Exchange {
            link: self.clone(),
            response,
            _stream: stream,
            written,
        })
    }

    /// Whether the peer said GOAWAY, and in which words.
    fn going_away(&self, context: &mut Context<'_>) -> Option<h2::Error> {
        let mut sender = self.lock();
        match sender.as_mut()?.poll_ready(context) {
            Poll::Ready(Err(error)) => Some(error),
            Poll::Ready(Ok(())) | Poll::Pending => None,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<SendRequest<Bytes>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that was handed over. Dropping it before the answer resets the stream.
pub(super) struct Exchange {
    link: Arc<Link>,
    response: ResponseFuture,
    /// Kept to the end: a dropped one would reset the stream of an answer still under way.
    _stream: SendStream<Bytes>,
    written: u64,
}

/// No answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoAnswer {
    /// The peer surely did not process it: above GOAWAY's last stream, REFUSED_STREAM, or never written.
    NotTaken,
    /// The connection was lost after something was written: it may have been accepted.
    Lost,
    /// The peer reset the stream: it may have been accepted.
    Reset,
    /// None until the deadline, over a connection that is open.
    TimedOut,
    /// The same, while the peer owes a PONG: the connection may be lost, and with it every stream.
    Silent,
}

/// An answer: head, and body if it could be read.
pub(super) type Received = (Response<()>, Result<Vec<u8>, BodyError>);

impl Exchange {
    /// Waits for the answer, head and bounded body, while there is time `left`.
    pub(super) async fn answer(mut self, left: impl Fn() -> Duration) -> Result<Received, NoAnswer> {
        let response = match timeout(left(), &mut self.response).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.classify(&error)),
            Err(_) if self.link.awaits_pong.load(Ordering::Relaxed) => return Err(NoAnswer::Silent),
            Err(_) => return Err(NoAnswer::TimedOut),
        };
        let (head, body) = response.into_parts();
        let body = read_bounded(body, left().min(ANSWER_BODY_WITHIN)).await;
        Ok((Response::from_parts(head, ()), body))
    }

    fn classify(&self, error: &h2::Error) -> NoAnswer {
        if error.is_go_away() && error.is_remote() {
            return NoAnswer::NotTaken;
        }
        if error.is_reset() && error.is_remote() {
            let refused = error.reason() == Some(Reason::REFUSED_STREAM);
            return if refused {
                NoAnswer::NotTaken
            } else {
                NoAnswer::Reset
            };
        }
        if self.link.meter.written() == self.written {
            NoAnswer::NotTaken
        } else {
            NoAnswer::Lost
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.link.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The whole body, within its bounds of size and time. A part of one is nothing to judge by.
async fn read_bounded(mut body: RecvStream, within: Duration) -> Result<Vec<u8>, BodyError> {
    let reading = async {
        let mut read = Vec::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(|_| BodyError::Cut)?;
            // Fails only when the stream is gone, which the next read says too.
            let _ = body.flow_control().release_capacity(chunk.len());
            read.extend_from_slice(&chunk);
            if read.len() > ANSWER_BYTES {
                return Err(BodyError::TooLong);
            }
        }
        Ok(read)
    };
    timeout(within, reading).await.unwrap_or(Err(BodyError::TooSlow))
}

/// What a driver tells the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The peer allows this many streams.
    Limit(usize),
    /// The peer said GOAWAY: no more requests, those under way may end.
    GoingAway(ApnsReason),
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Nothing was left to do: retired or gone away, all streams done.
    Done,
    /// The peer or the network closed it.
    Lost,
    /// No PONG: packets vanish.
    Silent,
}

/// Reads, writes and pings. Owned by one task.
pub(super) struct Driver {
    wire: Wire,
    link: Arc<Link>,
    limit: usize,
}

impl Driver {
    /// Runs until the connection has ended; dropping it closes the socket and ends what was under way.
    pub(super) async fn run(mut self, timing: KeepAliveTiming, mut tell: impl FnMut(Event)) -> End {
        let pings = self.wire.ping_pong();
        let link = self.link.clone();
        let silence = async {
            match pings {
                Some(pings) => silent(pings, &link, timing).await,
                None => std::future::pending().await,
            }
        };
        let mut told_goaway = false;
        let wire = poll_fn(|context| self.step(context, &mut told_goaway, &mut tell));
        tokio::select! {
            // What has come is read before it is judged whether anything did.
            biased;
            end = wire => end,
            () = silence => End::Silent,
        }
    }

    fn step(
        &mut self,
        context: &mut Context<'_>,
        told: &mut bool,
        tell: &mut impl FnMut(Event),
    ) -> Poll<End> {
        let polled = Pin::new(&mut self.wire).poll(context);
        let limit = self.wire.max_concurrent_send_streams();
        if limit != self.limit {
            self.limit = limit;
            tell(Event::Limit(limit));
        }
        if !*told && let Some(error) = self.link.going_away(context) {
            *told = true;
            tell(Event::GoingAway(spoken_reason(&error)));
        }
        polled.map(|result| if result.is_ok() { End::Done } else { End::Lost })
    }
}

/// Ends when the peer leaves a PING unanswered.
async fn silent(mut pings: h2::PingPong, link: &Link, timing: KeepAliveTiming) {
    let mut keep_alive = KeepAlive::new(timing);
    loop {
        tokio::time::sleep(timing.look_every).await;
        let busy = link.in_flight.load(Ordering::Relaxed) > 0;
        if !keep_alive.look(link.meter.read(), busy) {
            continue;
        }
        link.awaits_pong.store(true, Ordering::Relaxed);
        match while_heard(pings.ping(h2::Ping::opaque()), link, timing.pong_within).await {
            Some(Ok(_)) => link.awaits_pong.store(false, Ordering::Relaxed),
            // The connection itself is at its end, which its own poll reports.
            Some(Err(_)) => std::future::pending().await,
            None => return,
        }
    }
}

/// Waits for a PONG as long as anything comes at all: one that is late behind much else is no silence, nor is one that
/// a busy machine has not read yet.
async fn while_heard<T>(pong: impl Future<Output = T>, link: &Link, within: Duration) -> Option<T> {
    let mut pong = std::pin::pin!(pong);
    loop {
        let read = link.meter.read();
        if let Ok(pong) = timeout(within, &mut pong).await {
            return Some(pong);
        }
        // The connection has its turn to read what is there.
        tokio::task::yield_now().await;
        if link.meter.read() == read {
            return None;
        }
    }
}

/// GOAWAY's debug data is JSON with a reason. Only words of Apple's own list are taken from it.
fn spoken_reason(error: &h2::Error) -> ApnsReason {
    let text = error.to_string();
    let quoted = |reason: &ApnsReason| text.contains(&format!("\\\"{}\\\"", reason.as_str()));
    ApnsReason::ALL
        .iter()
        .copied()
        .find(quoted)
        .unwrap_or(ApnsReason::Unknown)
}
