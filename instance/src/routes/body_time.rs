//! How long a body may take to arrive. The server's own time limit ends with the head of a request.
//!
//! Whoever sends half a body and waits holds a connection, and connections are few: without this a stranger could hold
//! all of them.

use std::{io, time::Duration};

use actix_web::{
    Error, HttpMessage as _,
    body::MessageBody,
    dev::{Payload, ServiceRequest, ServiceResponse},
    error::PayloadError,
    middleware::Next,
};
use futures_util::{StreamExt as _, stream};
use tokio::time::sleep;

/// A body has 16 KiB at most.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(10);

/// Ends the body of a request with an error when it takes longer than [`BODY_TIME`].
pub(crate) async fn limit(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let body = request.take_payload();
    request.set_payload(in_time(body));
    next.call(request).await
}

fn in_time(body: Payload) -> Payload {
    let parts = (body, Box::pin(sleep(BODY_TIME)));
    let limited = stream::unfold(parts, |(mut body, mut time)| async move {
        let chunk = tokio::select! {
            chunk = body.next() => chunk?,
            () = &mut time => Err(PayloadError::Io(io::ErrorKind::TimedOut.into())),
        };
        Some((chunk, (body, time)))
    });
    Payload::Stream {
        payload: Box::pin(limited),
    }
}

/// Whether a body ended because of this.
pub(crate) fn is_over(error: &PayloadError) -> bool {
    matches!(error, PayloadError::Io(error) if error.kind() == io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use actix_web::{
        App, HttpResponse,
        middleware::from_fn,
        test::{TestRequest, call_service, init_service},
        web::{self, Bytes},
    };
    use serde_json::Value;

    use super::*;
    use crate::routes::json_config;

    #[tokio::test(start_paused = true)]
    async fn half_a_body_is_answered_when_its_time_is_over_and_the_connection_closed() {
        let taken = web::post().to(|_: web::Json<Value>| async { HttpResponse::Ok().finish() });
        let app = App::new()
            .app_data(json_config())
            .wrap(from_fn(limit))
            .route("/", taken);
        let app = init_service(app).await;
        let request = TestRequest::post()
            .uri("/")
            .insert_header(("content-type", "application/json"))
            .to_request();
        let half = stream::iter([Ok(Bytes::from_static(b"{\"half\":"))]).chain(stream::pending());
        let body: actix_web::dev::Payload = Payload::Stream {
            payload: Box::pin(half),
        };
        let (request, _) = request.replace_payload(body);
        let mut answer = Box::pin(call_service(&app, request));
        let early = tokio::time::timeout(BODY_TIME - Duration::from_millis(1), &mut answer);
        assert!(early.await.is_err(), "not before its time is over");
        let answer = answer.await;
        assert_eq!(answer.status().as_u16(), 408);
        assert_eq!(
            answer.response().head().connection_type(),
            actix_web::http::ConnectionType::Close
        );
    }
}
