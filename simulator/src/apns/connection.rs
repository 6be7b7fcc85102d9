//! Serves one APNs connection: accepts streams and answers them, all in one task.
//!
//! One task, because a wake-up across threads per notification would cost more than the notification. Streams open at
//! a time are bounded by [`HARD_STREAM_CAP`].

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use h2::{RecvStream, server::SendResponse};
use http::Request;

use crate::{
    apns::{
        Apns,
        auth::{ConnectionJwts, JwtStep, Verified},
        ledger::Admission,
        options::LimitEnforcement,
        request,
        respond::{self, Exchange},
        rules::Refusal,
        wire::{Wire, WireHandle},
    },
    net::server::{ClientStream, Connection, Serve},
    script::Asked,
    simulator::Shared,
    sync::lock,
};

/// Streams that `h2` itself lets through; the advertised limit is below and watched by the wire, which lets the
/// streams beyond it come in to be counted.
const HARD_STREAM_CAP: u32 = 10_000;
/// Room for many bodies at once, so that no notification waits for flow control.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// The reason seen from APNs on too many streams.
const TOO_MANY_STREAMS: &str = "Maximum active streams violated";

/// Accepts connections for one simulator.
pub(crate) struct ApnsService {
    pub(crate) shared: Arc<Shared<Apns>>,
}

/// What the streams of one connection share.
pub(crate) struct ConnectionContext {
    pub(crate) shared: Arc<Shared<Apns>>,
    pub(crate) connection: Connection,
    pub(crate) wire: WireHandle,
    jwts: Mutex<ConnectionJwts>,
}

impl Serve for ApnsService {
    async fn serve(self: Arc<Self>, stream: ClientStream, connection: Connection) {
        let apns = &self.shared.provider;
        let counters = Arc::clone(&apns.registry.counters);
        let (stream, wire) = Wire::new(stream, apns.options.initial_stream_limit, counters);
        let _registered = apns.registry.register(connection.number, wire.clone());
        let handshake = h2::server::Builder::new()
            .max_concurrent_streams(HARD_STREAM_CAP)
            // Resets that come before a slow machine has looked at their streams are no attack.
            .max_pending_accept_reset_streams(HARD_STREAM_CAP as usize)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake(stream);
        let context = ConnectionContext {
            shared: Arc::clone(&self.shared),
            connection,
            wire,
            jwts: Mutex::new(ConnectionJwts::default()),
        };
        match handshake.await {
            Ok(connection) => drive(connection, Arc::new(context)).await,
            Err(error) => tracing::debug!(%error, "HTTP/2 handshake failed"),
        }
    }
}

async fn drive(
    mut connection: h2::server::Connection<Wire<ClientStream>, Bytes>,
    context: Arc<ConnectionContext>,
) {
    let mut exchanges = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = exchanges.next() => {}
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => exchanges.push(serve(Arc::clone(&context), request, respond)),
                Some(Err(error)) => return tracing::debug!(%error, "APNs connection ended"),
                None => return,
            },
        }
    }
}

async fn serve(
    context: Arc<ConnectionContext>,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    if !admit(&context, &mut respond) {
        return;
    }
    let _held = context.shared.under_way.hold();
    let (parts, body) = request.into_parts();
    let asked = Asked {
        device: Some(request::token_in_path(&parts)),
        connection: Some(context.connection.number),
    };
    if context.shared.script.kills_before_reading(asked) {
        return context.connection.gate.kill();
    }
    let Some(body) = request::read_body(body).await else {
        return;
    };
    let order = context.shared.next_arrival();
    let delivery = request::read(&parts, &body, order, context.connection.number);
    let judgement = request::judge(&context, &parts, &body);
    let exchange = Exchange {
        context: &context,
        delivery,
        respond,
    };
    match judgement {
        Ok(()) => {
            let behaviour = context.shared.script.decide(asked);
            respond::carry_out(exchange, behaviour.unwrap_or_else(crate::Behaviour::accept)).await;
        }
        Err(refusal) => respond::refuse(exchange, refusal),
    }
}

/// Whether the stream is to be served; otherwise it is reset.
fn admit(context: &ConnectionContext, respond: &mut SendResponse<Bytes>) -> bool {
    let stream = respond.stream_id().as_u32();
    let beyond_limit = match context.wire.admission(stream) {
        Admission::Serve => return true,
        Admission::AfterGoaway => false,
        Admission::BeyondLimit => true,
    };
    match (beyond_limit, context.shared.provider.options.limit_enforcement) {
        (true, LimitEnforcement::CountOnly) => return true,
        (true, LimitEnforcement::GoAway) => {
            context
                .wire
                .goaway(TOO_MANY_STREAMS, Some(stream.saturating_sub(1)));
        }
        (true, LimitEnforcement::Refuse) | (false, _) => {}
    }
    respond.send_reset(h2::Reason::REFUSED_STREAM);
    false
}

impl ConnectionContext {
    pub(crate) fn step_jwt(
        &self,
        jwt: &Verified,
        now_millis: i64,
        enforce: bool,
    ) -> Result<JwtStep, Refusal> {
        lock(&self.jwts).step(jwt, now_millis, enforce)
    }

    /// A valid JWT was seen.
    pub(crate) fn authenticated(&self) {
        if lock(&self.jwts).raise_once() {
            self.wire
                .set_stream_limit(self.shared.provider.registry.raised_limit());
        }
    }

    /// An answer was sent: a refusal may cost the limit, an accepted notification brings it back.
    pub(crate) fn answered(&self, status: u16) {
        if !self.shared.provider.options.drop_limit_after_rejection {
            return;
        }
        let limit = if status == 200 {
            self.shared.provider.registry.raised_limit()
        } else {
            1
        };
        self.wire.set_stream_limit(limit);
    }
}
