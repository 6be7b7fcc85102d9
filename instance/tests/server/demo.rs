use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    time::timeout,
};

use crate::kit::{DEADLINE, binary, finish, signal};

#[tokio::test]
async fn the_demo_shows_delivery_a_dead_device_a_replaced_secret_and_a_revocation() {
    let out = finish(binary(&["demo", "--once"])).await.done();
    for platform in ["ios", "android", "macos", "windows", "browser"] {
        assert!(
            out.contains(&format!(
                "{platform:<8} opened   Hello from your own server: Only your own"
            )),
            "{out}"
        );
    }
    for said in [
        "instance reports  5 sent",
        "instance reports  4 sent, 1 pruned",
        "instance reports  1 sent, 3 waiting",
        "at the relay it was ",
        "the relay has revoked this instance: nothing is sent until an admin resumes it",
        "4 of 4 steps went as they should.",
    ] {
        assert!(out.contains(said), "{said} is missing in {out}");
    }
}

#[tokio::test]
async fn the_demo_is_one_json_object_for_programs() {
    let shown = finish(binary(&["demo", "--once", "--json"])).await.json();
    assert_eq!(shown["ok"], true);
    let steps = shown["steps"].as_array().unwrap();
    let who = |step: &Value| -> Vec<String> {
        let opened = step["opened"].as_array().unwrap().iter();
        opened
            .map(|opened| opened["by"].as_str().unwrap().to_owned())
            .collect()
    };
    let opened: Vec<_> = steps.iter().map(who).collect();
    let without_the_dead_one = ["android", "macos", "windows", "browser"];
    assert_eq!(opened[0], ["ios", "android", "macos", "windows", "browser"]);
    assert_eq!(
        (&opened[1][..], &opened[2][..]),
        (&without_the_dead_one.map(str::to_owned)[..], &opened[1][..])
    );
    assert_eq!(opened[3], ["browser"]);
    assert_eq!(
        (&steps[1]["told"]["pruned"], &steps[3]["told"]["waiting"]),
        (&json!(1), &json!(3))
    );
}

#[tokio::test]
async fn a_demo_that_stays_opens_what_a_person_sends_until_ctrl_c() {
    let mut child = binary(&["demo", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || -> Value {
        let line = timeout(DEADLINE, lines.next_line())
            .await
            .expect("a line")
            .unwrap()
            .expect("it goes on");
        serde_json::from_str(&line).unwrap()
    };
    let shown = next().await;
    assert_eq!(shown["ok"], true);
    let (url, token) = (
        shown["instanceUrl"].as_str().unwrap(),
        shown["token"].as_str().unwrap(),
    );
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http
        .post(format!("{url}/api/me/notifications"))
        .bearer_auth(token);
    let told: Value = request
        .json(&json!({ "title": "Hi", "body": "by hand" }))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(told["targets"], 4);
    let mut heard = Vec::new();
    while heard.len() < 4 {
        let line = next().await;
        assert_eq!(line["read"], json!({ "title": "Hi", "body": "by hand" }));
        heard.push(line["by"].as_str().unwrap().to_owned());
    }
    heard.sort();
    assert_eq!(heard, ["android", "browser", "macos", "windows"]);
    signal(&child, "INT").await;
    let status = timeout(DEADLINE, child.wait()).await.expect("it ends").unwrap();
    assert_eq!(status.code(), Some(0));
}
