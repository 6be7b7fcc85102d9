//! What [`super`] asks of a push in the form of its provider.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{RequestBuilder, Response};
use sovereign_relay_actors::push::TurnKey;

use crate::provider::{
    answer::{Answer, Reading},
    http::SendError,
};

/// One push in the form of its provider.
pub(crate) trait Push: Sync {
    /// What is sent.
    fn body(&self) -> Bytes;
    /// The head of a try; access token, length and body are added to it.
    fn request(&self, over: Over) -> RequestBuilder;
    /// What an answer means.
    fn read(&self, answer: &Answer) -> Reading;
    /// Whether the provider itself gave it, by its form, whatever it means.
    fn is_own(&self, answer: &Answer) -> bool;
    /// Whose push it is.
    fn sender(&self) -> TurnKey;
    /// Whether other pushes may be on its connection at the same time.
    fn shares_its_connection(&self) -> bool {
        true
    }
    /// Whether the end of a device is believed only when a fresh connection says so too.
    fn confirms_an_end(&self) -> bool {
        false
    }
    /// Told of each try.
    fn tried(&self, _tried: &Tried<'_>) {}
    /// Whether failures of this push say something of the provider, and not only of whom its caller named.
    fn speaks(&self) -> bool {
        true
    }
}

/// What a request goes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// Whatever the HTTP client has.
    AnyConnection,
    /// A connection that nothing was sent over before.
    FreshConnection,
}

/// How one try ended, in times of the monotonic clock.
pub(crate) struct Tried<'a> {
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
    /// The head of an answer, if there was one.
    pub(crate) result: Result<&'a Response, SendError>,
}
