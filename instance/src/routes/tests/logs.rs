use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use super::kit::{DEVICES, Host, SUBSCRIPTIONS, WEB_PUSH_KEY, browser, iphone, public_key};
use crate::routes::RegistrationLimits;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[actix_web::test]
async fn neither_tokens_nor_keys_nor_endpoints_are_logged_at_any_level() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(lines.clone());
    subscriber.try_init().unwrap();
    let limits = RegistrationLimits {
        devices_per_user: 1,
        subscriptions_per_user: 1,
    };
    let host = Host::start_with(|registration| {
        registration
            .with_web_push(WEB_PUSH_KEY.to_owned())
            .with_limits(limits)
    })
    .await;
    let mut unreadable = iphone(3);
    unreadable["deviceToken"] = "no-token-of-apple".into();
    let secrets = [iphone(1), iphone(2), unreadable, browser(1), browser(2)];
    for body in &secrets {
        let path = if body["endpoint"].is_string() {
            SUBSCRIPTIONS
        } else {
            DEVICES
        };
        host.post("ann", path, body).await;
        host.pass_seconds(1);
    }
    host.store.close().await;
    let late = json!({ "platform": "android", "deviceToken": "late-token", "publicKey": public_key(4) });
    host.post("ann", DEVICES, &late).await;

    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    for said in ["too many devices", "too many browsers", "a request failed"] {
        assert!(log.contains(said), "{log}");
    }
    let words = ["ios", "android"];
    for secret in secrets
        .iter()
        .chain([&late])
        .flat_map(texts)
        .filter(|text| !words.contains(&text.as_str()))
    {
        assert!(!log.contains(&secret), "{secret} in {log}");
    }
}
