//! The head of one raw notification's request; the body is the payload as it came.

use reqwest::{Client, RequestBuilder, header::CONTENT_TYPE};
use sovereign_relay_actors::ports::Delivery;
use sovereign_relay_protocol::{platform::Priority, token::ChannelUri};

/// Raw, never a toast: a toast would be shown from text that Microsoft can read.
pub(super) fn build(http: &Client, channel: &ChannelUri, delivery: &Delivery) -> RequestBuilder {
    let request = http
        .post(channel.expose())
        .header(CONTENT_TYPE, "application/octet-stream")
        .header("X-WNS-Type", "wns/raw")
        .header("X-WNS-PRIORITY", priority(delivery.priority));
    if delivery.ttl_seconds == 0 {
        // Not cached means now or never, which is what a TTL of 0 asks for.
        return request.header("X-WNS-Cache-Policy", "no-cache");
    }
    request
        .header("X-WNS-Cache-Policy", "cache")
        .header("X-WNS-TTL", delivery.ttl_seconds)
}

fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::High => "1",
        Priority::Normal => "3",
    }
}
