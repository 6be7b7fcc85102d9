//! The HTTP frame of FCM and WNS: hyper for the protocol, and behaviours carried out on it.
//!
//! Flow: TLS and ALPN pick HTTP/1.1 or HTTP/2 - the head may already cost the connection - body - the provider's
//! [`HttpService`] - [`Reply`]. The tasks that hyper wants for HTTP/2 streams are owned by the connection.

use std::{
    convert::Infallible,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use crate::{
    behaviour::{Answer, Behaviour, Ending, Pace},
    net::{
        gate::Gate,
        server::{ClientStream, Connection, Serve},
    },
    simulator::{Provider, Shared},
    sync::lock,
};

/// Bytes of a request body that are kept: more than any provider takes. The rest is read and dropped.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// HTTP/2 streams per connection.
const MAX_CONCURRENT_STREAMS: u32 = 1000;

/// What a provider does with requests.
pub(crate) trait HttpService: Send + Sync + 'static {
    /// Whether the connection is to be cut before the body is read.
    fn kills_before_reading(&self, head: &Parts, connection: &Connection) -> bool;

    /// Answers.
    fn handle(&self, head: Parts, body: Bytes, connection: &Connection)
    -> impl Future<Output = Reply> + Send;
}

/// An answer, or none.
pub(crate) enum Reply {
    /// Send this.
    Response(Response<ReplyBody>),
    /// Reset the stream with this code.
    Reset(u32),
    /// Cut the connection.
    Kill,
}

pub(crate) type ReplyBody = UnsyncBoxBody<Bytes, BodyCut>;

/// Ends a body in the middle.
#[derive(Debug, thiserror::Error)]
#[error("the script cuts the body here")]
pub(crate) struct BodyCut;

impl Reply {
    pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Self {
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert("content-type", HeaderValue::from_static("application/json"));
        Self::whole(response)
    }

    pub(crate) fn whole(response: Response<Bytes>) -> Self {
        Self::Response(response.map(|body| {
            Full::new(body)
                .map_err(|never: Infallible| match never {})
                .boxed_unsync()
        }))
    }
}

/// What the provider adds to scripted behaviour.
pub(crate) struct Usual {
    /// The answer of [`Ending::Accept`].
    pub(crate) success: Response<Bytes>,
    /// Sent with every answer that isn't bare, unless the script sets the field itself.
    pub(crate) headers: HeaderMap,
}

/// Waits, delivers and ends as told.
pub(crate) async fn carry_out<P: Provider>(
    shared: &Shared<P>,
    connection: &Connection,
    delivery: P::Delivery,
    behaviour: Behaviour,
    usual: Usual,
) -> Reply {
    if behaviour.delay_ms > 0 {
        tokio::time::sleep(behaviour.delay()).await;
    }
    shared.script.let_go().await;
    if behaviour.deliver {
        shared.inbox.record(|| delivery.clone());
    }
    let status = match &behaviour.ending {
        Ending::Accept => Some(usual.success.status().as_u16()),
        Ending::Answer(answer) => Some(answer.status),
        Ending::Never | Ending::ResetStream { .. } | Ending::KillConnection | Ending::KillBeforeReading => {
            None
        }
    };
    shared.note(status, "", || delivery);
    end(behaviour.ending, usual, &connection.gate).await
}

/// Ends an exchange that is on no record: the token endpoints.
pub(crate) async fn end(ending: Ending, usual: Usual, gate: &Arc<Gate>) -> Reply {
    match ending {
        Ending::Accept => {
            let mut success = usual.success;
            success.headers_mut().extend(usual.headers);
            Reply::whole(success)
        }
        Ending::Answer(answer) => scripted(answer, usual.headers, gate),
        Ending::Never => std::future::pending().await,
        Ending::ResetStream { code } => Reply::Reset(code),
        Ending::KillConnection | Ending::KillBeforeReading => Reply::Kill,
    }
}

/// Cuts a body into pieces; the last one is marked.
pub(crate) fn chunks(body: &Bytes, size: usize) -> impl Iterator<Item = (Bytes, bool)> + Send + 'static {
    let (body, size) = (body.clone(), size.max(1));
    (0..body.len()).step_by(size).map(move |start| {
        let end = start.saturating_add(size).min(body.len());
        (body.slice(start..end), end == body.len())
    })
}

