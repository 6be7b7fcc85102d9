//! How a signaling connection ends (RFC 6455, 7.4): 44xx is final, 45xx and the retryable 1xxx mean "resume with
//! the same ticket".

/// A close code that either side sends or sees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u16)]
pub enum CloseCode {
    /// Done.
    Normal = 1000,
    /// The server, the page or a proxy in between goes away.
    GoingAway = 1001,
    /// The bytes are no WebSocket.
    ProtocolError = 1002,
    /// A kind of frame that is not taken: binary.
    Unsupported = 1003,
    /// Nothing was said: the connection was lost.
    Abnormal = 1006,
    /// Text that is not UTF-8.
    InvalidPayload = 1007,
    /// A frame over the limit.
    TooLarge = 1009,
    /// A fault of the relay.
    InternalError = 1011,
    /// The relay restarts: dial again at a random moment within the time of its `goaway`.
    ServiceRestart = 1012,
    /// Too busy: wait 5 s or more.
    TryAgainLater = 1013,
    /// A frame that the protocol doesn't allow here.
    Malformed = 4400,
    /// The ticket is not this relay's, or expired.
    BadTicket = 4401,
    /// The instance was revoked.
    Revoked = 4403,
    /// No such session, or not the one that the ticket or the client means.
    NoSuchSession = 4404,
    /// A newer connection has the slot.
    Replaced = 4409,
    /// The session is over.
    SessionOver = 4410,
    /// More messages than a session may carry.
    SessionTotal = 4413,
    /// A version of the protocol that this relay doesn't speak.
    Version = 4426,
    /// Too many page loads.
    Abuse = 4429,
    /// A message whose predecessor is missing.
    OutOfStep = 4500,
    /// The client doesn't read.
    SlowConsumer = 4503,
    /// No `hello` in time, or room was needed.
    NoHello = 4508,
    /// Nothing was heard for too long.
    HeartbeatsMissed = 4512,
}

/// What a client does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing: trying again would fail the same way.
    Stop,
    /// Resumes with the same ticket, after its back-off.
    Resume,
    /// Resumes at a random moment within what `goaway` said.
    ResumeWithinGoaway,
    /// Resumes after 5 s or more.
    ResumeLater,
}

impl CloseCode {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::Normal,
        Self::GoingAway,
        Self::ProtocolError,
        Self::Unsupported,
        Self::Abnormal,
        Self::InvalidPayload,
        Self::TooLarge,
        Self::InternalError,
        Self::ServiceRestart,
        Self::TryAgainLater,
        Self::Malformed,
        Self::BadTicket,
        Self::Revoked,
        Self::NoSuchSession,
        Self::Replaced,
        Self::SessionOver,
        Self::SessionTotal,
        Self::Version,
        Self::Abuse,
        Self::OutOfStep,
        Self::SlowConsumer,
        Self::NoHello,
        Self::HeartbeatsMissed,
    ];

    /// As on the wire.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// From the wire; `None` for a code that this protocol has no meaning for.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }

    /// What a client that sees this does. A code without a meaning is final in 44xx and resumed elsewhere.
    pub fn next_for(code: u16) -> Next {
        match Self::from_code(code) {
            Some(known) => known.next(),
            None if (4400..4500).contains(&code) => Next::Stop,
            None => Next::Resume,
        }
    }

    /// What a client that sees this does.
    pub const fn next(self) -> Next {
        match self {
            Self::GoingAway
            | Self::Abnormal
            | Self::InternalError
            | Self::OutOfStep
            | Self::SlowConsumer
            | Self::NoHello
            | Self::HeartbeatsMissed => Next::Resume,
            Self::ServiceRestart => Next::ResumeWithinGoaway,
            Self::TryAgainLater => Next::ResumeLater,
            Self::Normal
            | Self::ProtocolError
            | Self::Unsupported
            | Self::InvalidPayload
            | Self::TooLarge
            | Self::Malformed
            | Self::BadTicket
            | Self::Revoked
            | Self::NoSuchSession
            | Self::Replaced
            | Self::SessionOver
            | Self::SessionTotal
            | Self::Version
            | Self::Abuse => Next::Stop,
        }
    }

    /// What the close frame says, for whoever reads a trace. Of a closed set, so that nothing of a peer is in it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Normal => "done",
            Self::GoingAway => "going away",
            Self::ProtocolError => "not a WebSocket frame that is allowed here",
            Self::Unsupported => "text frames only",
            Self::Abnormal => "connection lost",
            Self::InvalidPayload => "not UTF-8",
            Self::TooLarge => "frame too large",
            Self::InternalError => "a fault of the relay",
            Self::ServiceRestart => "the relay restarts",
            Self::TryAgainLater => "try again later",
            Self::Malformed => "protocol error",
            Self::BadTicket => "bad or expired ticket",
            Self::Revoked => "instance revoked",
            Self::NoSuchSession => "no such session",
            Self::Replaced => "replaced by a newer connection",
            Self::SessionOver => "session over",
            Self::SessionTotal => "session total exceeded",
            Self::Version => "unknown version",
            Self::Abuse => "too many page loads",
            Self::OutOfStep => "out of step",
            Self::SlowConsumer => "slow consumer",
            Self::NoHello => "no hello",
            Self::HeartbeatsMissed => "heartbeats missed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_its_own_and_44xx_is_final_and_45xx_is_not() {
        for code in CloseCode::ALL {
            assert_eq!(CloseCode::from_code(code.code()), Some(code));
            // RFC 6455, 5.5: a control frame has at most 125 bytes, two of which are the code.
            assert!(code.reason().len() <= 123);
            match code.code() {
                4400..4500 => assert_eq!(code.next(), Next::Stop, "{code:?}"),
                4500..4600 => assert_eq!(code.next(), Next::Resume, "{code:?}"),
                _ => {}
            }
        }
        assert_eq!(CloseCode::next_for(4499), Next::Stop);
        assert_eq!(CloseCode::next_for(4599), Next::Resume);
        assert_eq!(CloseCode::next_for(1005), Next::Resume);
        assert_eq!(CloseCode::next_for(1013), Next::ResumeLater);
    }
}
