//! A process that enqueues is killed, again and again; whatever it had acknowledged is there, and nothing by halves.
//!
//! The test starts itself as a child ([`PLACE`] in the environment says so), reads what the child acknowledges, kills it
//! with SIGKILL after a number of lines, opens the store and checks every line.

use std::{
    collections::HashMap,
    env,
    io::{BufRead, BufReader, Write as _},
    process::{Command, Stdio},
};

use uuid::Uuid;

use crate::{
    entropy,
    store::{
        Device, Store,
        testing::{new_device, registered, waiting},
    },
    user::User,
};

const TEST: &str = "store::tests::crash::what_was_enqueued_is_sent_after_kill_9_at_any_moment";
const PLACE: &str = "SOVEREIGN_INSTANCE_CRASH_TEST_PLACE";
/// Lines after which the child is killed.
const KILLED_AFTER: [usize; 6] = [0, 1, 2, 5, 20, 60];
/// Of each fan-out: more than one statement writes.
const DEVICES: usize = 1200;
const SAID: &str = "enqueued ";

#[tokio::test]
async fn what_was_enqueued_is_sent_after_kill_9_at_any_moment() {
    if let Ok(url) = env::var(PLACE) {
        enqueue_until_killed(&url).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("push.db").display());
    let mut acknowledged = Vec::new();
    for lines in KILLED_AFTER {
        acknowledged.extend(lines_of_killed_child(&url, lines));
        let rows = rows_of_each_notification(&url).await;
        for notification in &acknowledged {
            assert!(rows.contains_key(notification), "{notification} was acknowledged");
        }
        assert!(
            rows.values().all(|rows| *rows == DEVICES as i64),
            "as a whole or not at all"
        );
    }
    assert!(acknowledged.len() >= KILLED_AFTER.iter().sum::<usize>());
}

async fn enqueue_until_killed(url: &str) -> ! {
    let store = Store::connect(url).await.unwrap();
    let device = registered(&store, &new_device(&User::new("ann"), "token"), 50).await;
    loop {
        let notification = entropy::uuid();
        store
            .enqueue_up_to(u64::MAX, &fan_out(&device, notification))
            .await
            .unwrap();
        println!("{SAID}{notification}");
        std::io::stdout().flush().unwrap();
    }
}

fn fan_out(device: &Device, notification_id: Uuid) -> Vec<crate::store::OutboxRow> {
    let row = |_| crate::store::OutboxRow {
        notification_id,
        ..waiting(device, 100)
    };
    (0..DEVICES).map(row).collect()
}

async fn rows_of_each_notification(url: &str) -> HashMap<Uuid, i64> {
    let store = Store::connect(url).await.unwrap();
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT notification_id, COUNT(*) FROM push_outbox GROUP BY notification_id")
            .fetch_all(&store.pool)
            .await
            .unwrap();
    store.close().await;
    rows.into_iter()
        .map(|(id, rows)| (id.parse().unwrap(), rows))
        .collect()
}

fn lines_of_killed_child(url: &str, lines: usize) -> Vec<Uuid> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(PLACE, url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    while said.len() < lines {
        said.extend(acknowledgement(
            &next_line(&mut output).expect("the child goes on until it is killed"),
        ));
    }
    child.kill().unwrap();
    said.extend(std::iter::from_fn(|| next_line(&mut output)).filter_map(|line| acknowledgement(&line)));
    assert!(!child.wait().unwrap().success());
    said
}

/// A whole line; what the kill has cut off was not said.
fn next_line(output: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.ends_with('\n').then(|| line.trim_end().to_owned())
}

fn acknowledgement(line: &str) -> Option<Uuid> {
    // The first one shares its line with the name that the harness prints.
    let (_, id) = line.split_once(SAID)?;
    Some(id.parse().unwrap())
}
