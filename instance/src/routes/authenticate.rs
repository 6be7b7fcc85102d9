//! Who asks: the host knows, this crate doesn't.
//!
//! A host implements [`Authenticate`] over its own sessions; [`super::gate`] calls it once per request, before anything
//! of the body is read.

use actix_web::HttpRequest;
use thiserror::Error;

use crate::user::User;

/// Finds the signed-in user of a request.
///
/// # Cross-site requests
/// A browser attaches cookies to requests that pages of other sites make. The routes refuse what a browser itself calls
/// cross-site (`Sec-Fetch-Site`) unless it carries a bearer token, and they take JSON alone, which a page of another
/// origin can't send without asking first (CORS preflight). Browsers older than 2023 send no `Sec-Fetch-Site`, and pages
/// of a sibling domain count as the same site: a host that signs people in by cookie should also compare `Origin` with
/// its own, set `SameSite=Lax` or stricter, and answer no preflight of origins it doesn't know.
pub trait Authenticate: Send + Sync + 'static {
    /// The user, or why there is none. Written as `async fn` in the implementation.
    fn authenticate(&self, request: &HttpRequest) -> impl Future<Output = Result<User, AuthenticationError>>;
}

/// There is no user to go on with.
#[derive(Debug, Error)]
pub enum AuthenticationError {
    /// 401: nobody is signed in.
    #[error("nobody is signed in")]
    Unauthenticated,
    /// 503: the host can't tell right now. An app that was told 401 would sign its user out.
    #[error("the sessions can't be looked up")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}
