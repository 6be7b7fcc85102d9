use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use sovereign_relay_protocol::platform::Environment;

use super::kit::{DEVICES, Host, RELAY, START, iphone, public_key};
use crate::{routes::RegistrationLimits, store::testing::told, user::User};

fn ids(devices: &[Value]) -> Vec<&str> {
    devices
        .iter()
        .map(|device| device["id"].as_str().unwrap())
        .collect()
}

#[actix_web::test]
async fn a_registered_device_is_listed_without_token_and_key() {
    let host = Host::start().await;
    assert_eq!(
        host.get("ann", DEVICES).await,
        json!({ "relayEnabled": true, "devices": [] })
    );
    host.register("ann", DEVICES, &iphone(1)).await;
    let listed = host.get("ann", DEVICES).await;
    let id = listed["devices"][0]["id"].clone();
    let device = json!({ "id": id, "platform": "ios", "createdAt": START, "lastUsedAt": null });
    assert_eq!(listed, json!({ "relayEnabled": true, "devices": [device] }));
    assert_eq!(host.devices("bob").await, Vec::<Value>::new());
}

#[actix_web::test]
async fn what_was_registered_is_stored_with_the_relay_of_that_time() {
    let host = Host::start().await;
    host.register("ann", DEVICES, &iphone(1)).await;
    host.turn_relay(Some("https://other.example"));
    host.register("ann", DEVICES, &iphone(2)).await;
    let devices = host.store.devices_of(&User::new("ann")).await.unwrap();
    let kept: Vec<_> = devices
        .iter()
        .map(|device| (device.token.expose(), device.relay_url.as_str()))
        .collect();
    let (first, second) = ("01".repeat(32), "02".repeat(32));
    assert_eq!(kept.len(), 2);
    assert!(
        kept.contains(&(first.as_str(), RELAY)) && kept.contains(&(second.as_str(), "https://other.example"))
    );
}

