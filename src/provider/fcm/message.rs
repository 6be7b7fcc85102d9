//! The body of `messages:send`: data only, so that app code gets it and the SDK shows nothing by itself.

use serde::Serialize;
use sovereign_relay_actors::ports::Delivery;
use sovereign_relay_protocol::{envelope, platform::Priority, redacted::Redacted};

#[derive(Serialize)]
struct Send<'a> {
    message: Message<'a>,
}

#[derive(Serialize)]
struct Message<'a> {
    token: &'a str,
    #[serde(serialize_with = "as_map")]
    data: [(&'static str, &'a str); 1],
    android: Android<'a>,
}

#[derive(Serialize)]
struct Android<'a> {
    priority: &'static str,
    ttl: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_key: Option<&'a str>,
}

/// The JSON of one push.
pub(super) fn body(delivery: &Delivery, token: &Redacted) -> Vec<u8> {
    let android = Android {
        priority: match delivery.priority {
            Priority::High => "HIGH",
            Priority::Normal => "NORMAL",
        },
        ttl: format!("{}s", delivery.ttl_seconds),
        collapse_key: delivery.collapse.as_ref().map(|tag| tag.as_str()),
    };
    let message = Message {
        token: token.expose(),
        data: envelope::fcm_data(&delivery.payload),
        android,
    };
    // Serializing strings into memory has no way to fail.
    serde_json::to_vec(&Send { message }).unwrap_or_default()
}

fn as_map<S: serde::Serializer>(pairs: &[(&str, &str); 1], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}
