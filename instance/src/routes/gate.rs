//! What every request passes before its handler: not sent by another site's page, and by somebody who is signed in.
//!
//! It stands before the routes' own 404 and 405, too: a stranger learns nothing but 401. The body is not read until
//! after it. Invariant: a handler behind it always finds a [`User`] in the request's extensions.

use std::sync::Arc;

use actix_web::{
    Error, FromRequest, HttpMessage as _, HttpRequest, ResponseError as _,
    body::{BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{Method, header},
    middleware::Next,
};
use std::future::{Ready, ready};

use super::{authenticate::Authenticate, error::ApiError};
use crate::user::User;

/// The signed-in user, as handlers take it.
pub(crate) struct Caller(pub(crate) User);

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let user = request.extensions().get::<User>().cloned();
        ready(user.map(Self).ok_or(ApiError::Unauthorized))
    }
}

/// Lets a request through to its handler, or answers it.
pub(crate) async fn pass<A: Authenticate>(
    authenticate: Arc<A>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    match admit(&*authenticate, request.request()).await {
        Ok(user) => {
            request.extensions_mut().insert(user);
            Ok(next.call(request).await?.map_into_boxed_body())
        }
        Err(refusal) => Ok(request.into_response(refusal.error_response())),
    }
}

async fn admit(authenticate: &impl Authenticate, request: &HttpRequest) -> Result<User, ApiError> {
    if is_forged(request) {
        return Err(ApiError::CrossSite);
    }
    Ok(authenticate.authenticate(request).await?)
}

/// A change that a browser says another site's page asked for, by credentials that the browser adds by itself.
/// A bearer token is none of these: only a script that knows it can send it.
fn is_forged(request: &HttpRequest) -> bool {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let is = |name: &str, test: fn(&str) -> bool| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(test)
    };
    let cross_site = is("sec-fetch-site", |site| site == "cross-site");
    let bearer = is(header::AUTHORIZATION.as_str(), |value| {
        value
            .get(..7)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer "))
    });
    changes && cross_site && !bearer
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn request(method: Method, headers: &[(&'static str, &'static str)]) -> HttpRequest {
        let request = TestRequest::default().method(method);
        let with = headers
            .iter()
            .fold(request, |request, header| request.insert_header(*header));
        with.to_http_request()
    }

    #[test]
    fn only_a_change_from_another_site_without_a_bearer_token_is_forged() {
        let (cross, bearer) = (("sec-fetch-site", "cross-site"), ("authorization", "bearer abc"));
        assert!(is_forged(&request(Method::POST, &[cross])));
        assert!(is_forged(&request(
            Method::DELETE,
            &[cross, ("authorization", "Basic abc")]
        )));
        assert!(is_forged(&request(Method::PUT, &[cross, ("cookie", "a=b")])));
        assert!(!is_forged(&request(Method::GET, &[cross])));
        assert!(!is_forged(&request(Method::POST, &[cross, bearer])));
        for site in ["same-origin", "same-site", "none"] {
            assert!(
                !is_forged(&request(Method::POST, &[("sec-fetch-site", site)])),
                "{site}"
            );
        }
        assert!(!is_forged(&request(Method::POST, &[])));
    }
}
