//! The last answer of a connection: after one that says `connection: close`, no further request is begun.
//!
//! RFC 9112, 9.6. The HTTP server reads requests ahead and goes on with them until none is left; only while it stops
//! does it leave them. So each connection has a stop of its own, and its last answer waits until the server has seen it.
//!
//! ```text
//! Open --a last answer is there--> Answered --the server leaves what it read ahead--> Known --> the answer is sent
//! ```
//!
//! An answer that the relay itself makes the last is seen here, and so is its client's wish. One that the HTTP server makes
//! the last afterwards, since a body of declared length was not read (as with a 401), is not: what follows it is served.
//!
//! Called by [`super::server`] around every request.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    rc::Rc,
    task::Poll,
};

use actix_http::{ConnectionType, Request, ResponseHead};
use actix_service::Service;
use actix_web::{HttpResponse, body::BoxBody, dev::ServiceResponse};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Answered,
    Known,
}

/// Whether a connection ends, shared by its server and its requests.
#[derive(Clone)]
pub(super) struct Ending(Rc<Cell<Stage>>);

impl Ending {
    pub(super) fn new() -> Self {
        Self(Rc::new(Cell::new(Stage::Open)))
    }

    /// For the server: over when it must begin no further request, because of an answer or because `stops` is over.
    pub(super) async fn begins(self, stops: impl Future<Output = ()>) {
        // Nothing wakes it but the answer, which has its task polled until it is heard.
        let answered = poll_fn(|_| match self.0.get() {
            Stage::Open => Poll::Pending,
            Stage::Answered | Stage::Known => Poll::Ready(()),
        });
        tokio::select! {
            () = answered => {}
            () = stops => {}
        }
        self.0.set(Stage::Known);
    }

    /// Over when the server has heard that this answer is the last.
    async fn announce(&self) {
        if self.0.get() == Stage::Open {
            self.0.set(Stage::Answered);
        }
        poll_fn(|context| {
            if self.0.get() == Stage::Known {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// Serves a request. Its answer waits, if it is its connection's last, until the server knows that it is.
pub(super) fn serve<S>(
    request: Request,
    app: &S,
) -> impl Future<Output = Result<S::Response, S::Error>> + use<S>
where
    S: Service<Request, Response = ServiceResponse<BoxBody>, Error = HttpResponse>,
{
    let ending = request.conn_data::<Ending>().cloned();
    let asked_to_close = request.head().connection_type() == ConnectionType::Close;
    let answering = app.call(request);
    async move {
        let mut answered = answering.await;
        let head = match &mut answered {
            Ok(response) => response.response_mut().head_mut(),
            Err(response) => response.head_mut(),
        };
        if is_last(head, asked_to_close)
            && let Some(ending) = ending
        {
            ending.announce().await;
        }
        answered
    }
}

/// The server says what it makes of the request that it has read last: here it is told what this one asked for.
fn is_last(head: &mut ResponseHead, asked_to_close: bool) -> bool {
    if asked_to_close {
        head.set_connection_type(ConnectionType::Close);
    }
    head.connection_type() == ConnectionType::Close
}
