//! Around every request: its id, its log line, its metrics, and the net that catches a panic.
//!
//! ```text
//! request -> id (the caller's or ours) -> span -> route -> answer + x-request-id -> one line in the log
//!                                           \-> panic -> 500, the worker lives on
//! ```
//!
//! Handlers leave what they learned (instance, outcome) in the [`RequestNotes`]. Invariant: a line names the route's
//! template, never the path, and no address, key or content.

use std::{cell::Cell, panic::AssertUnwindSafe, rc::Rc, sync::Arc, time::Duration};

use actix_web::{
    Error, HttpMessage, HttpRequest, HttpResponse,
    body::BoxBody,
    dev::{ResponseHead, ServiceRequest, ServiceResponse},
    http::{
        ConnectionType, Method,
        header::{HeaderMap, HeaderName, HeaderValue},
    },
    middleware::Next,
};
use futures_util::FutureExt;
use metrics::{counter, histogram};
use sovereign_relay_actors::ports::{Clock, Entropy};
use sovereign_relay_protocol::{
    error::ErrorCode,
    id::{InstanceId, RequestId},
    push::{PushAnswer, PushResult, Reason},
};
use tracing::{Instrument, debug, error_span, info};

use crate::{
    http::{error::ApiError, unread::Receiver},
    shutdown::{Lifecycle, Phase},
};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The route of a request that no route has.
const NO_ROUTE: &str = "none";
/// What balancers ask each second. Their good answers are logged at debug, lest they hide the others.
const PROBES: [&str; 3] = ["/readyz", "/livez", "/api/health"];

/// What the middleware needs of the relay.
#[derive(Clone)]
pub(crate) struct Observer {
    /// For durations.
    pub(crate) clock: Arc<dyn Clock>,
    /// For request ids.
    pub(crate) entropy: Arc<dyn Entropy>,
    /// While the relay stops, answers end their connections.
    pub(crate) lifecycle: Lifecycle,
    /// `public` or `admin`: a label.
    pub(crate) listener: &'static str,
}

/// What a handler tells the log line of its request.
#[derive(Default)]
pub(crate) struct RequestNotes {
    instance: Cell<Option<InstanceId>>,
    outcome: Cell<Option<(PushResult, Option<Reason>)>>,
}

impl RequestNotes {
    /// The notes of a request.
    pub(crate) fn of(request: &HttpRequest) -> Rc<Self> {
        request
            .extensions()
            .get::<Rc<Self>>()
            .cloned()
            .unwrap_or_default()
    }

    /// Who called.
    pub(crate) fn instance(&self, instance: InstanceId) {
        self.instance.set(Some(instance));
    }

    /// What became of a single push.
    pub(crate) fn answered(&self, answer: &PushAnswer) {
        self.outcome.set(Some((answer.result, answer.reason)));
    }
}

/// The middleware.
pub(crate) async fn observe(
    observer: Observer,
    mut request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id = request_id(request.headers(), observer.entropy.as_ref());
    // At the highest level, so that it is there for every line that `RELAY_LOG` lets through.
    let span = error_span!("request", request_id = %id);
    let notes = Rc::new(RequestNotes::default());
    request.extensions_mut().insert(Rc::clone(&notes));
    // Callers that learn of the stop from an answer open their next connection elsewhere.
    let closes = observer.lifecycle.phase() >= Phase::Draining;
    let line = AccessLine::begin(observer, &request, notes);
    let receiver = Receiver::of(&mut request);
    async move {
        let routed = AssertUnwindSafe(async { next.call(request).await })
            .catch_unwind()
            .await;
        let answered = routed.unwrap_or_else(|_| Err(after_panic()));
        line.end(&answered);
        let answered = finish(answered, Frame { id, closes });
        match receiver {
            Some(receiver) => receiver.keep(answered),
            None => answered,
        }
    }
    .instrument(span)
    .await
}

/// The panic itself was logged by the panic hook, inside this request's span ([`crate::app::log_panics`]).
fn after_panic() -> Error {
    counter!("relay_http_panics_total").increment(1);
    ApiError::internal().closing().into()
}

