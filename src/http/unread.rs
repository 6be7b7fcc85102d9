//! The receiving end of a chunked body, kept until its answer has been sent.
//!
//! The server below reads a chunked body that nobody wants to its end, however long that takes, to use the
//! connection again: a client that never ends its body would hold a connection for as long as it likes. While there
//! is a receiver, the server instead closes the connection after the answer, as it does with a body of a declared
//! length (actix-http, `should_close_for_unread_payload`).
//!
//! Called by [`super::context`] around every request. A body that was read whole is over, and keeping its receiver
//! changes nothing.

use std::{
    cell::RefCell,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_web::{
    Error, HttpMessage, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    error::PayloadError,
    http::header,
    web::Bytes,
};
use futures_util::Stream;

/// The receiver, shared between the handler and the answer.
#[derive(Clone)]
pub(crate) struct Receiver(Rc<RefCell<Payload>>);

impl Receiver {
    /// Of a request with a chunked body.
    pub(crate) fn of(request: &mut ServiceRequest) -> Option<Self> {
        if !request.headers().contains_key(header::TRANSFER_ENCODING) {
            return None;
        }
        let receiver = Self(Rc::new(RefCell::new(request.take_payload())));
        request.set_payload(Payload::Stream {
            payload: Box::pin(receiver.clone()),
        });
        Some(receiver)
    }

    /// Kept by the answer until it has been sent.
    pub(crate) fn keep(
        self,
        answered: Result<ServiceResponse<BoxBody>, Error>,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        match answered {
            Ok(response) => Ok(response.map_body(|_, body| self.with(body))),
            Err(mut error) => {
                error.add_response_mapper(move |response: HttpResponse| {
                    response.map_body(|_, body| self.clone().with(body))
                });
                Err(error)
            }
        }
    }

    fn with(self, body: BoxBody) -> BoxBody {
        BoxBody::new(Keeping {
            body,
            _receiver: self,
        })
    }
}

impl Stream for Receiver {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

/// A body with a receiver beside it.
struct Keeping {
    body: BoxBody,
    _receiver: Receiver,
}

impl MessageBody for Keeping {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
