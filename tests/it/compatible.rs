//! What was written against the earlier relay goes on working: its keys, its bodies, its environment.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Method;
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::SimulatorOptions;

use crate::support::{
    relay::{Answer, Instance, Relay, RelayOptions},
    world::World,
};

const OLD_SECRET: &str = "the earlier relay's secret of forty bytes";
const NEW_SECRET: &str = "the secret after a rotation, forty bytes";

fn earlier_key(secret: &str) -> Instance {
    let id = "6f9619ff-8b86-4011-b42d-00cf4fc964ff".to_owned();
    let claims = json!({ "instanceId": id, "iat": 1_700_000_000 });
    let signer = EncodingKey::from_secret(secret.as_bytes()).unwrap();
    let key = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &signer).unwrap();
    Instance { id, key }
}

/// As the deployed runtime posts it: the key in the body, no header.
async fn push_as_deployed(relay: &Relay, mut body: Value, key: &str) -> Answer {
    body["instanceKey"] = json!(key);
    Answer::from(relay.request(Method::POST, "/v1/push").json(&body)).await
}

#[tokio::test]
async fn a_key_of_the_earlier_relay_pushes_with_the_key_in_the_body() {
    let options = RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", OLD_SECRET);
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let body = world.device(Platform::Ios).push(&json!({ "title": "Hello" }));
    let instance = earlier_key(OLD_SECRET);
    assert_eq!(
        push_as_deployed(&world.relay, body.clone(), &instance.key)
            .await
            .word(),
        "sent"
    );
    let stranger = earlier_key(NEW_SECRET);
    assert_eq!(
        push_as_deployed(&world.relay, body.clone(), &stranger.key)
            .await
            .word(),
        "unauthorized"
    );
    let mut with_both = body.clone();
    with_both["instanceKey"] = json!(instance.key);
    assert_eq!(
        world.relay.push(&instance, &with_both).await.word(),
        "sent",
        "both, and equal"
    );
    with_both["instanceKey"] = json!("another");
    assert_eq!(
        world.relay.push(&instance, &with_both).await.word(),
        "invalid_request",
        "both, and different"
    );
}

#[tokio::test]
async fn a_retired_secret_verifies_as_previous_and_signs_nothing() {
    let options = RelayOptions::new()
        .set("RELAY_ENROLLMENT_SECRET", NEW_SECRET)
        .set("RELAY_ENROLLMENT_SECRET_PREVIOUS", OLD_SECRET);
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let body = world.device(Platform::Ios).push(&json!({}));
    assert_eq!(
        push_as_deployed(&world.relay, body.clone(), &earlier_key(OLD_SECRET).key)
            .await
            .word(),
        "sent"
    );
    let fresh = world.relay.enroll().await;
    let only_old = RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", OLD_SECRET);
    let old_relay = World::start_with(SimulatorOptions::default(), only_old).await;
    assert_eq!(
        push_as_deployed(&old_relay.relay, body, &fresh.key).await.word(),
        "unauthorized"
    );
}

#[tokio::test]
async fn enrolling_needs_no_body_and_takes_what_clients_send_instead() {
    let world = World::start().await;
    let relay = &world.relay;
    let enroll = || relay.request(Method::POST, "/v1/enroll");
    let accepted = [
        enroll(),
        enroll().header("content-length", "0"),
        enroll().header("content-type", "application/json").body("{}"),
        enroll()
            .header("content-type", "application/json; charset=utf-8")
            .body(r#"{"name":"Home","unknown":1}"#),
        enroll().body(r#"{"contact":"admin@example.org"}"#),
    ];
    for request in accepted {
        let answer = Answer::from(request).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.body["instanceId"].as_str().unwrap();
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'));
        assert_eq!(answer.body["instanceKey"].as_str().unwrap().split('.').count(), 3);
    }
    let wrong = Answer::from(enroll().header("content-type", "text/plain").body("{}")).await;
    assert_eq!(
        (wrong.status.as_u16(), wrong.word()),
        (415, "unsupported_media_type")
    );
}

#[tokio::test]
async fn a_platform_without_credentials_is_off_and_the_others_are_not() {
    let without = [
        "FCM_SERVICE_ACCOUNT_JSON",
        "WNS_CLIENT_SECRET",
        "APNS_BUNDLE_ID_MACOS",
    ];
    let options = without
        .into_iter()
        .fold(RelayOptions::new(), |options, name| options.without(name));
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let instance = world.relay.enroll().await;
    for platform in Platform::ALL {
        let body = world.device(platform).push(&json!({}));
        let answer = world.relay.push(&instance, &body).await;
        let expected = if platform == Platform::Ios {
            (200, "sent")
        } else {
            (503, "platform_not_configured")
        };
        assert_eq!((answer.status.as_u16(), answer.word()), expected, "{platform:?}");
        assert!(
            !answer.headers.contains_key("retry-after"),
            "waiting does not help"
        );
    }
    let capabilities = world.relay.get("/v1/capabilities").await.body;
    let expected = json!({ "ios": true, "android": false, "macos": false, "windows": false });
    assert_eq!(capabilities["platforms"], expected);
}

#[tokio::test]
async fn a_key_is_rotated_with_a_grace_and_withdrawn_for_good() {
    let world = World::start().await;
    let relay = &world.relay;
    let old = relay.enroll().await;
    let body = world.device(Platform::Ios).push(&json!({}));
    let rotate = |key: &str, body: Value| {
        relay
            .request(Method::POST, "/v1/keys/rotate")
            .bearer_auth(key)
            .json(&body)
    };
    let rotated = Answer::from(rotate(&old.key, json!({}))).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    let new = Instance {
        id: old.id.clone(),
        key: rotated.body["instanceKey"].as_str().unwrap().to_owned(),
    };
    let again = Answer::from(rotate(&old.key, json!({}))).await;
    assert_eq!(
        again.body["instanceKey"], rotated.body["instanceKey"],
        "a lost answer may be asked for again"
    );
    assert_eq!(relay.push(&old, &body).await.word(), "sent", "within its grace");
    assert_eq!(relay.push(&new, &body).await.word(), "sent");
    let last = Answer::from(rotate(&new.key, json!({ "graceSeconds": 0 }))).await;
    let last = Instance {
        id: new.id.clone(),
        key: last.body["instanceKey"].as_str().unwrap().to_owned(),
    };
    assert_eq!(relay.push(&new, &body).await.word(), "revoked");
    assert_eq!(relay.push(&last, &body).await.word(), "sent");
    let withdrawn = relay
        .request(Method::DELETE, "/v1/enrollment")
        .bearer_auth(&last.key);
    assert_eq!(Answer::from(withdrawn).await.status, 204);
    for key in [&old, &new, &last] {
        let answer = relay.push(key, &body).await;
        assert_eq!((answer.status.as_u16(), answer.word()), (401, "revoked"));
    }
}
