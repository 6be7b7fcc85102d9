use reqwest::StatusCode;
use serde_json::json;

use super::kit::{Host, SUBSCRIPTIONS, WEB_PUSH_KEY, browser};
use crate::{routes::RegistrationLimits, user::User};

#[actix_web::test]
async fn a_browser_subscribes_and_all_of_a_user_s_are_unsubscribed_at_once() {
    let host = Host::start().await;
    let shown =
        |subscribed| json!({ "pushEnabled": true, "subscribed": subscribed, "publicKey": WEB_PUSH_KEY });
    assert_eq!(host.get("ann", SUBSCRIPTIONS).await, shown(false));
    host.register("ann", SUBSCRIPTIONS, &browser(1)).await;
    host.register("ann", SUBSCRIPTIONS, &browser(2)).await;
    host.register("bob", SUBSCRIPTIONS, &browser(3)).await;
    assert_eq!(host.get("ann", SUBSCRIPTIONS).await, shown(true));
    for _ in 0..2 {
        assert_eq!(
            host.delete("ann", SUBSCRIPTIONS).await,
            (StatusCode::OK, json!({ "ok": true }))
        );
    }
    assert_eq!(host.get("ann", SUBSCRIPTIONS).await, shown(false));
    assert_eq!(host.get("bob", SUBSCRIPTIONS).await, shown(true));
}

#[actix_web::test]
async fn subscribing_again_moves_the_endpoint_to_the_new_user_and_keys() {
    let host = Host::start().await;
    host.register("ann", SUBSCRIPTIONS, &browser(1)).await;
    let mut again = browser(1);
    again["keys"] = browser(2)["keys"].clone();
    host.register("bob", SUBSCRIPTIONS, &again).await;
    assert_eq!(host.get("ann", SUBSCRIPTIONS).await["subscribed"], false);
    let kept = host.store.subscriptions_of(&User::new("bob")).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].endpoint.expose(), "https://push.example/send/1");
    assert_eq!(json!(kept[0].p256dh), browser(2)["keys"]["p256dh"]);
    assert_eq!(json!(kept[0].auth.expose()), browser(2)["keys"]["auth"]);
}

#[actix_web::test]
async fn keys_with_padding_are_taken_too() {
    let host = Host::start().await;
    let mut padded = browser(1);
    for key in ["p256dh", "auth"] {
        let text = padded["keys"][key].as_str().unwrap();
        padded["keys"][key] = format!("{text}{}", "=".repeat((4 - text.len() % 4) % 4)).into();
    }
    host.register("ann", SUBSCRIPTIONS, &padded).await;
}

#[actix_web::test]
async fn endpoints_that_this_server_must_not_call_are_refused() {
    let host = Host::start().await;
    for endpoint in [
        "http://push.example/1",
        "https://127.0.0.1/1",
        "https://localhost/1",
        "https://10.0.0.1/1",
        "https://[::1]/1",
        "https://169.254.169.254/latest",
        "https://user@push.example/1",
        "ftp://push.example/1",
        "https://intranet/1",
        "nothing",
        "",
    ] {
        let mut body = browser(1);
        body["endpoint"] = endpoint.into();
        let (status, answer) = host.post("ann", SUBSCRIPTIONS, &body).await;
        assert_eq!(
            (status, &answer["error"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_request")),
            "{endpoint}"
        );
    }
    assert_eq!(host.get("ann", SUBSCRIPTIONS).await["subscribed"], false);
}

#[actix_web::test]
async fn a_host_that_allows_it_takes_endpoints_of_this_machine() {
    let host = Host::start_with(|registration| {
        registration
            .with_web_push(WEB_PUSH_KEY.to_owned())
            .with_test_endpoints()
    })
    .await;
    let mut body = browser(1);
    body["endpoint"] = "http://127.0.0.1:9/send/1".into();
    host.register("ann", SUBSCRIPTIONS, &body).await;
}

#[actix_web::test]
async fn keys_that_are_none_are_refused() {
    let host = Host::start().await;
    let good = browser(1);
    let compressed = format!("Ag{}", "A".repeat(42));
    for (key, wrong) in [
        ("p256dh", compressed.as_str()),
        ("p256dh", ""),
        ("p256dh", "no base64"),
        ("p256dh", good["keys"]["auth"].as_str().unwrap()),
        ("auth", ""),
        ("auth", "AAAA"),
        ("auth", good["keys"]["p256dh"].as_str().unwrap()),
    ] {
        let mut body = good.clone();
        body["keys"][key] = wrong.into();
        let (status, answer) = host.post("ann", SUBSCRIPTIONS, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{key} {wrong}");
        assert!(answer["message"].as_str().unwrap().contains(key), "{answer}");
    }
}

#[actix_web::test]
async fn without_web_push_nothing_is_subscribed_and_the_relay_does_not_matter() {
    let host = Host::start_with(|registration| registration).await;
    let shown = json!({ "pushEnabled": false, "subscribed": false, "publicKey": null });
    assert_eq!(host.get("ann", SUBSCRIPTIONS).await, shown);
    let (status, body) = host.post("ann", SUBSCRIPTIONS, &browser(1)).await;
    assert_eq!(
        (status, &body["error"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("not_configured"))
    );
    assert_eq!(host.delete("ann", SUBSCRIPTIONS).await.0, StatusCode::OK);

    let with = Host::start().await;
    with.turn_relay(None);
    with.register("ann", SUBSCRIPTIONS, &browser(1)).await;
}

#[actix_web::test]
async fn one_browser_too_many_takes_the_place_of_the_one_unused_longest() {
    let limits = RegistrationLimits {
        subscriptions_per_user: 2,
        ..RegistrationLimits::default()
    };
    let host = Host::start_with(|registration| {
        registration
            .with_web_push(WEB_PUSH_KEY.to_owned())
            .with_limits(limits)
    })
    .await;
    for number in 1..=3 {
        host.register("ann", SUBSCRIPTIONS, &browser(number)).await;
        host.pass_seconds(10);
    }
    let kept = host.store.subscriptions_of(&User::new("ann")).await.unwrap();
    let endpoints: Vec<_> = kept.iter().map(|browser| browser.endpoint.expose()).collect();
    assert_eq!(
        endpoints,
        ["https://push.example/send/2", "https://push.example/send/3"]
    );
}
