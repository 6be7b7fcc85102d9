//! From the first byte of a connection to its slot: `hello`, ticket, dial. Every way to fail has its close code.

use std::sync::Arc;

use bytes::Bytes;
use sovereign_relay_actors::session::{
    link::Link,
    port::{Bind, BindRefusal, Bound, Gone},
    registry::Held,
};
use sovereign_relay_protocol::signal::{
    close::CloseCode,
    frame::{ClientFrame, FrameError, Hello},
};

use super::{
    Endpoint, Guest, Rejection,
    end::End,
    socket::{Input, Socket},
};
use crate::shutdown::Phase;

/// Waits for the first frame.
pub(super) async fn greet(socket: &mut Socket) -> Result<Hello, End> {
    loop {
        match socket.next()? {
            Some(Input::Text(text)) => {
                return match parse(&text)? {
                    ClientFrame::Hello(hello) => Ok(hello),
                    _ => Err(CloseCode::Malformed.into()),
                };
            }
            Some(Input::Ping(data)) => {
                socket.answer(&data);
                socket.write()?;
            }
            Some(Input::Pong) => {}
            Some(Input::Close) => return Err(End::ByClient),
            Some(Input::Cut) => return Err(End::Lost),
            None => {
                socket.readable().await?;
                socket.fill()?;
            }
        }
    }
}

pub(super) fn parse(text: &Bytes) -> Result<ClientFrame, CloseCode> {
    let text = std::str::from_utf8(text).map_err(|_| CloseCode::InvalidPayload)?;
    ClientFrame::parse(text).map_err(|error| match error {
        FrameError::Malformed => CloseCode::Malformed,
        FrameError::Version => CloseCode::Version,
    })
}

pub(super) fn admit(endpoint: &Endpoint, hello: &Hello, address: u64) -> Result<Guest, CloseCode> {
    if endpoint.lifecycle.phase() >= Phase::Draining {
        return Err(CloseCode::ServiceRestart);
    }
    let now = endpoint.clock.now();
    endpoint
        .guard
        .admit(&hello.ticket, &hello.connection, now)
        .map_err(|rejection| match rejection {
            Rejection::BadTicket => {
                endpoint.door.on_bad_ticket(address, now);
                CloseCode::BadTicket
            }
            Rejection::Revoked => CloseCode::Revoked,
        })
}

pub(super) async fn dial(
    endpoint: &Endpoint,
    guest: &Guest,
    hello: &Hello,
    link: &Arc<Link>,
) -> Result<(Bound, Held), CloseCode> {
    let bind = Bind {
        slot: guest.slot,
        incarnation: guest.incarnation,
        connection: guest.connection,
        attempt: hello.attempt,
        last: hello.last,
    };
    let dialed = endpoint.sessions.dial(guest.session, bind, link).await;
    dialed.map_err(|refusal| match refusal {
        BindRefusal::Gone(Gone::NoSession) | BindRefusal::BeyondSent => CloseCode::NoSuchSession,
        BindRefusal::Gone(Gone::Fenced) | BindRefusal::Replaced => CloseCode::Replaced,
        BindRefusal::Gone(Gone::Behind) => CloseCode::OutOfStep,
        BindRefusal::Gone(Gone::Unavailable(_)) | BindRefusal::TooManyResumes => CloseCode::TryAgainLater,
        BindRefusal::TooManyLoads => CloseCode::Abuse,
    })
}
