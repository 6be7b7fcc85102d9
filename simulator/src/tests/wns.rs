//! WNS through `reqwest`.

use serde_json::Value;

use crate::{
    Behaviour, RetryAfter, Simulators,
    tests::kit::{SOON, http, simulators},
    wns::verdict,
};

async fn ask(simulators: &Simulators, entra: bool, secret: &str) -> (u16, Value) {
    let options = simulators.wns.options();
    let (endpoint, client_id, scope) = if entra {
        (
            simulators.wns.entra_token_endpoint(),
            &options.client_id,
            "https://wns.windows.com/.default",
        )
    } else {
        (
            simulators.wns.token_endpoint(),
            &options.package_sid,
            "notify.windows.com",
        )
    };
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", client_id),
        ("client_secret", secret),
        ("scope", scope),
    ];
    let response = http(simulators).post(endpoint).form(&form).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn bearer(simulators: &Simulators) -> String {
    let (_, body) = ask(simulators, false, &simulators.wns.options().client_secret).await;
    body["access_token"].as_str().unwrap().to_owned()
}

async fn send(simulators: &Simulators, bearer: &str, channel: &str) -> reqwest::Response {
    let request = http(simulators)
        .post(channel)
        .bearer_auth(bearer)
        .header("x-wns-type", "wns/raw")
        .header("content-type", "application/octet-stream")
        .header("x-wns-cache-policy", "cache")
        .header("x-wns-ttl", "60")
        .header("x-wns-priority", "1")
        .body("sealed");
    request.send().await.unwrap()
}

fn header<'a>(response: &'a reqwest::Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn both_token_endpoints_issue_tokens_that_deliver() {
    let simulators = simulators().await;
    let secret = simulators.wns.options().client_secret.clone();
    let (_, legacy) = ask(&simulators, false, &secret).await;
    let (_, entra) = ask(&simulators, true, &secret).await;
    assert_eq!(
        (&legacy["expires_in"], &entra["expires_in"]),
        (&86_400.into(), &"86400".into())
    );
    for token in [legacy, entra] {
        let channel = simulators.wns.new_channel();
        let response = send(&simulators, token["access_token"].as_str().unwrap(), &channel).await;
        assert_eq!(
            (response.status().as_u16(), response.version()),
            (200, http::Version::HTTP_11)
        );
        assert_eq!(header(&response, "x-wns-status"), Some("received"));
        assert!(header(&response, "x-wns-msg-id").unwrap().len() <= 16);
        let delivery = simulators.wns.inbox().wait_for(1, SOON).await.unwrap().remove(0);
        assert!(channel.ends_with(&delivery.channel) && delivery.channel.contains("%2f"));
        assert_eq!(
            (delivery.ttl, delivery.priority, delivery.body.as_str()),
            (Some(60), Some(1), "sealed")
        );
        assert_eq!(delivery.cache_policy.as_deref(), Some("cache"));
        simulators.wns.inbox().clear();
    }
    assert_eq!(ask(&simulators, true, "wrong").await.0, 400);
    assert_eq!(simulators.wns.oauth_requests(), 3);
    simulators.stop().await;
}

#[tokio::test]
async fn a_stale_token_is_401_and_a_new_one_works() {
    let simulators = simulators().await;
    let (stale, channel) = (bearer(&simulators).await, simulators.wns.new_channel());
    simulators.wns.expire_tokens();
    assert_eq!(send(&simulators, &stale, &channel).await.status(), 401);
    assert_eq!(
        send(&simulators, &bearer(&simulators).await, &channel)
            .await
            .status(),
        200
    );
    simulators.stop().await;
}

#[tokio::test]
async fn errors_carry_wns_fields_unless_bare() {
    let simulators = simulators().await;
    let (bearer, channel) = (bearer(&simulators).await, simulators.wns.new_channel());
    let script = simulators.wns.script().device(&channel);
    for (behaviour, status, description) in [
        (verdict::channel_expired(), 410, Some("The channel expired")),
        (verdict::gone(), 410, None),
        (
            verdict::not_found(),
            404,
            Some("The channel URI is not valid or is not recognized by WNS"),
        ),
    ] {
        script.next(1, behaviour);
        let response = send(&simulators, &bearer, &channel).await;
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(header(&response, "x-wns-error-description"), description);
        assert!(header(&response, "x-wns-msg-id").is_some());
    }
    script.next(1, verdict::bare(404));
    let response = send(&simulators, &bearer, &channel).await;
    assert!(
        !response
            .headers()
            .keys()
            .any(|name| name.as_str().starts_with("x-wns"))
    );
    script.next(1, verdict::throttled(RetryAfter::Seconds(9)));
    assert_eq!(
        header(&send(&simulators, &bearer, &channel).await, "retry-after"),
        Some("9")
    );
    simulators.stop().await;
}

#[tokio::test]
async fn a_success_can_say_that_the_notification_was_dropped() {
    let simulators = simulators().await;
    let (bearer, channel) = (bearer(&simulators).await, simulators.wns.new_channel());
    simulators.wns.script().next(1, verdict::dropped());
    let response = send(&simulators, &bearer, &channel).await;
    assert_eq!(header(&response, "x-wns-notificationstatus"), Some("dropped"));
    assert_eq!(simulators.wns.inbox().total(), 0);
    simulators.stop().await;
}

#[tokio::test]
async fn a_redirect_names_another_place() {
    let simulators = simulators().await;
    let (bearer, channel) = (bearer(&simulators).await, simulators.wns.new_channel());
    simulators
        .wns
        .script()
        .next(1, verdict::redirect(307, "https://localhost:1/elsewhere"));
    let response = send(&simulators, &bearer, &channel).await;
    assert_eq!(
        (response.status().as_u16(), header(&response, "location")),
        (307, Some("https://localhost:1/elsewhere"))
    );
    simulators.stop().await;
}

#[tokio::test]
async fn chunked_bodies_are_refused_and_a_connection_can_be_cut() {
    let simulators = simulators().await;
    let (bearer, channel) = (bearer(&simulators).await, simulators.wns.new_channel());
    let request = http(&simulators)
        .post(&channel)
        .bearer_auth(&bearer)
        .header("transfer-encoding", "chunked");
    assert_eq!(request.body("x").send().await.unwrap().status(), 400);
    simulators
        .wns
        .script()
        .device(&channel)
        .next(5, Behaviour::kill_before_reading());
    let request = http(&simulators).post(&channel).bearer_auth(&bearer).body("x");
    assert!(request.send().await.is_err());
    simulators.stop().await;
}
