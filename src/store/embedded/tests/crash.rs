//! A process that writes is killed, again and again; whatever it had acknowledged holds.
//!
//! The test starts itself as a child ([`DIRECTORY`] in the environment says so), reads what the child acknowledges,
//! kills it with SIGKILL after a number of lines, opens the store and checks every line.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use sovereign_relay_actors::now::Now;
use sovereign_relay_protocol::{
    enroll::{EnrollRequest, RotateRequest},
    redacted::Redacted,
    time::UnixMillis,
};

use super::super::{DataDir, EmbeddedStore};
use crate::{
    auth::{Authority, EnrollError, Enrollment, KeyError, RotateError, Secrets, authority::Parts},
    config::EnrollmentMode,
    entropy::SystemEntropy,
};

const TEST: &str = "store::embedded::tests::crash::what_was_acknowledged_holds_after_kill_9_at_any_moment";
const DIRECTORY: &str = "SOVEREIGN_RELAY_CRASH_TEST_DIRECTORY";
/// Lines after which the child is killed: first at its birth, then in the middle of ever more work.
const KILLED_AFTER: [usize; 12] = [0, 0, 1, 1, 2, 3, 5, 8, 20, 50, 120, 300];
const NOW: Now = Now {
    mono: Duration::ZERO,
    unix: UnixMillis(1_800_000_000_000),
};

#[test]
fn what_was_acknowledged_holds_after_kill_9_at_any_moment() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    if let Ok(directory) = env::var(DIRECTORY) {
        runtime.block_on(write_until_killed(Path::new(&directory)));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for lines in KILLED_AFTER {
        acknowledged.extend(lines_of_killed_child(directory.path(), lines));
        runtime.block_on(check(directory.path(), &acknowledged));
    }
    let of = |kind: &str| acknowledged.iter().filter(|line| line.starts_with(kind)).count();
    assert!(
        of("gone") > 50 && of("rotated") > 50 && of("used") > 50,
        "the child did its work"
    );
}

fn lines_of_killed_child(directory: &Path, lines: usize) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut read: Vec<String> = Vec::new();
    while read.iter().filter(|line| is_acknowledgement(line)).count() < lines {
        read.push(next_line(&mut output).expect("the child goes on until it is killed"));
    }
    child.kill().unwrap();
    read.extend(std::iter::from_fn(|| next_line(&mut output)));
    assert!(!child.wait().unwrap().success());
    read.retain(|line| is_acknowledgement(line));
    read
}

/// A whole line; what the kill has cut off was not said.
fn next_line(output: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.ends_with('\n').then(|| line.trim_end().to_owned())
}

fn is_acknowledgement(line: &str) -> bool {
    ["gone ", "rotated ", "used "]
        .iter()
        .any(|kind| line.starts_with(kind))
}

async fn authority(directory: &Path, mode: EnrollmentMode) -> Authority {
    let directory = DataDir::open(directory).unwrap();
    let secret = directory.enrollment_secret(&SystemEntropy).unwrap();
    let parts = Parts {
        store: Arc::new(EmbeddedStore::open(directory).unwrap()),
        secrets: Some(Secrets::new(secret, Vec::new()).unwrap()),
        mode,
        entropy: Arc::new(SystemEntropy),
    };
    Authority::open(parts).await.unwrap()
}

fn enrollment(invite: Redacted) -> Enrollment {
    Enrollment {
        request: EnrollRequest::default(),
        invite: Some(invite),
        address: [127, 0, 0, 1].into(),
    }
}

async fn write_until_killed(directory: &Path) {
    let authority = authority(directory, EnrollmentMode::Invite).await;
    loop {
        join_all((0..8).map(|number| one_life(&authority, number))).await;
    }
}

/// Invite, enrollment, rotation, and an end: each told when it is acknowledged.
async fn one_life(authority: &Authority, number: u8) {
    let (invite, _) = authority
        .create_invite(Duration::from_secs(60), NOW)
        .await
        .unwrap();
    let key = Redacted::new(
        authority
            .enroll(enrollment(invite.clone()), NOW)
            .await
            .unwrap()
            .instance_key,
    );
    acknowledge(&format!("used {}", invite.expose()));
    let at_once = RotateRequest {
        grace_seconds: Some(0),
    };
    let new = Redacted::new(authority.rotate(&key, at_once, NOW).await.unwrap().instance_key);
    acknowledge(&format!("rotated {} {}", key.expose(), new.expose()));
    let caller = authority.verify(&new, NOW).unwrap();
    match number % 3 {
        0 => authority.withdraw(caller, NOW).await.unwrap(),
        1 => authority.revoke(caller.instance, NOW).await.unwrap(),
        _ => return,
    }
    acknowledge(&format!("gone {}", new.expose()));
}

/// In one write, so that a line is whole or not there.
fn acknowledge(line: &str) {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("{line}\n").as_bytes()).unwrap();
    output.flush().unwrap();
}

async fn check(directory: &Path, acknowledged: &[String]) {
    let authority = authority(directory, EnrollmentMode::Invite).await;
    for line in acknowledged {
        let words: Vec<Redacted> = line.split(' ').skip(1).map(Redacted::new).collect();
        if line.starts_with("used") {
            let refused = authority.enroll(enrollment(words[0].clone()), NOW).await;
            assert!(
                matches!(refused, Err(EnrollError::InviteRefused)),
                "a used invite serves again"
            );
        } else if line.starts_with("gone") {
            assert_eq!(
                authority.verify(&words[0], NOW),
                Err(KeyError::Revoked),
                "a revoked key works again"
            );
        } else {
            assert_eq!(
                authority.verify(&words[0], NOW),
                Err(KeyError::Revoked),
                "a rotated key works again"
            );
            let again = authority.rotate(&words[0], RotateRequest::default(), NOW).await;
            let ended = matches!(&again, Err(RotateError::Key(KeyError::Revoked)));
            let same = again
                .as_ref()
                .is_ok_and(|answer| answer.instance_key == words[1].expose());
            assert!(ended || same, "the new key was lost: {again:?}");
        }
    }
}
