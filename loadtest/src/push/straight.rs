//! What the relay is compared with: the same push straight at the APNs simulator.

use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use http_body_util::Full;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;
use sovereign_relay_simulator::Simulators;

use super::{
    PAYLOAD_BYTES,
    targets::{DEVICES, apple_token},
};
use crate::{connections::Http2, instance, run::Call};

/// Posts to the APNs simulator as the relay would.
pub(super) struct Straight {
    connection: Http2,
    authorization: String,
    topic: String,
    body: Bytes,
}

impl Straight {
    pub(super) async fn new(simulators: &Simulators) -> anyhow::Result<Self> {
        let (key, options) = (simulators.apns.key(), simulators.apns.options());
        let header = Header {
            kid: Some(key.key_id.clone()),
            typ: None,
            ..Header::new(Algorithm::ES256)
        };
        let claims = json!({ "iss": options.team_id, "iat": instance::unix_seconds() });
        let jwt = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ec_pem(key.pem.as_bytes())?)?;
        let body = json!({
            "aps": { "mutable-content": 1, "alert": { "title": " " }, "sound": "default" },
            "encryptedPayload": "x".repeat(PAYLOAD_BYTES),
        });
        Ok(Self {
            connection: Http2::to(simulators.apns.port(), &simulators.ca_pem).await?,
            authorization: format!("bearer {jwt}"),
            topic: options.bundle_id.clone(),
            body: body.to_string().into(),
        })
    }

    async fn post(&self, number: u64) -> anyhow::Result<bool> {
        let request = Request::post(format!(
            "https://localhost/3/device/{}",
            apple_token(number % DEVICES)
        ))
        .header(AUTHORIZATION, &self.authorization)
        .header("apns-topic", &self.topic)
        .header("apns-push-type", "alert")
        .header("apns-priority", "10")
        .body(Full::new(self.body.clone()))?;
        Ok(self.connection.call(request).await?.0 == 200)
    }
}

impl Call for Straight {
    async fn call(&self, number: u64) -> bool {
        self.post(number).await.unwrap_or(false)
    }
}
