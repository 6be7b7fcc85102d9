//! FCM's routes.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header::CONTENT_TYPE, request::Parts};
use serde_json::json;

use crate::{
    behaviour::Behaviour,
    entropy::random_hex,
    fcm::{
        Fcm, FcmDelivery,
        message::{self, Message},
        oauth, verdict,
    },
    net::{
        http::{HttpService, Reply, Usual, carry_out},
        server::Connection,
    },
    script::Asked,
    simulator::Shared,
    sync::lock,
};

/// Answers for one simulator.
pub(crate) struct FcmService {
    pub(crate) shared: Arc<Shared<Fcm>>,
}

impl HttpService for FcmService {
    fn kills_before_reading(&self, head: &Parts, connection: &Connection) -> bool {
        if head.uri.path() == oauth::TOKEN_PATH {
            let script = &self.shared.provider.tokens.script;
            return script.kills_before_reading(Asked::default());
        }
        self.shared.script.kills_before_reading(Asked {
            device: None,
            connection: Some(connection.number),
        })
    }

    async fn handle(&self, head: Parts, body: Bytes, connection: &Connection) -> Reply {
        if head.uri.path() == oauth::TOKEN_PATH {
            return oauth::token(&self.shared, &head, &body, connection).await;
        }
        match project(head.uri.path()) {
            Some(project) if head.method == Method::POST => {
                let project = project.to_owned();
                self.send(&project, &head, &body, connection).await
            }
            Some(_) | None => Reply::json(StatusCode::NOT_FOUND, &json!({ "error": { "code": 404 } })),
        }
    }
}

impl FcmService {
    async fn send(&self, project: &str, head: &Parts, body: &[u8], connection: &Connection) -> Reply {
        let _held = self.shared.under_way.hold();
        let parsed = message::parse(body);
        let message = parsed.as_ref().ok();
        let delivery = self.read(project, head, body, message, connection);
        let device = delivery.token.clone();
        let judged = self.authorize(project, head);
        let judged = judged.and(parsed).and_then(|message| message::judge(&message));
        let behaviour = match judged {
            Err(refusal) => refusal,
            Ok(()) => self
                .shared
                .script
                .decide(Asked {
                    device: Some(&device),
                    connection: Some(connection.number),
                })
                .unwrap_or_else(|| self.default(&device)),
        };
        carry_out(&self.shared, connection, delivery, behaviour, usual(project)).await
    }

    /// The bearer token, then the project.
    fn authorize(&self, project: &str, head: &Parts) -> Result<(), Behaviour> {
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
            return Err(verdict::unauthenticated());
        }
        if project == self.shared.provider.options.project_id {
            Ok(())
        } else {
            Err(verdict::not_found_without_fcm_error())
        }
    }

    fn default(&self, device: &str) -> Behaviour {
        if self.shared.provider.strict && !lock(&self.shared.provider.devices).contains(device) {
            return verdict::unregistered();
        }
        Behaviour::accept()
    }

    fn read(
        &self,
        project: &str,
        head: &Parts,
        body: &[u8],
        message: Option<&Message>,
        connection: &Connection,
    ) -> FcmDelivery {
        let authorization = head
            .headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        let bearer = authorization
            .and_then(|value| value.split_once(' '))
            .map(|(_, bearer)| bearer);
        let android = message.map(|message| &message.android);
        FcmDelivery {
            order: self.shared.next_arrival(),
            connection: connection.number,
            project: project.to_owned(),
            token: message.map(Message::device).unwrap_or_default().to_owned(),
            data: message.map(|message| message.data.clone()).unwrap_or_default(),
            priority: android.and_then(|android| android.priority.clone()),
            ttl: android.and_then(|android| android.ttl.clone()),
            collapse_key: android.and_then(|android| android.collapse_key.clone()),
            bearer: bearer.unwrap_or_default().to_owned(),
            http_version: format!("{:?}", head.version),
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }
}

/// The project in `/v1/projects/{project}/messages:send`.
fn project(path: &str) -> Option<&str> {
    path.strip_prefix("/v1/projects/")?.strip_suffix("/messages:send")
}

fn usual(project: &str) -> Usual {
    let name = format!("projects/{project}/messages/0:{}", random_hex::<8>());
    let json_type = HeaderValue::from_static("application/json; charset=UTF-8");
    Usual {
        success: Response::new(json!({ "name": name }).to_string().into()),
        headers: HeaderMap::from_iter([(CONTENT_TYPE, json_type)]),
    }
}
