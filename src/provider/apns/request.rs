//! One notification as APNs wants it: path, headers, body.
//!
//! Pure. What differs from push to push is marked sensitive, which keeps it out of the connection's small
//! compression table (Apple asks that of the path and of `authorization`) and out of debug output.
//! <https://developer.apple.com/documentation/usernotifications/sending-notification-requests-to-apns>

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, Version};
use sovereign_relay_actors::ports::Delivery;
use sovereign_relay_protocol::{
    envelope::apns_body, limits::TTL_SECONDS, platform::Priority, time::UnixMillis, token::TargetToken,
};

const APNS_TOPIC: HeaderName = HeaderName::from_static("apns-topic");
const APNS_PUSH_TYPE: HeaderName = HeaderName::from_static("apns-push-type");
const APNS_PRIORITY: HeaderName = HeaderName::from_static("apns-priority");
const APNS_EXPIRATION: HeaderName = HeaderName::from_static("apns-expiration");
const APNS_COLLAPSE_ID: HeaderName = HeaderName::from_static("apns-collapse-id");
const APNS_ID: HeaderName = HeaderName::from_static("apns-id");

/// What the pushes of one platform have in common.
#[derive(Clone, Debug)]
pub(super) struct App {
    /// Bundle id.
    pub(super) topic: HeaderValue,
    /// Constant of the operator.
    pub(super) title: String,
    /// Name of the verdict scope.
    pub(super) scope: Arc<str>,
}

/// Everything but `authorization`, which is set when the request is handed to its connection.
#[derive(Clone)]
pub(super) struct ApnsRequest {
    pub(super) head: Request<()>,
    pub(super) body: Bytes,
}

/// The delivery is no APNs push. A fault of the relay: the edge checks platform and token together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotForApns;

impl ApnsRequest {
    /// Builds the request; `origin` is `https://host:port`.
    pub(super) fn new(
        delivery: &Delivery,
        app: &App,
        origin: &Origin,
        now: UnixMillis,
    ) -> Result<Self, NotForApns> {
        let TargetToken::Apple(token) = &delivery.token else {
            return Err(NotForApns);
        };
        let uri = origin.device_uri(token.expose()).ok_or(NotForApns)?;
        let mut head = Request::new(());
        *head.method_mut() = Method::POST;
        *head.version_mut() = Version::HTTP_2;
        *head.uri_mut() = uri;
        let headers = head.headers_mut();
        headers.insert(APNS_TOPIC, app.topic.clone());
        headers.insert(APNS_PUSH_TYPE, HeaderValue::from_static("alert"));
        headers.insert(APNS_PRIORITY, priority(delivery.priority));
        headers.insert(
            APNS_EXPIRATION,
            passing(&expiration(delivery.ttl_seconds, now).to_string())?,
        );
        headers.insert(
            APNS_ID,
            passing(&delivery.message_id.as_hyphenated().to_string())?,
        );
        if let Some(collapse) = &delivery.collapse {
            headers.insert(APNS_COLLAPSE_ID, passing(collapse.as_str())?);
        }
        let body = Bytes::from(apns_body(&delivery.payload, &app.title));
        Ok(Self { head, body })
    }
}

/// Scheme and authority of the endpoint.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    scheme: &'static str,
    authority: http::uri::Authority,
}

impl Origin {
    /// `None` when host and port make no authority. The default port is left out, as in every `:authority`.
    pub(super) fn new(host: &str, port: u16, tls: bool) -> Option<Self> {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let (scheme, default_port) = if tls { ("https", 443) } else { ("http", 80) };
        let authority = if port == default_port {
            host
        } else {
            format!("{host}:{port}")
        };
        Some(Self {
            scheme,
            authority: authority.parse().ok()?,
        })
    }

    fn device_uri(&self, token: &str) -> Option<Uri> {
        let path = format!("/3/device/{token}");
        Uri::builder()
            .scheme(self.scheme)
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .ok()
    }
}

fn priority(priority: Priority) -> HeaderValue {
    match priority {
        Priority::High => HeaderValue::from_static("10"),
        Priority::Normal => HeaderValue::from_static("5"),
    }
}

/// Absolute seconds, rounded up so that a second of life is still in the future; 0 means now or never.
fn expiration(ttl_seconds: u32, now: UnixMillis) -> u64 {
    if ttl_seconds == 0 {
        return 0;
    }
    now.0.div_ceil(1000) + u64::from(ttl_seconds.min(TTL_SECONDS))
}

/// A value that no other push has: never indexed.
fn passing(text: &str) -> Result<HeaderValue, NotForApns> {
    let mut value = HeaderValue::from_str(text).map_err(|_| NotForApns)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