fn scripted(answer: Answer, usual: HeaderMap, gate: &Arc<Gate>) -> Reply {
    let mut headers = if answer.bare { HeaderMap::new() } else { usual };
    for (name, value) in &answer.headers {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => _ = headers.insert(name, value),
            (Err(_), _) | (_, Err(_)) => tracing::error!("the script has an impossible header field"),
        }
    }
    let body = Bytes::from(answer.body);
    if !matches!(answer.pace, Pace::AtOnce) {
        headers.insert("content-length", HeaderValue::from(body.len()));
    }
    let mut response = Response::new(paced(body, answer.pace, gate));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    Reply::Response(response)
}

fn paced(body: Bytes, pace: Pace, gate: &Arc<Gate>) -> ReplyBody {
    let part = |bytes: usize| body.slice(..bytes.min(body.len()));
    match pace {
        Pace::AtOnce => Full::new(body)
            .map_err(|never: Infallible| match never {})
            .boxed_unsync(),
        Pace::Slow {
            chunk_bytes,
            pause_ms,
        } => {
            let pause = Duration::from_millis(pause_ms);
            boxed(stream::unfold(
                chunks(&body, chunk_bytes),
                move |mut chunks| async move {
                    let (chunk, _) = chunks.next()?;
                    tokio::time::sleep(pause).await;
                    Some((Ok(Frame::data(chunk)), chunks))
                },
            ))
        }
        Pace::CutAfter { bytes } => {
            let gate = Arc::clone(gate);
            boxed(first_then(part(bytes), async move {
                // Once round, so that the connection sends what it has before it is cut.
                tokio::task::yield_now().await;
                gate.kill();
                Some(Err(BodyCut))
            }))
        }
        Pace::StallAfter { bytes } => boxed(first_then(part(bytes), std::future::pending())),
    }
}

type BodyFrame = Result<Frame<Bytes>, BodyCut>;

fn first_then(
    part: Bytes,
    then: impl Future<Output = Option<BodyFrame>> + Send,
) -> impl Stream<Item = BodyFrame> + Send {
    use futures_util::StreamExt;
    let first = stream::iter((!part.is_empty()).then(|| Ok(Frame::data(part))));
    first.chain(stream::once(then).filter_map(std::future::ready))
}

fn boxed(frames: impl Stream<Item = BodyFrame> + Send + 'static) -> ReplyBody {
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// Serves connections with a provider's service.
pub(crate) struct HttpServer<S> {
    pub(crate) service: Arc<S>,
}

impl<S: HttpService> Serve for HttpServer<S> {
    async fn serve(self: Arc<Self>, stream: ClientStream, connection: Connection) {
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let service =
            service_fn(|request| answer(Arc::clone(&self.service), request, connection.clone(), is_http2));
        let stream = TokioIo::new(stream);
        let served = if is_http2 {
            let streams = StreamTasks::default();
            let mut builder = hyper::server::conn::http2::Builder::new(streams);
            builder.max_concurrent_streams(MAX_CONCURRENT_STREAMS);
            builder.serve_connection(stream, service).await
        } else {
            hyper::server::conn::http1::Builder::new()
                .serve_connection(stream, service)
                .await
        };
        if let Err(error) = served {
            tracing::debug!(%error, "HTTP connection ended");
        }
    }
}

async fn answer<S: HttpService>(
    service: Arc<S>,
    request: Request<Incoming>,
    connection: Connection,
    is_http2: bool,
) -> Result<Response<ReplyBody>, h2::Error> {
    let (head, body) = request.into_parts();
    let reply = if service.kills_before_reading(&head, &connection) {
        Reply::Kill
    } else {
        match read_body(body).await {
            Some(body) => service.handle(head, body, &connection).await,
            None => Reply::Kill,
        }
    };
    match reply {
        Reply::Response(response) => Ok(response),
        Reply::Reset(code) if is_http2 => Err(h2::Reason::from(code).into()),
        Reply::Reset(_) | Reply::Kill => {
            connection.gate.kill();
            std::future::pending().await
        }
    }
}

/// The whole body, or `None` if it ended early.
async fn read_body(mut incoming: Incoming) -> Option<Bytes> {
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame.ok()?.into_data() else {
            continue;
        };
        let room = MAX_BODY_BYTES.saturating_sub(body.len());
        body.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
    }
    Some(body.freeze())
}

/// The tasks of one HTTP/2 connection's streams; dropped, and so aborted, with the connection.
#[derive(Clone, Default)]
struct StreamTasks {
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl<F> hyper::rt::Executor<F> for StreamTasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            stream.await;
        });
    }
}
