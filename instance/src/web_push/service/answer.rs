//! How a push service may behave instead of judging.

use actix_web::{HttpResponse, http::StatusCode, web::Bytes};
use futures_util::stream;

/// 10 GB, as an answer may announce.
const ENDLESS_BYTES: u64 = 10_000_000_000;
const CHUNK: &[u8] = &[b'x'; 64 * 1024];

/// What a push is met with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Behaviour {
    /// By the RFCs: stored, or refused.
    #[default]
    Judge,
    /// This status, whatever came.
    Status(u16),
    /// This status, with `Retry-After`.
    RetryAfter(u16, String),
    /// A redirect that keeps method and body.
    Redirect(String),
    /// No answer.
    Hang,
    /// The head of an answer, and a body that never goes on.
    HangInBody(u16),
    /// An answer of 10 GB.
    Endless(u16),
}

impl Behaviour {
    /// `None`: there is none to be had.
    pub(super) fn response(self) -> Option<HttpResponse> {
        let answer = |status| HttpResponse::build(StatusCode::from_u16(status).unwrap_or_default());
        Some(match self {
            Self::Judge | Self::Hang => return None,
            Self::Status(status) => answer(status).finish(),
            Self::RetryAfter(status, when) => answer(status).insert_header(("Retry-After", when)).finish(),
            Self::Redirect(to) => answer(307).insert_header(("Location", to)).finish(),
            Self::HangInBody(status) => {
                answer(status).streaming(stream::pending::<Result<Bytes, std::io::Error>>())
            }
            Self::Endless(status) => {
                let chunks = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(CHUNK)));
                answer(status).no_chunking(ENDLESS_BYTES).streaming(chunks)
            }
        })
    }
}
