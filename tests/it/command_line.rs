//! The commands that need no running relay, and what all have in common: help, wrong usage, exit codes.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use sovereign_relay_protocol::seal::{self, DeviceKey, DevicePublicKey};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::support::{
    command::{Ended, run},
    relay::{Relay, RelayOptions},
};

/// Every command, and what its help must name beside `--help`.
const COMMANDS: [(&[&str], &[&str]); 21] = [
    (
        &[],
        &[
            "serve",
            "playground",
            "check-config",
            "healthcheck",
            "invite",
            "instances",
            "revocations",
            "keygen",
        ],
    ),
    (
        &["serve"],
        &[
            "--relay-listen",
            "--port",
            "--apns-key-file",
            "--relay-config",
            "--relay-log-format",
        ],
    ),
    (&["playground"], &["--once", "--json"]),
    (
        &["check-config"],
        &["--json", "--relay-listen", "--wns-client-secret-file"],
    ),
    (&["healthcheck"], &["--relay-listen", "--port", "--relay-config"]),
    (&["invite"], &["create", "list"]),
    (
        &["invite", "create"],
        &[
            "--ttl",
            "--json",
            "--relay-admin-listen",
            "--relay-admin-token-file",
        ],
    ),
    (&["invite", "list"], &["--json", "--relay-admin-listen"]),
    (
        &["instances"],
        &["list", "show", "suspend", "resume", "revoke", "limit"],
    ),
    (&["instances", "list"], &["--json", "--relay-data-dir"]),
    (&["instances", "show"], &["<INSTANCE>", "--json"]),
    (
        &["instances", "suspend"],
        &["<INSTANCE>", "--reason", "--for", "--json"],
    ),
    (
        &["instances", "limit"],
        &["<INSTANCE>", "<PER_MINUTE>", "default", "--json"],
    ),
    (&["instances", "resume"], &["<INSTANCE>", "--json"]),
    (&["instances", "revoke"], &["<INSTANCE>", "--json"]),
    (&["revocations"], &["export", "import"]),
    (&["keygen", "secret"], &["--json"]),
    (&["revocations", "export"], &["--output", "<FILE>"]),
    (
        &["revocations", "import"],
        &["<FILE>", "standard input", "--json"],
    ),
    (&["keygen"], &["device", "secret"]),
    (&["keygen", "device"], &["--json"]),
];

async fn bare(arguments: &[&str]) -> Ended {
    run(arguments, &[]).await
}

/// Entries of a help text that say nothing about themselves. An entry begins two or more columns in, with an
/// argument, a flag or a command; what it is stands behind it or on the next line.
fn mute_entries(help: &str) -> Vec<&str> {
    let lines: Vec<&str> = help.lines().collect();
    let says = |text: &str| text.split_whitespace().count() >= 2;
    let mut mute = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let entry = line.trim_start();
        let indent = line.len() - entry.len();
        if !(2..=6).contains(&indent) || !(entry.starts_with('-') || entry.starts_with('<')) {
            continue;
        }
        let behind = entry.split_once("  ").map_or("", |(_, behind)| behind);
        let below = lines.get(number + 1).copied().unwrap_or_default();
        let is_deeper = below.len() - below.trim_start().len() > indent;
        let explained = says(behind) || (is_deeper && says(below));
        if !explained {
            mute.push(entry);
        }
    }
    mute
}

#[test]
fn an_entry_that_says_nothing_is_found() {
    let help = "Options:\n      --mute\n      --json  Print JSON\n  -h, --help\n          Print help\n  <FILE>  One\n";
    assert_eq!(mute_entries(help), ["--mute", "<FILE>  One"]);
}

#[tokio::test]
async fn the_help_of_every_command_names_its_arguments_and_says_what_each_is() {
    for (command, names) in COMMANDS {
        let help = bare(&[command, &["--help"]].concat()).await;
        assert_eq!(help.err, "", "{command:?}");
        let help = help.done();
        for name in names.iter().copied().chain(["Usage: sovereign-relay", "--help"]) {
            assert!(help.contains(name), "{command:?} does not name {name}:\n{help}");
        }
        assert_eq!(mute_entries(&help), Vec::<&str>::new(), "{command:?}\n{help}");
    }
    let top = bare(&["--help"]).await.done();
    let listed: BTreeSet<&str> = top
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let known: BTreeSet<&str> = COMMANDS
        .iter()
        .filter_map(|(command, _)| command.first().copied())
        .collect();
    assert_eq!(listed, known, "a command without a line in this test");
    assert!(top.contains(
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the relay was not reached, 4 the relay refused"
    ));
}

