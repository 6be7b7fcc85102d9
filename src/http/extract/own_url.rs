//! Where peers connect: this relay's own address, as its callers know it.
//!
//! The operator's `RELAY_PUBLIC_URL`, else what the request came in by: its `Host` (RFC 9110, 7.2), and https where a
//! proxy that the operator trusts says so. Whoever lies about these misleads nobody but itself.

use actix_web::{
    HttpRequest,
    http::header::{self, HeaderMap, HeaderName},
};
use url::Url;

use crate::http::{error::ApiError, services::Services};

/// Path of the WebSocket endpoint.
const PATH: &str = "/v1/signal";
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// `wss://relay.example/v1/signal`.
pub(crate) fn signal_url(request: &HttpRequest, services: &Services) -> Result<String, ApiError> {
    if let Some(public) = &services.signaling.public_url {
        return as_web_socket(public.clone()).ok_or_else(ApiError::internal);
    }
    let from_proxy = request
        .peer_addr()
        .is_some_and(|peer| services.proxies.contains(peer));
    let is_tls = from_proxy && says_https(request.headers());
    host(request.headers())
        .and_then(|host| seen_by(host, is_tls))
        .and_then(as_web_socket)
        .ok_or_else(|| ApiError::invalid("the Host header must name this relay, as host or host:port"))
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

/// The last entry of the last line, as for addresses: the one that the proxy itself wrote.
fn says_https(headers: &HeaderMap) -> bool {
    let line = headers.get_all(FORWARDED_PROTO).last();
    let last = line
        .and_then(|line| line.to_str().ok())
        .and_then(|line| line.rsplit(',').next());
    last.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

fn seen_by(host: &str, is_tls: bool) -> Option<Url> {
    let bare = !host.is_empty() && !host.contains(['/', '@', '?', '#', '\\']);
    let scheme = if is_tls { "https" } else { "http" };
    bare.then(|| Url::parse(&format!("{scheme}://{host}")).ok())
        .flatten()
}

fn as_web_socket(mut url: Url) -> Option<String> {
    let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
    url.set_scheme(scheme).ok()?;
    url.set_path(PATH);
    Some(url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &str, is_tls: bool) -> Option<String> {
        seen_by(host, is_tls).and_then(as_web_socket)
    }

    #[test]
    fn the_host_is_kept_with_its_port_and_the_scheme_follows_the_proxy() {
        for (host, is_tls, url) in [
            ("relay.example", true, "wss://relay.example/v1/signal"),
            ("relay.example:8443", true, "wss://relay.example:8443/v1/signal"),
            ("127.0.0.1:4002", false, "ws://127.0.0.1:4002/v1/signal"),
            ("[::1]:4002", false, "ws://[::1]:4002/v1/signal"),
        ] {
            assert_eq!(of(host, is_tls).as_deref(), Some(url));
        }
    }

    #[test]
    fn a_host_that_is_more_than_a_host_is_refused() {
        for host in [
            "",
            "a/b",
            "user@host",
            "host?x",
            "host#x",
            "a b",
            "host:port",
            "\\",
        ] {
            assert_eq!(of(host, true), None, "{host}");
        }
    }

    #[test]
    fn the_last_word_on_the_scheme_counts() {
        for (lines, https) in [
            (vec!["https"], true),
            (vec!["http, HTTPS"], true),
            (vec!["https, http"], false),
            (vec!["https", "http"], false),
            (vec![""], false),
            (vec![], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in &lines {
                headers.append(FORWARDED_PROTO, header::HeaderValue::from_str(line).unwrap());
            }
            assert_eq!(says_https(&headers), https, "{lines:?}");
        }
    }
}
