//! WNS's routes.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, request::Parts};

use crate::{
    behaviour::{Behaviour, Ending},
    entropy::random_hex,
    net::{
        http::{HttpService, Reply, Usual, carry_out},
        server::Connection,
    },
    script::Asked,
    simulator::Shared,
    sync::lock,
    wns::{Wns, WnsDelivery, oauth, rules, verdict},
};

/// Answers for one simulator.
pub(crate) struct WnsService {
    pub(crate) shared: Arc<Shared<Wns>>,
}

impl HttpService for WnsService {
    fn kills_before_reading(&self, head: &Parts, connection: &Connection) -> bool {
        if oauth::dialect(head.uri.path()).is_some() {
            let script = &self.shared.provider.tokens.script;
            return script.kills_before_reading(Asked::default());
        }
        self.shared.script.kills_before_reading(asked(head, connection))
    }

    async fn handle(&self, head: Parts, body: Bytes, connection: &Connection) -> Reply {
        if let Some(dialect) = oauth::dialect(head.uri.path()) {
            return oauth::token(&self.shared, dialect, &head, &body, connection).await;
        }
        let _held = self.shared.under_way.hold();
        let behaviour = match self.judge(&head, &body) {
            Err(refusal) => refusal,
            Ok(()) => {
                let channel = channel(&head);
                let behaviour = self.shared.script.decide(asked(&head, connection));
                behaviour.unwrap_or_else(|| self.default(channel))
            }
        };
        let usual = usual(&behaviour);
        let delivery = read(&head, &body, self.shared.next_arrival(), connection.number);
        carry_out(&self.shared, connection, delivery, behaviour, usual).await
    }
}

impl WnsService {
    fn judge(&self, head: &Parts, body: &[u8]) -> Result<(), Behaviour> {
        let authorization = head
            .headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        if !self
            .shared
            .provider
            .tokens
            .accepts(authorization, self.shared.clock.unix_millis())
        {
            return Err(verdict::unauthorized());
        }
        if channel(head).is_empty() {
            return Err(verdict::not_found());
        }
        rules::judge(&head.method, &head.headers, body)
    }

    fn default(&self, channel: &str) -> Behaviour {
        if self.shared.provider.strict && !lock(&self.shared.provider.channels).contains(channel) {
            return verdict::not_found();
        }
        Behaviour::accept()
    }
}

/// The `token` of the channel URI, percent-encoding untouched.
fn channel(head: &Parts) -> &str {
    let query = head.uri.query().unwrap_or_default();
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("token="))
        .unwrap_or_default()
}

fn asked<'a>(head: &'a Parts, connection: &Connection) -> Asked<'a> {
    Asked {
        device: Some(channel(head)),
        connection: Some(connection.number),
    }
}

fn read(head: &Parts, body: &[u8], order: u64, connection: u64) -> WnsDelivery {
    let text = |name: &str| {
        head.headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let bearer =
        text("authorization").and_then(|value| value.split_once(' ').map(|(_, bearer)| bearer.to_owned()));
    let others = head
        .headers
        .iter()
        .filter(|(name, _)| *name != http::header::AUTHORIZATION);
    WnsDelivery {
        order,
        connection,
        channel: channel(head).to_owned(),
        notification_type: text("x-wns-type").unwrap_or_default(),
        cache_policy: text("x-wns-cache-policy"),
        ttl: text("x-wns-ttl").and_then(|ttl| ttl.parse().ok()),
        priority: text("x-wns-priority").and_then(|priority| priority.parse().ok()),
        content_type: text("content-type").unwrap_or_default(),
        headers: others
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect(),
        bearer: bearer.unwrap_or_default(),
        body: String::from_utf8_lossy(body).into_owned(),
    }
}

/// The fields of WNS's own answers. Only an accepted notification has a status.
fn usual(behaviour: &Behaviour) -> Usual {
    let mut headers = HeaderMap::new();
    let mut set = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    set("x-wns-msg-id", random_hex::<8>().to_ascii_uppercase());
    set("x-wns-debug-trace", "SIMULATOR".to_owned());
    set("ms-cv", random_hex::<8>());
    if behaviour.ending == Ending::Accept {
        set("x-wns-status", "received".to_owned());
        set("x-wns-notificationstatus", "received".to_owned());
        set("x-wns-deviceconnectionstatus", "connected".to_owned());
    }
    Usual {
        success: Response::default(),
        headers,
    }
}