#[tokio::test]
async fn wrong_usage_is_a_2_that_names_what_was_wrong_and_prints_nothing_for_scripts() {
    for (command, _) in COMMANDS {
        let wrong = bare(&[command, &["--no-such-flag"]].concat()).await;
        assert_eq!((wrong.code, &*wrong.out), (Some(2), ""), "{command:?}");
        assert!(wrong.err.contains("--no-such-flag"), "{wrong:?}");
    }
    for (arguments, names) in [
        (&["no-such-command"][..], "no-such-command"),
        (&["instances"], "Usage"),
        (&["instances", "show"], "<INSTANCE>"),
        (&["instances", "show", "not-a-uuid"], "instance id is a UUID"),
        (
            &["instances", "suspend", "6f1c2f0e-6f1c-4f0e-8f1c-6f1c2f0e6f1c"],
            "--reason",
        ),
        (&["invite", "create", "--ttl", "soon"], "30m, 24h or 7d"),
        (&["invite", "create", "--ttl", "10"], "its unit"),
        (&["invite", "create", "--ttl", "99999d"], "366d"),
        (
            &[
                "instances",
                "suspend",
                "6f1c2f0e-6f1c-4f0e-8f1c-6f1c2f0e6f1c",
                "--reason",
                "",
            ],
            "1 to 200 characters",
        ),
        (
            &[
                "instances",
                "suspend",
                "6f1c2f0e-6f1c-4f0e-8f1c-6f1c2f0e6f1c",
                "--reason",
                "x",
                "--for",
                "7",
            ],
            "its unit",
        ),
        (
            &["instances", "list", "--relay-admin-listen", "x"],
            "an address and a port",
        ),
        (&["revocations", "import"], "<FILE>"),
        (&["keygen", "horse"], "horse"),
        (&["serve", "extra"], "extra"),
    ] {
        let wrong = bare(arguments).await;
        assert_eq!((wrong.code, &*wrong.out), (Some(2), ""), "{arguments:?}");
        assert!(wrong.err.contains(names), "{arguments:?}: {wrong:?}");
    }
    let version = bare(&["--version"]).await.done();
    assert_eq!(
        version.trim(),
        format!("sovereign-relay {}", env!("CARGO_PKG_VERSION"))
    );
}

#[tokio::test]
async fn a_made_key_pair_belongs_together_and_no_two_are_alike() {
    let pair = bare(&["keygen", "device", "--json"]).await.json();
    let private = pair["devicePrivateKeyHex"].as_str().unwrap();
    let public = pair["devicePublicKeyBase64"].as_str().unwrap();
    let scalar: Vec<u8> = (0..private.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&private[at..at + 2], 16).unwrap())
        .collect();
    let key = DeviceKey::from_scalar(&scalar).unwrap();
    let public_key = DevicePublicKey::from_base64(public).unwrap();
    let fill = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
    let sealed = seal::seal(r#"{"title":"Hello"}"#, &public_key, fill).unwrap();
    assert_eq!(
        seal::open(&sealed, &key).unwrap().trim_end(),
        r#"{"title":"Hello"}"#
    );
    let plain = bare(&["keygen", "device"]).await.done();
    assert!(
        plain.starts_with("private ") && plain.contains("\npublic  "),
        "{plain}"
    );
    assert!(!plain.contains(private) && !plain.contains(public));

    let (first, second) = (
        bare(&["keygen", "secret"]).await.done(),
        bare(&["keygen", "secret", "--json"]).await.json(),
    );
    let second = second["secret"].as_str().unwrap();
    assert_ne!(first.trim(), second);
    for secret in [first.trim(), second] {
        assert_eq!(URL_SAFE_NO_PAD.decode(secret).unwrap().len(), 32);
        let environment = [("RELAY_DATA_DIR", "/tmp"), ("RELAY_ENROLLMENT_SECRET", secret)];
        let checked = run(&["check-config", "--json"], &environment).await.json();
        assert_eq!(
            checked["enrollmentSecret"],
            json!("configured"),
            "it is long enough"
        );
    }
}

/// A server that answers every request with this.
async fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn the_health_check_is_0_when_alive_1_when_answered_otherwise_and_3_when_not_answered() {
    // So that it stops for longer than the commands take that look at it.
    let options = RelayOptions::new()
        .set("RELAY_DRAIN_GRACE", "15s")
        .set("RELAY_PUSH_DEADLINE", "2s");
    let mut relay = Relay::start(options).await;
    assert_eq!(relay.cli(&["healthcheck"]).await.done(), "alive\n");
    relay.terminate();
    relay.logged("\"stopping\"").await;
    assert_eq!(
        relay.cli(&["healthcheck"]).await.done(),
        "alive\n",
        "not ready is not dead"
    );
    let address = relay.url.trim_start_matches("http://").to_owned();
    let port = address.rsplit(':').next().unwrap().to_owned();
    assert_eq!(
        run(&["healthcheck"], &[("PORT", &port)]).await.done(),
        "alive\n",
        "by PORT, at loopback"
    );
    assert_eq!(bare(&["healthcheck", "--port", &port]).await.done(), "alive\n");
    relay.kill().await;
    let gone = bare(&["healthcheck", "--relay-listen", &address]).await;
    assert!(
        gone.complaint(3)
            .starts_with(&format!("the relay was not reached at {address}: ")),
        "{gone:?}"
    );
    let ill = answering("HTTP/1.1 500 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    let ill = bare(&["healthcheck", "--relay-listen", &ill]).await;
    assert!(ill.complaint(1).starts_with("/livez answered 500"), "{ill:?}");
    let other = bare(&["healthcheck", "--relay-listen", &answering("SSH-2.0-x\r\n").await]).await;
    assert!(
        other.complaint(3).starts_with("the relay was not reached at "),
        "{other:?}"
    );
    let misspelled = run(&["healthcheck"], &[("RELAY_LISTEN", "4002")]).await;
    assert!(
        misspelled
            .complaint(1)
            .starts_with("RELAY_LISTEN (environment): "),
        "{misspelled:?}"
    );
}
