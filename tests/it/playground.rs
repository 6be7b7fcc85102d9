//! The first thing a newcomer runs.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{ChildStdout, Command},
    time::timeout,
};

use crate::support::{
    DEADLINE,
    command::{self, finish},
    relay::Relay,
};

#[tokio::test]
async fn the_playground_delivers_to_all_four_platforms_and_exits_with_0() {
    let report = command::run(&["playground", "--once", "--json"], &[])
        .await
        .json();
    assert_eq!(report["delivered"], 4);
    assert_eq!(report["devices"].as_array().unwrap().len(), 4);
    assert!(report["url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
}

async fn next_line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = timeout(DEADLINE, lines.next_line())
        .await
        .expect("a line in time");
    line.unwrap().expect("the playground goes on")
}

#[tokio::test]
async fn its_curl_lines_work_as_they_are_printed_and_what_they_send_is_opened_before_the_readers_eyes() {
    let mut playground = Command::new(Relay::binary())
        .env_clear()
        .arg("playground")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(playground.stdout.take().unwrap()).lines();
    let mut curls = Vec::new();
    while curls.len() < 7 {
        curls.extend(Some(next_line(&mut lines).await).filter(|line| line.starts_with("  curl ")));
    }
    let last = loop {
        let line = next_line(&mut lines).await;
        if line.starts_with("  ") {
            break line;
        }
    };
    assert!(
        last.starts_with("  http://127.0.0.1:"),
        "the page is what stays in sight"
    );
    let mut answers = Vec::new();
    for line in curls {
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).env("no_proxy", "*");
        answers.push(finish(shell, "").await.json());
    }
    assert_eq!(answers[0]["platforms"]["ios"], true, "capabilities");
    assert!(answers[1]["instanceKey"].is_string(), "an enrollment");
    for answer in &answers[2..6] {
        assert_eq!(answer["result"], "sent");
    }
    assert!(answers[6]["tickets"]["a"].is_string(), "a session");
    let mut opened: Vec<Value> = Vec::new();
    while opened.len() < 4 {
        let line = next_line(&mut lines).await;
        if let Some((platform, text)) = line.split_once(" device opened ") {
            let notification: Value = serde_json::from_str(text).unwrap();
            assert_eq!(notification["body"], format!("from curl to {platform}"));
            opened.push(json!(platform));
        }
    }
    let pid = playground.id().unwrap().to_string();
    let interrupted = Command::new("kill").args(["-INT", &pid]).status().await.unwrap();
    assert!(interrupted.success());
    let status = timeout(DEADLINE, playground.wait())
        .await
        .expect("Ctrl-C ends it")
        .unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn commands_whose_output_nobody_reads_end_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let environment = [("RELAY_DATA_DIR", directory.path().to_str().unwrap())];
    let commands: [&[&str]; 7] = [
        &["playground"],
        &["playground", "--once"],
        &["playground", "--once", "--json"],
        &["check-config"],
        &["check-config", "--json"],
        &["keygen", "device"],
        &["--help"],
    ];
    for arguments in commands {
        let ended = command::run_unread(arguments, &environment).await;
        assert_eq!(ended, (Some(0), String::new()), "{arguments:?}");
    }
}
