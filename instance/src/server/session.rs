//! Who asks the reference server: a bearer token (apps, scripts), or the page's cookie.
//!
//! The cookie holds the token itself, out of reach of scripts (`HttpOnly`), and is sent to this server's own pages alone
//! (`SameSite=Strict`). Since it comes by itself, a change that relies on it must name this server's own origin.

use actix_web::{
    HttpRequest,
    http::{Method, header},
};

use super::accounts::Accounts;
use crate::{
    routes::{Authenticate, AuthenticationError},
    user::User,
};

const COOKIE: &str = "sovereign_session";
/// Signing in once a month is bearable.
const COOKIE_SECONDS: u32 = 30 * 24 * 3600;

impl Authenticate for Accounts {
    async fn authenticate(&self, request: &HttpRequest) -> Result<User, AuthenticationError> {
        let by_cookie = || cookie_of(request).filter(|_| is_own(request));
        let token = bearer(request)
            .or_else(by_cookie)
            .ok_or(AuthenticationError::Unauthenticated)?;
        let found = self.of_token(token).await;
        found
            .map_err(|error| AuthenticationError::Unavailable(Box::new(error)))?
            .ok_or(AuthenticationError::Unauthenticated)
    }
}

/// `Set-Cookie` for the page. `secure` when the page came over https. A token has no character that a cookie can't have.
pub(crate) fn set_cookie(token: &str, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}{secure}")
}

/// `Set-Cookie` that makes the browser forget.
pub(crate) fn unset_cookie() -> String {
    format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

/// Changes name where they come from: every browser sends `Origin` with them.
pub(crate) fn is_own(request: &HttpRequest) -> bool {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return true;
    }
    let text = |name| request.headers().get(name)?.to_str().ok();
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    matches!((origin, text(header::HOST)), (Some((_, own)), Some(host)) if own.eq_ignore_ascii_case(host))
}

fn cookie_of(request: &HttpRequest) -> Option<&str> {
    let texts = request
        .headers()
        .get_all(header::COOKIE)
        .filter_map(|value| value.to_str().ok());
    let mut pairs = texts
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == COOKIE).then_some(value))
}

fn bearer(request: &HttpRequest) -> Option<&str> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn own(method: Method, origin: Option<&str>) -> bool {
        let request = TestRequest::default()
            .method(method)
            .insert_header(("host", "own.example:8090"));
        let request = match origin {
            Some(origin) => request.insert_header(("origin", origin)),
            None => request,
        };
        is_own(&request.to_http_request())
    }

    #[test]
    fn a_change_by_cookie_names_this_server_s_own_origin() {
        assert!(own(Method::POST, Some("https://own.example:8090")));
        assert!(own(Method::GET, None));
        for wrong in ["https://own.example", "https://evil.example:8090", "null", ""] {
            assert!(!own(Method::POST, Some(wrong)), "{wrong}");
        }
        assert!(!own(Method::DELETE, None));
    }

    #[test]
    fn the_cookie_is_found_among_others_and_a_bearer_token_goes_first() {
        let request = TestRequest::default().insert_header(("cookie", "a=b; sovereign_session=ann.x; c"));
        assert_eq!(cookie_of(&request.to_http_request()), Some("ann.x"));
        let other = TestRequest::default().insert_header(("cookie", "xsovereign_session=ann.x"));
        assert_eq!(cookie_of(&other.to_http_request()), None);
        let both = TestRequest::default().insert_header(("authorization", "Bearer bob.y"));
        assert_eq!(bearer(&both.to_http_request()), Some("bob.y"));
        let basic = TestRequest::default().insert_header(("authorization", "Basic bob.y"));
        assert_eq!(bearer(&basic.to_http_request()), None);
    }

    #[test]
    fn the_cookie_is_for_this_server_s_own_pages_and_no_script() {
        let text = set_cookie("ann.secret", true);
        assert!(text.starts_with("sovereign_session=ann.secret; "));
        for part in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!set_cookie("ann.secret", false).contains("Secure"));
        assert!(unset_cookie().contains("=; ") && unset_cookie().contains("Max-Age=0"));
    }
}
