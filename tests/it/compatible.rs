//! What was written against the earlier relay goes on working: its keys, its bodies, its environment.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Method;
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tokio::net::TcpListener;

use crate::support::{
    command,
    relay::{Answer, Instance, Relay, RelayOptions, StartFailure},
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

/// The whole environment of the earlier relay, but for its port.
async fn earlier_environment() -> Vec<(String, String)> {
    let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
    let (key, apns) = (simulators.apns.key(), simulators.apns.options());
    let wns = simulators.wns.options();
    let mut account: Value = serde_json::from_str(&simulators.fcm.service_account_json()).unwrap();
    account["token_uri"] = json!("https://oauth2.googleapis.com/token");
    [
        ("RELAY_ENROLLMENT_SECRET", OLD_SECRET),
        ("APNS_KEY", &key.pem),
        ("APNS_KEY_ID", &key.key_id),
        ("APNS_TEAM_ID", &apns.team_id),
        ("APNS_BUNDLE_ID", &apns.bundle_id),
        ("APNS_BUNDLE_ID_MACOS", &apns.bundle_id_macos),
        ("APNS_USE_SANDBOX", "true"),
        ("FCM_SERVICE_ACCOUNT_JSON", &account.to_string()),
        ("WNS_PACKAGE_SID", &wns.package_sid),
        ("WNS_CLIENT_SECRET", &wns.client_secret),
        // A container sets it to its own id.
        ("HOSTNAME", "0a1b2c3d4e5f"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

#[tokio::test]
async fn the_earlier_environment_alone_switches_everything_on() {
    let environment = earlier_environment().await;
    let options = RelayOptions::new().under(environment.clone());
    let relay = Relay::start(options).await;
    let capabilities = relay.get("/v1/capabilities").await.body;
    for platform in Platform::ALL {
        assert_eq!(
            capabilities["platforms"][platform.as_str()],
            true,
            "{capabilities}"
        );
    }
    assert_eq!(relay.get("/readyz").await.status, 200);
    let rotate = relay.request(Method::POST, "/v1/keys/rotate");
    let rotated = Answer::from(rotate.bearer_auth(earlier_key(OLD_SECRET).key)).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");

    let variables = environment.iter().map(|(name, value)| (&**name, &**value));
    let variables: Vec<_> = variables
        .chain([("RELAY_DATA_DIR", "/tmp"), ("PORT", "4711")])
        .collect();
    let checked = command::run(&["check-config", "--json"], &variables).await.json();
    assert_eq!(
        (&checked["listen"], &checked["enrollment"]),
        (&json!("0.0.0.0:4711"), &json!("open"))
    );
    let ios = checked["platforms"]["ios"]["detail"].as_str().unwrap();
    assert!(ios.ends_with("default sandbox"), "{ios}");
}

/// The earlier relay's `PORT` is one on all addresses. Holding it on loopback shows where the relay would listen
/// without letting it listen there.
#[tokio::test]
async fn port_is_where_it_listens_on_all_addresses_unless_relay_listen_says_otherwise() {
    let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    let options = RelayOptions::new()
        .under(earlier_environment().await)
        .set("PORT", &port);
    let Err(StartFailure { code, log }) = Relay::try_start(options.clone().without("RELAY_LISTEN")).await
    else {
        panic!("it listens elsewhere")
    };
    assert_eq!(code, Some(1));
    assert!(
        log.contains(&format!("0.0.0.0:{port} can't be listened on")),
        "{log}"
    );
    let elsewhere = Relay::start(options).await;
    assert_eq!(elsewhere.get("/api/health").await.status, 200);
    assert!(!elsewhere.url.ends_with(&port));
}
