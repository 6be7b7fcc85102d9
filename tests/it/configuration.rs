//! `check-config`: what the relay would do with the settings it is given, and why it would not start.

use serde_json::{Value, json};
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;

use crate::support::{
    command::{Ended, run},
    relay::{Relay, RelayOptions},
};

const HOME: (&str, &str) = ("RELAY_DATA_DIR", "/tmp");

async fn check(environment: &[(&str, &str)]) -> Ended {
    run(&["check-config"], &[&[HOME], environment].concat()).await
}

async fn report(arguments: &[&str], environment: &[(&str, &str)]) -> Value {
    run(
        &[&["check-config", "--json"], arguments].concat(),
        &[&[HOME], environment].concat(),
    )
    .await
    .json()
}

#[tokio::test]
async fn a_good_configuration_is_a_0_that_says_what_is_on_and_where_and_shows_no_secret() {
    let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
    let directory = TempDir::new().unwrap();
    let ca_file = simulators.write_ca(directory.path()).unwrap();
    let secret = (
        "RELAY_ENROLLMENT_SECRET",
        "MARKEDSECRETOFFORTYBYTES................",
    );
    let environment = simulators.relay_environment(&ca_file);
    let environment: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .chain([secret])
        .collect();
    let text = check(&environment).await;
    assert_eq!(text.err, "");
    let text = text.done();
    for endpoint in [
        simulators.apns.endpoint(),
        simulators.apns_sandbox.endpoint(),
        simulators.fcm.endpoint(),
    ] {
        let host = endpoint.trim_start_matches("https://");
        assert!(text.contains(host), "{host} in:\n{text}");
    }
    let checked = report(&[], &environment).await;
    for platform in ["ios", "android", "macos", "windows"] {
        assert_eq!(checked["platforms"][platform]["on"], true, "{checked}");
    }
    assert_eq!(
        (&checked["ok"], &checked["testEndpoints"]),
        (&json!(true), &json!(true))
    );
    let printed = format!("{text}{checked}");
    for mark in ["MARKED", &simulators.wns.options().client_secret, "PRIVATE KEY"] {
        assert!(!printed.contains(mark), "{mark} is printed");
    }
    for line in simulators.apns.key().pem.lines() {
        assert!(line.starts_with("--") || !printed.contains(line));
    }
}

#[tokio::test]
async fn what_is_off_says_what_it_lacks() {
    let nothing = report(&[], &[]).await;
    assert_eq!(nothing["ok"], true, "it starts without any configuration");
    for (platform, lacks) in [
        ("ios", "APNS_KEY"),
        ("macos", "APNS_KEY"),
        ("android", "FCM_SERVICE_ACCOUNT_JSON"),
        ("windows", "WNS_CLIENT_SECRET"),
    ] {
        let switch = &nothing["platforms"][platform];
        assert_eq!(switch["on"], false);
        assert!(switch["detail"].as_str().unwrap().contains(lacks), "{switch}");
    }
    let half = check(&[("WNS_CLIENT_SECRET", "MARKEDCLIENTSECRET")]).await.done();
    assert!(
        half.contains("WNS_PACKAGE_SID") && !half.contains("MARKED"),
        "{half}"
    );
    let warned = report(&[], &[("RELAY_ENROLLMENT_SECRET", "twenty bytes of text")]).await;
    assert!(
        warned["warnings"].to_string().contains("less than 32 bytes"),
        "{warned}"
    );
}

#[tokio::test]
async fn a_key_for_apples_other_environment_alone_is_off_but_for_pushes_that_name_it_and_so_the_relay_answers()
 {
    let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
    let directory = TempDir::new().unwrap();
    let ca_file = simulators.write_ca(directory.path()).unwrap();
    // The key of the sandbox, and of the others nothing.
    let environment: Vec<(String, String)> = simulators
        .relay_environment(&ca_file)
        .into_iter()
        .filter(|(name, _)| ["FCM_", "WNS_"].iter().all(|start| !name.starts_with(start)))
        .map(|(name, value)| match name.as_str() {
            "APNS_KEY" => ("APNS_SANDBOX_KEY".to_owned(), value),
            "APNS_KEY_ID" => ("APNS_SANDBOX_KEY_ID".to_owned(), value),
            _ => (name, value),
        })
        .collect();
    let borrowed: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let text = check(&borrowed).await.done();
    let checked = report(&[], &borrowed).await;
    for platform in ["ios", "macos"] {
        let switch = &checked["platforms"][platform];
        assert_eq!(
            (&switch["on"], &switch["onForEnvironment"]),
            (&json!(false), &json!("sandbox")),
            "{switch}"
        );
        let line = format!("{platform:<11} off  but for pushes that name the environment sandbox: ");
        assert!(text.contains(&line), "{text}");
    }
    let warnings = checked["warnings"].to_string();
    assert!(
        warnings.contains("APNS_USE_SANDBOX=true sends them to sandbox"),
        "{warnings}"
    );

    let relay = Relay::start(RelayOptions::new().under(environment)).await;
    let platforms = relay.get("/v1/capabilities").await.body["platforms"].clone();
    assert_eq!(platforms["ios"], false, "{platforms}");
    let ready = relay.get("/readyz").await.body;
    assert_eq!(ready, json!({ "status": "ready", "reasons": [] }));
    let instance = relay.enroll().await;
    let mut push = json!({ "deviceToken": "ab".repeat(32), "platform": "ios", "encryptedPayload": "sealed" });
    let refused = relay.push(&instance, &push).await;
    assert_eq!(refused.word(), "platform_not_configured");
    let message = refused.body["message"].to_string();
    assert!(message.contains("in this environment"), "{message}");
    push["environment"] = json!("sandbox");
    let asked = relay.push(&instance, &push).await;
    assert_eq!(asked.status, 200, "{asked:?}");
}

