//! Two tabs of a real Chromium connect through the relay, on the playground's page. `tests/node/browser.mjs` drives
//! them; what it can't judge from inside the browser is judged here.

use std::{path::Path, process::Stdio};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::support::{DEADLINE, log::Log, programs::browser, relay::Relay};

/// For people to look at.
const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/pictures");

struct Playground {
    page_url: String,
    log: Log,
    _process: Child,
}

impl Playground {
    /// It logs all that it can.
    async fn start() -> Self {
        let mut process = Command::new(Relay::binary())
            .env_clear()
            .env("RELAY_LOG", "trace")
            .args(["playground", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = Log::follow(process.stderr.take().unwrap());
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = timeout(DEADLINE, lines.next_line())
            .await
            .expect("it starts in time");
        let report: Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        Self {
            page_url: report["pageUrl"].as_str().unwrap().to_owned(),
            log,
            _process: process,
        }
    }
}

/// What the tabs held and sent.
async fn drive(playground: &Playground) -> Value {
    std::fs::create_dir_all(PICTURES).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/browser.mjs");
    let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/web/node_modules/playwright-core");
    assert!(
        Path::new(modules).exists(),
        "playwright-core is needed for this test: npm ci --prefix web"
    );
    let output = Command::new("node")
        .arg(script)
        .env("PAGE_URL", &playground.page_url)
        .env("CHROMIUM", browser())
        .env("PICTURES", PICTURES)
        .kill_on_drop(true)
        .output()
        .await
        .expect("Node 18 or newer is needed for this test");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        playground.log.text()
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
}

#[tokio::test]
async fn two_tabs_open_a_data_channel_while_sockets_are_cut_and_one_reloads_and_the_relay_logs_no_secret() {
    let playground = Playground::start().await;
    let seen = drive(&playground).await;
    assert!(
        texts(&seen["sealed"]).count() > 6,
        "descriptions and candidates of two page loads"
    );
    assert!(texts(&seen["sealed"]).all(|message| message.starts_with("e1.")));
    let log = playground.log.text();
    assert!(
        log.contains("/v1/signal"),
        "the relay did log what it was asked: {log}"
    );
    for list in ["secrets", "tickets", "connectionIds", "sealed"] {
        for text in texts(&seen[list]) {
            assert!(!log.contains(text), "one of the {list} is in the log");
        }
    }
}

#[tokio::test]
async fn the_page_answers_nobody_but_itself() {
    let playground = Playground::start().await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let origin = playground.page_url.trim_end_matches('/').to_owned();
    let post = |origin: &str| {
        let request = http.post(format!("{}sessions", playground.page_url));
        request.header("origin", origin).send()
    };
    let own = post(&origin).await.unwrap();
    assert_eq!(own.status(), 201);
    let session: Value = own.json().await.unwrap();
    assert!(session["tickets"]["a"].is_string() && session["tickets"]["b"].is_string());
    let end = format!(
        "{}sessions/{}/end",
        playground.page_url,
        session["sessionId"].as_str().unwrap()
    );
    let foreign = http
        .post(&end)
        .header("origin", "https://elsewhere.example")
        .send();
    assert_eq!(foreign.await.unwrap().status(), 404);
    for _again in 0..2 {
        let own = http.post(&end).header("origin", &origin).send().await.unwrap();
        assert_eq!(own.status(), 204, "it is over, also when it was before");
    }
    assert_eq!(post("https://elsewhere.example").await.unwrap().status(), 404);

    let page = http.get(&playground.page_url).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
    let rebound = http.get(&playground.page_url).header("host", "elsewhere.example");
    assert_eq!(rebound.send().await.unwrap().status(), 404);
}
