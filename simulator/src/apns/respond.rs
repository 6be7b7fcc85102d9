//! Carries out a behaviour on an APNs stream.

use bytes::Bytes;
use h2::{SendStream, server::SendResponse};
use http::{Response, StatusCode};

use crate::{
    apns::{ApnsDelivery, connection::ConnectionContext, options::ApnsEnvironment, rules::Refusal},
    behaviour::{Answer, Behaviour, Ending, Pace},
    entropy::random_uuid,
    net::http::chunks,
};

/// One request on its way to an answer.
pub(crate) struct Exchange<'a> {
    pub(crate) context: &'a ConnectionContext,
    pub(crate) delivery: ApnsDelivery,
    pub(crate) respond: SendResponse<Bytes>,
}

/// Answers a request that breaks a rule.
pub(crate) fn refuse(mut exchange: Exchange<'_>, refusal: Refusal) {
    let response = exchange.response(StatusCode::from_u16(refusal.status).unwrap_or_default(), false);
    exchange.note(Some(refusal.status), refusal.reason);
    let Some(response) = response.header("content-type", "application/json").body(()).ok() else {
        return;
    };
    let body = format!("{{\"reason\":\"{}\"}}", refusal.reason);
    // A stream or connection that is gone needs no answer.
    if let Ok(mut stream) = exchange.respond.send_response(response, false) {
        let _ = stream.send_data(Bytes::from(body), true);
    }
    exchange.context.answered(refusal.status);
}

/// Waits, delivers and ends as told.
pub(crate) async fn carry_out(mut exchange: Exchange<'_>, behaviour: Behaviour) {
    if behaviour.delay_ms > 0 {
        tokio::time::sleep(behaviour.delay()).await;
    }
    exchange.context.shared.script.let_go().await;
    if exchange
        .context
        .wire
        .is_after_goaway(exchange.respond.stream_id().as_u32())
    {
        return exchange.respond.send_reset(h2::Reason::REFUSED_STREAM);
    }
    if behaviour.deliver {
        exchange.context.shared.inbox.record(|| exchange.delivery.clone());
    }
    match behaviour.ending {
        Ending::Accept => exchange.accept(),
        Ending::Answer(answer) => exchange.answer(answer).await,
        Ending::Never => exchange.stay_silent().await,
        Ending::ResetStream { code } => {
            exchange.note(None, "");
            exchange.respond.send_reset(h2::Reason::from(code));
        }
        Ending::KillConnection | Ending::KillBeforeReading => {
            exchange.note(None, "");
            exchange.context.connection.gate.kill();
        }
    }
}

impl Exchange<'_> {
    fn accept(mut self) {
        self.note(Some(200), "");
        let mut response = self.response(StatusCode::OK, false);
        if self.context.shared.provider.environment == ApnsEnvironment::Sandbox {
            response = response.header("apns-unique-id", random_uuid().to_string());
        }
        if let Ok(response) = response.body(()) {
            // A stream or connection that is gone needs no answer.
            let _ = self.respond.send_response(response, true);
        }
        self.context.answered(200);
    }

    async fn answer(mut self, answer: Answer) {
        self.note(Some(answer.status), "");
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = self.response(status, answer.bare);
        for (name, value) in &answer.headers {
            response = response.header(name, value);
        }
        let response = match response.body(()) {
            Ok(response) => response,
            Err(error) => {
                tracing::error!(%error, "the script has an impossible header field");
                return self.respond.send_reset(h2::Reason::INTERNAL_ERROR);
            }
        };
        self.context.answered(answer.status);
        let empty = answer.body.is_empty();
        let Ok(mut stream) = self.respond.send_response(response, empty) else {
            return;
        };
        if !empty && send_body(&mut stream, answer).await == Ended::Cut {
            // Once round, so that the connection sends what it has before it is cut.
            tokio::task::yield_now().await;
            self.context.connection.gate.kill();
        }
    }

    /// Ends when the caller gives up.
    async fn stay_silent(mut self) {
        self.note(None, "");
        // Either outcome means that the stream is over.
        let _ = std::future::poll_fn(|context| self.respond.poll_reset(context)).await;
    }

    fn note(&self, status: Option<u16>, refusal: &str) {
        self.context
            .shared
            .note(status, refusal, || self.delivery.clone());
    }

    fn response(&self, status: StatusCode, bare: bool) -> http::response::Builder {
        let response = Response::builder().status(status);
        if bare {
            response
        } else {
            response.header("apns-id", &self.delivery.apns_id)
        }
    }
}

#[derive(PartialEq, Eq)]
enum Ended {
    Whole,
    Cut,
}

async fn send_body(stream: &mut SendStream<Bytes>, answer: Answer) -> Ended {
    let body = Bytes::from(answer.body);
    let part = |bytes: usize| body.slice(..bytes.min(body.len()));
    // A stream that is gone needs no more; that is what the ignored results would say.
    match answer.pace {
        Pace::AtOnce => {
            let _ = stream.send_data(body, true);
        }
        Pace::Slow {
            chunk_bytes,
            pause_ms,
        } => {
            for (chunk, last) in chunks(&body, chunk_bytes) {
                tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
                let _ = stream.send_data(chunk, last);
            }
        }
        Pace::CutAfter { bytes } => {
            let _ = stream.send_data(part(bytes), false);
            return Ended::Cut;
        }
        Pace::StallAfter { bytes } => {
            let _ = stream.send_data(part(bytes), false);
            let _ = std::future::poll_fn(|context| stream.poll_reset(context)).await;
        }
    }
    Ended::Whole
}