#[tokio::test]
async fn a_bad_value_is_a_1_and_one_line_that_names_it_without_repeating_it() {
    for (name, value) in [
        ("RELAY_LISTEN", "MARKED"),
        ("PORT", "70000"),
        ("RELAY_WORKERS", "0"),
        ("RELAY_PUBLIC_URL", "ftp://MARKED.example"),
        ("RELAY_TRUSTED_PROXIES", "10.0.0.0/99"),
        ("RELAY_ENROLLMENT", "MARKED"),
        ("RELAY_ENROLLMENT_SECRET", "MARKED"),
        ("RELAY_ENROLLMENT_SECRET_PREVIOUS", "MARKED"),
        ("APNS_USE_SANDBOX", "MARKED"),
        ("APNS_ENDPOINT", "http://MARKED.example"),
        ("FCM_ENDPOINT", "https://127.0.0.1"),
        ("FCM_SERVICE_ACCOUNT_JSON", "{\"private_key\":\"MARKED\""),
        ("RELAY_PUSHES_PER_MINUTE", "0"),
        ("RELAY_PUSH_DEADLINE", "1h"),
        ("RELAY_DRAIN_GRACE", "MARKED"),
        ("RELAY_LOG_FORMAT", "MARKED"),
        ("RELAY_EXTRA_CA_FILE", "/no/such/file"),
        ("RELAY_ADMIN_TOKEN", "MARKED"),
        ("RELAY_CONFIG", "/no/such/file"),
        ("REDIS_URL", "redis://:MARKED@127.0.0.1/MARKED"),
        ("TURN_SECRET", "MARKED"),
        ("TURN_URIS", "turn://MARKED.example"),
        ("RELAY_TURN_FOR", "MARKED"),
        ("RELAY_ALLOWED_ORIGINS", "MARKED"),
        ("RELAY_MAILBOXES", "MARKED"),
    ] {
        let refused = check(&[(name, value)]).await;
        let line = refused.complaint(1);
        let named = line.contains(name) || (name == "RELAY_CONFIG" && line.contains("configuration file"));
        assert!(named, "{name}: {line}");
        assert!(!line.contains("MARKED") && refused.out.is_empty(), "{refused:?}");
        let arguments = ["check-config", "--json"];
        let told = run(&arguments, &[HOME, (name, value)]).await;
        assert_eq!(told.code, Some(1));
        let told: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!(told["ok"], false);
        assert!(line.contains(told["error"].as_str().unwrap()), "{told}");
    }
}

#[tokio::test]
async fn a_misspelled_variable_is_warned_of_and_stops_nothing() {
    let misspelled = [("RELAY_SIGNAL_BRUST", "MARKED")];
    let text = check(&misspelled).await.done();
    let warning = "warning     RELAY_SIGNAL_BRUST (environment) is not a setting and is ignored; did you mean \
                   RELAY_SIGNAL_BURST?";
    assert!(text.contains(warning) && !text.contains("MARKED"), "{text}");
    let relay = Relay::start(RelayOptions::new().set("RELAY_SIGNAL_BRUST", "9")).await;
    let log = relay.log();
    assert!(log.contains("did you mean RELAY_SIGNAL_BURST?"), "{log}");
}

#[tokio::test]
async fn two_settings_that_exclude_each_other_are_both_named() {
    let both = [("RELAY_DRAIN_GRACE", "15s"), ("RELAY_PUSH_DEADLINE", "10s")];
    let refused = check(&both).await;
    for (name, _) in both {
        assert!(refused.complaint(1).contains(name), "{refused:?}");
    }
}