#[actix_web::test]
async fn all_four_platforms_are_taken() {
    let host = Host::start().await;
    let channel = "https://db5.notify.windows.com/?token=AwYAAAB%2b1";
    for (platform, token) in [
        ("ios", "00ff"),
        ("macos", "11ff"),
        ("android", "c0:ABC-_d"),
        ("windows", channel),
    ] {
        let body = json!({ "platform": platform, "deviceToken": token, "publicKey": public_key(1) });
        host.register("ann", DEVICES, &body).await;
    }
    let mut platforms: Vec<_> = host
        .devices("ann")
        .await
        .iter()
        .map(|device| device["platform"].to_string())
        .collect();
    platforms.sort();
    assert_eq!(
        platforms,
        [r#""android""#, r#""ios""#, r#""macos""#, r#""windows""#]
    );
}

#[actix_web::test]
async fn registering_again_moves_the_token_to_the_new_user_and_key_and_sets_its_time() {
    let host = Host::start().await;
    host.register("ann", DEVICES, &iphone(1)).await;
    host.pass_seconds(100);
    let mut again = iphone(1);
    again["publicKey"] = public_key(9).into();
    host.register("bob", DEVICES, &again).await;
    assert_eq!(host.devices("ann").await, Vec::<Value>::new());
    let devices = host.store.devices_of(&User::new("bob")).await.unwrap();
    assert_eq!(devices.len(), 1);
    assert_eq!(
        (devices[0].created_at, devices[0].last_used_at),
        (START + 100, None)
    );
    assert_eq!(devices[0].public_key, public_key(9));
}

#[actix_web::test]
async fn two_spellings_of_an_apple_token_are_one_device() {
    let host = Host::start().await;
    for token in ["ABCDEF01", "abcdef01", "AbCdEf01"] {
        let body = json!({ "platform": "ios", "deviceToken": token, "publicKey": public_key(1) });
        host.register("ann", DEVICES, &body).await;
    }
    assert_eq!(host.devices("ann").await.len(), 1);
}

#[actix_web::test]
async fn an_apple_device_may_name_its_environment_and_nothing_but_the_two() {
    let host = Host::start().await;
    let with = |number: u8, environment: Value| {
        let mut body = iphone(number);
        body["environment"] = environment;
        body
    };
    host.register("ann", DEVICES, &iphone(1)).await;
    host.register("ann", DEVICES, &with(2, json!(null))).await;
    host.register("ann", DEVICES, &with(3, json!("sandbox"))).await;
    host.register("ann", DEVICES, &with(4, json!("production"))).await;
    let android = json!({ "platform": "android", "deviceToken": "c0:A", "publicKey": public_key(5),
        "environment": "emulator" });
    host.register("ann", DEVICES, &android).await;
    for wrong in [json!("development"), json!("Sandbox"), json!(""), json!(1)] {
        let (status, body) = host.post("ann", DEVICES, &with(6, wrong)).await;
        assert_eq!(
            (status, &body["error"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_request"))
        );
    }
    let mut kept: Vec<_> = host
        .store
        .devices_of(&User::new("ann"))
        .await
        .unwrap()
        .into_iter()
        .map(|device| (device.token.expose()[..2].to_owned(), device.environment))
        .collect();
    kept.sort_by(|one, other| one.0.cmp(&other.0));
    let named = |token: &str, environment| (token.to_owned(), environment);
    assert_eq!(
        kept,
        [
            named("01", None),
            named("02", None),
            named("03", Some(Environment::Sandbox)),
            named("04", Some(Environment::Production)),
            named("c0", None),
        ]
    );
    let listed = host.devices("ann").await;
    assert!(listed.iter().all(|device| device.as_object().unwrap().len() == 4));
}

#[actix_web::test]
async fn a_token_longer_than_any_database_can_index_is_refused() {
    let host = Host::start().await;
    let android = |length: usize| json!({ "platform": "android", "deviceToken": "A".repeat(length), "publicKey": public_key(1) });
    host.register("ann", DEVICES, &android(2048)).await;
    let (status, body) = host.post("ann", DEVICES, &android(2049)).await;
    assert_eq!(
        (status, &body["error"]),
        (StatusCode::BAD_REQUEST, &json!("invalid_request"))
    );
}

#[actix_web::test]
async fn a_device_is_removed_by_its_user_alone() {
    let host = Host::start().await;
    host.register("ann", DEVICES, &iphone(1)).await;
    let devices = host.devices("ann").await;
    let path = format!("{DEVICES}/{}", ids(&devices)[0]);
    assert_eq!(host.delete("bob", &path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(host.devices("ann").await, devices);
    assert_eq!(
        host.delete("ann", &path).await,
        (StatusCode::OK, json!({ "ok": true }))
    );
    assert_eq!(host.delete("ann", &path).await.0, StatusCode::NOT_FOUND);
    let strangers = [
        Uuid::nil().to_string(),
        "x".to_owned(),
        "%ff".to_owned(),
        "a%2fb".to_owned(),
    ];
    for id in strangers {
        let (status, body) = host.delete("ann", &format!("{DEVICES}/{id}")).await;
        assert_eq!(
            (status, &body["error"]),
            (StatusCode::NOT_FOUND, &json!("not_found")),
            "{id}"
        );
    }
}

#[actix_web::test]
async fn without_a_relay_nothing_is_registered_and_the_rest_goes_on() {
    let host = Host::start().await;
    host.register("ann", DEVICES, &iphone(1)).await;
    host.turn_relay(None);
    let (status, body) = host.post("ann", DEVICES, &iphone(2)).await;
    assert_eq!(
        (status, &body["error"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("not_configured"))
    );
    let listed = host.get("ann", DEVICES).await;
    assert_eq!(listed["relayEnabled"], false);
    let devices = host.devices("ann").await;
    assert_eq!(devices.len(), 1);
    assert_eq!(
        host.delete("ann", &format!("{DEVICES}/{}", ids(&devices)[0]))
            .await
            .0,
        StatusCode::OK
    );
}

#[actix_web::test]
async fn one_device_too_many_takes_the_place_of_the_one_unused_longest() {
    let limits = RegistrationLimits {
        devices_per_user: 3,
        ..RegistrationLimits::default()
    };
    let host = Host::start_with(|registration| registration.with_limits(limits)).await;
    for number in 1..=3 {
        host.register("ann", DEVICES, &iphone(number)).await;
        host.pass_seconds(10);
    }
    host.register("bob", DEVICES, &iphone(10)).await;
    let ann = User::new("ann");
    let first = host.store.devices_of(&ann).await.unwrap().remove(0);
    told(&host.store, &[(first.id, first.created_at)], host.now()).await;
    host.pass_seconds(10);
    host.register("ann", DEVICES, &iphone(4)).await;
    let devices = host.store.devices_of(&ann).await.unwrap();
    let mut tokens: Vec<_> = devices
        .iter()
        .map(|device| device.token.expose()[..2].to_owned())
        .collect();
    tokens.sort();
    assert_eq!(tokens, ["01", "03", "04"]);
    host.register("ann", DEVICES, &iphone(4)).await;
    assert_eq!(host.devices("ann").await.len(), 3);
    assert_eq!(host.devices("bob").await.len(), 1);
}

#[actix_web::test]
async fn a_lowered_limit_makes_room_at_the_next_registration() {
    let host = Host::start().await;
    for number in 1..=5 {
        host.register("ann", DEVICES, &iphone(number)).await;
        host.pass_seconds(10);
    }
    let limits = RegistrationLimits {
        devices_per_user: 0,
        ..RegistrationLimits::default()
    };
    let lower = Host::beside(&host, |registration| registration.with_limits(limits));
    lower.register("ann", DEVICES, &iphone(6)).await;
    assert_eq!(lower.devices("ann").await.len(), 1);
}

#[actix_web::test]
async fn many_devices_at_once_stay_within_the_limit() {
    let limits = RegistrationLimits {
        devices_per_user: 2,
        ..RegistrationLimits::default()
    };
    let host = Host::start_with(|registration| registration.with_limits(limits)).await;
    let bodies: Vec<_> = (1..=8).map(iphone).collect();
    let posts = bodies.iter().map(|body| host.post("ann", DEVICES, body));
    for (status, body) in futures_util::future::join_all(posts).await {
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    assert_eq!(host.devices("ann").await.len(), 2);
}
