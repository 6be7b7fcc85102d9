//! The control API through `reqwest`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    control::{Control, ROUTES},
    tests::kit::{Apns, simulators},
};

struct Api {
    base: String,
    client: reqwest::Client,
}

impl Api {
    fn new(control: &Control) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            base: format!("http://127.0.0.1:{}", control.port()),
            client,
        }
    }

    async fn post(&self, path: &str, body: Value) -> (u16, String) {
        let response = self
            .client
            .post(format!("{}{path}", self.base))
            .json(&body)
            .send()
            .await
            .unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        self.client
            .get(format!("{}{path}", self.base))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }

    async fn delete(&self, path: &str) -> u16 {
        self.client
            .delete(format!("{}{path}", self.base))
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    }
}

#[tokio::test]
async fn a_whole_session_works_over_http() {
    let simulators = Arc::new(simulators().await);
    let environment = vec![("APNS_TEAM_ID".to_owned(), "T".to_owned())];
    let control = Control::start(0, Arc::clone(&simulators), environment)
        .await
        .unwrap();
    let api = Api::new(&control);
    assert_eq!(api.get("/environment").await, json!({ "APNS_TEAM_ID": "T" }));
    let (_, device) = api.post("/apns/devices", json!({})).await;
    let device: Value = serde_json::from_str(&device).unwrap();
    let token = device["device"].as_str().unwrap();
    let rule = json!({ "device": token, "times": 1,
        "behaviour": { "ending": { "kind": "answer", "status": 418, "body": "{}" } } });
    assert_eq!(api.post("/apns/script", rule).await.0, 204);
    let client = Apns::connect(&simulators, &simulators.apns).await;
    assert_eq!(client.push(token).await.unwrap().status, 418);
    assert_eq!(client.push(token).await.unwrap().status, 200);
    let inbox = api.get("/apns/inbox").await;
    assert_eq!(
        (&inbox["total"], &inbox["items"][0]["token"]),
        (&json!(1), &json!(token))
    );
    let stats = api.get("/apns/stats").await;
    assert_eq!(
        (&stats["statuses"], &stats["wire"]["limitViolations"]),
        (&json!({ "200": 1, "418": 1 }), &json!(0))
    );
    assert_eq!(api.post("/apns/stream-limit", json!({ "limit": 7 })).await.0, 204);
    client.await_limit(7).await;
    assert_eq!(
        api.post("/apns/goaway", json!({ "reason": "Shutdown" })).await.0,
        204
    );
    client.connection.await.unwrap().ok();
    assert_eq!(api.delete("/apns/inbox").await, 204);
    assert_eq!(api.get("/apns/inbox").await["total"], 0);
    control.stop().await;
}

#[tokio::test]
async fn every_provider_takes_the_common_commands() {
    let simulators = Arc::new(simulators().await);
    let control = Control::start(0, Arc::clone(&simulators), Vec::new())
        .await
        .unwrap();
    let api = Api::new(&control);
    let rule = json!({ "behaviour": { "ending": { "kind": "never" } } });
    for provider in ["apns", "apns-sandbox", "fcm", "wns"] {
        for (action, body) in [
            ("script", rule.clone()),
            ("blackhole", json!({ "open": true, "new": true })),
            ("blackhole", json!({ "open": false, "new": false })),
            ("refuse", json!({ "refuse": true })),
            ("refuse", json!({ "refuse": false })),
            ("kill", json!({})),
        ] {
            let (status, answer) = api.post(&format!("/{provider}/{action}"), body).await;
            assert_eq!(status, 204, "{provider} {action}: {answer}");
        }
        assert_eq!(api.delete(&format!("/{provider}/script")).await, 204);
        assert_eq!(api.get(&format!("/{provider}/stats")).await["requests"], 0);
    }
    for provider in ["fcm", "wns"] {
        assert_eq!(
            api.post(&format!("/{provider}/oauth-script"), rule.clone())
                .await
                .0,
            204
        );
        assert_eq!(
            api.post(&format!("/{provider}/expire-tokens"), json!({})).await.0,
            204
        );
    }
    assert_eq!(api.post("/clock", json!({ "advanceSeconds": 60 })).await.0, 204);
    control.stop().await;
}

#[tokio::test]
async fn what_it_does_not_understand_is_answered_with_a_reason() {
    let simulators = Arc::new(simulators().await);
    let control = Control::start(0, simulators, Vec::new()).await.unwrap();
    let api = Api::new(&control);
    assert_eq!(api.post("/apns/dance", json!({})).await.0, 404);
    let (status, answer) = api.post("/apns/script", json!({ "behavior": {} })).await;
    assert_eq!(status, 400);
    assert!(answer.contains("behavior"), "{answer}");
    let foreign = api
        .client
        .get(&api.base)
        .header("host", "evil.example")
        .send()
        .await
        .unwrap();
    assert_eq!(foreign.status(), 403);
    control.stop().await;
}

#[tokio::test]
async fn a_404_names_the_routes_and_each_of_them_is_there() {
    let simulators = Arc::new(simulators().await);
    let control = Control::start(0, simulators, Vec::new()).await.unwrap();
    let api = Api::new(&control);
    let lost = api.get("/apns/nowhere").await;
    assert_eq!(lost["routes"], json!(ROUTES));
    for route in ROUTES {
        let (method, rest) = route.split_once(' ').unwrap();
        let path = rest.split([' ', ':']).next().unwrap();
        for provider in ["apns", "apns-sandbox", "fcm", "wns"] {
            let url = format!("{}{}", api.base, path.replace("{provider}", provider));
            let request = api.client.request(method.parse().unwrap(), url).body("?");
            assert_ne!(request.send().await.unwrap().status(), 404, "{route}");
        }
    }
}

#[tokio::test]
async fn what_was_frozen_thaws_by_the_same_word() {
    let simulators = Arc::new(simulators().await);
    let control = Control::start(0, Arc::clone(&simulators), Vec::new())
        .await
        .unwrap();
    let api = Api::new(&control);
    for frozen in [true, false] {
        let words = json!({ "open": frozen, "new": frozen });
        assert_eq!(api.post("/apns/blackhole", words).await.0, 204);
    }
    let client = Apns::connect(&simulators, &simulators.apns).await;
    assert_eq!(
        client.push(&simulators.apns.new_token()).await.unwrap().status,
        200
    );
}