#[tokio::test]
async fn a_flag_beats_the_environment_which_beats_the_file_and_a_misspelled_key_is_told() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("relay.toml");
    std::fs::write(
        &file,
        "relay_pushes_per_minute = 100\nrelay_push_deadline = \"7s\"\n",
    )
    .unwrap();
    let in_file = ("RELAY_CONFIG", file.to_str().unwrap());
    let in_environment = ("RELAY_PUSHES_PER_MINUTE", "200");
    let limit = async |arguments: &[&str], environment: &[(&str, &str)]| {
        report(arguments, environment).await["pushesPerMinute"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(limit(&[], &[]).await, 600);
    assert_eq!(limit(&[], &[in_file]).await, 100);
    assert_eq!(limit(&[], &[in_file, in_environment]).await, 200);
    assert_eq!(
        limit(&["--relay-pushes-per-minute", "300"], &[in_file, in_environment]).await,
        300
    );
    assert_eq!(
        report(&[], &[in_file, in_environment]).await["pushDeadlineMs"],
        7000
    );
    assert_eq!(
        limit(&[], &[in_file, ("RELAY_PUSHES_PER_MINUTE", "")]).await,
        100,
        "empty is unset"
    );
    std::fs::write(&file, "relay_pushes_per_minut = 100\n").unwrap();
    let refused = check(&[in_file]).await;
    assert!(
        refused
            .complaint(1)
            .contains("did you mean `relay_pushes_per_minute`?"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_secret_may_stand_in_a_file_and_not_in_two_places() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("secret");
    let path = file.to_str().unwrap();
    let from_file = ("RELAY_ENROLLMENT_SECRET_FILE", path);
    std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let checked = report(&[], &[from_file]).await;
    assert_eq!(checked["enrollmentSecret"], "configured");
    std::fs::write(&file, "fifteen bytes..\n").unwrap();
    let short = check(&[from_file]).await;
    assert!(
        short.complaint(1).contains("RELAY_ENROLLMENT_SECRET_FILE"),
        "the newline does not count: {short:?}"
    );
    std::fs::write(&file, "\n").unwrap();
    let empty = check(&[from_file]).await;
    assert!(empty.complaint(1).contains("is empty"), "{empty:?}");
    let both = check(&[
        from_file,
        ("RELAY_ENROLLMENT_SECRET", "0123456789abcdef0123456789abcdef"),
    ])
    .await;
    assert!(both.complaint(1).contains("are both set"), "{both:?}");
    let missing = check(&[("RELAY_ENROLLMENT_SECRET_FILE", "/no/such/file")]).await;
    assert!(missing.complaint(1).contains("/no/such/file"), "{missing:?}");
}

#[tokio::test]
async fn with_redis_it_says_that_no_secret_is_made_and_where_state_is() {
    let redis = ("REDIS_URL", "redis://user:MARKED@127.0.0.1");
    let checked = check(&[redis]).await;
    let text = checked.done();
    for words in [
        "(secret not set)",
        "(token not set)",
        "in Redis",
        "RELAY_ENROLLMENT_SECRET is not set",
    ] {
        assert!(text.contains(words), "{words} in:\n{text}");
    }
    assert!(!text.contains("MARKED"), "{text}");
}

#[tokio::test]
async fn a_data_folder_that_serve_can_not_use_is_told_in_the_same_words() {
    let directory = TempDir::new().unwrap();
    // Not even root can write it.
    std::fs::create_dir(directory.path().join("lock")).unwrap();
    let environment = [
        ("RELAY_DATA_DIR", directory.path().to_str().unwrap()),
        ("RELAY_PORT", "0"),
        ("RELAY_ADMIN_LISTEN", "127.0.0.1:0"),
        ("RELAY_LOG", "error"),
    ];
    let checked = run(&["check-config"], &environment).await;
    let served = run(&["serve"], &environment).await;
    assert!(checked.complaint(1).contains("can't be used"), "{checked:?}");
    assert_eq!(checked.complaint(1), served.complaint(1));
    let json = run(&["check-config", "--json"], &environment).await;
    let told: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&told["ok"], json.code), (&json!(false), Some(1)));
    let replica = [
        &environment[..],
        &[
            ("REDIS_URL", "redis://127.0.0.1:1"),
            (
                "RELAY_ENROLLMENT_SECRET",
                "a secret of forty bytes.................",
            ),
        ],
    ]
    .concat();
    run(&["check-config"], &replica).await.done();
}

/// A reload checks the configuration while the relay runs.
#[tokio::test]
async fn a_data_folder_in_use_is_a_warning() {
    let relay = Relay::start(RelayOptions::new()).await;
    let directory = relay.data_dir().display().to_string();
    let checked = run(&["check-config"], &[("RELAY_DATA_DIR", &directory)])
        .await
        .done();
    let warning = format!("{directory} is in use by another relay process: a second one would not start");
    assert!(checked.contains(&warning), "{checked}");
}