/// The caller's id of a request, or a new one.
pub(crate) fn request_id(headers: &HeaderMap, entropy: &dyn Entropy) -> RequestId {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .and_then(RequestId::from_caller);
    given.unwrap_or_else(|| {
        let mut bytes = [0; 16];
        entropy.fill(&mut bytes);
        RequestId::from_random(bytes)
    })
}

/// What every answer carries.
struct Frame {
    id: RequestId,
    closes: bool,
}

impl Frame {
    fn put(&self, head: &mut ResponseHead) {
        if let Ok(value) = HeaderValue::from_str(self.id.as_str()) {
            head.headers_mut().insert(REQUEST_ID, value);
        }
        if self.closes {
            head.set_connection_type(ConnectionType::Close);
        }
    }
}

/// Puts the frame on an answer, also where the answer is still an error.
fn finish(
    answered: Result<ServiceResponse<BoxBody>, Error>,
    frame: Frame,
) -> Result<ServiceResponse<BoxBody>, Error> {
    match answered {
        Ok(mut response) => {
            frame.put(response.response_mut().head_mut());
            Ok(response)
        }
        Err(mut error) => {
            error.add_response_mapper(move |mut response: HttpResponse| {
                frame.put(response.head_mut());
                response
            });
            Err(error)
        }
    }
}

/// The line of one request. Dropped without an end, the client went away before its answer.
struct AccessLine {
    observer: Observer,
    notes: Rc<RequestNotes>,
    method: &'static str,
    route: String,
    began: Duration,
    ended: bool,
}

impl AccessLine {
    fn begin(observer: Observer, request: &ServiceRequest, notes: Rc<RequestNotes>) -> Self {
        let began = observer.clock.now().mono;
        let route = request.match_pattern().unwrap_or_else(|| NO_ROUTE.to_owned());
        Self {
            observer,
            notes,
            method: method_name(request.method()),
            route,
            began,
            ended: false,
        }
    }

    fn end(mut self, answered: &Result<ServiceResponse<BoxBody>, Error>) {
        self.ended = true;
        let (status, code) = match answered {
            Ok(response) => (
                response.status().as_u16(),
                response.response().error().and_then(code_of),
            ),
            Err(error) => (error.as_response_error().status_code().as_u16(), code_of(error)),
        };
        self.write(status, code);
    }

    fn write(&self, status: u16, code: Option<ErrorCode>) {
        let duration = self.observer.clock.now().mono.saturating_sub(self.began);
        let (result, reason) = self.notes.outcome.get().unzip();
        let reason = reason.flatten();
        // The level of a line is fixed where it stands.
        macro_rules! line {
            ($level:ident) => {
                $level!(
                    listener = self.observer.listener,
                    method = self.method,
                    route = self.route,
                    status,
                    duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
                    instance = self.notes.instance.get().map(tracing::field::display),
                    error = code.map(ErrorCode::as_str),
                    result = result.map(PushResult::as_str),
                    reason = reason.map(Reason::as_str),
                    "request answered"
                )
            };
        }
        if PROBES.contains(&self.route.as_str()) && status < 400 {
            line!(debug);
        } else {
            line!(info);
        }
        self.measure(status, duration);
    }

    fn measure(&self, status: u16, duration: Duration) {
        let (listener, method, route) = (self.observer.listener, self.method, self.route.clone());
        counter!(
            "relay_http_requests_total",
            "listener" => listener, "method" => method, "route" => route.clone(), "status" => status.to_string()
        )
        .increment(1);
        histogram!("relay_http_request_duration_seconds", "listener" => listener, "method" => method, "route" => route)
            .record(duration.as_secs_f64());
    }
}

impl Drop for AccessLine {
    fn drop(&mut self) {
        if !self.ended {
            info!(
                listener = self.observer.listener,
                method = self.method,
                route = self.route,
                "client went away"
            );
            counter!("relay_http_abandoned_total", "listener" => self.observer.listener, "route" => self.route.clone()).increment(1);
        }
    }
}

fn code_of(error: &Error) -> Option<ErrorCode> {
    error.as_error::<ApiError>().map(ApiError::code)
}

/// A closed set: the method is a label.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
