use serde_json::json;

use crate::kit::{NO_RELAY, Place, binary, finish};

#[tokio::test]
async fn a_user_s_token_is_printed_once_and_kept_as_a_hash() {
    let place = Place::new();
    let token = place.user("ann").await;
    let secret = token.strip_prefix("ann.").unwrap();
    assert_eq!(secret.len(), 43);
    for file in std::fs::read_dir(place.folder.path().join("data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(
            !bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes())
        );
    }
    assert!(
        place
            .run(&["user", "add", "ann"])
            .await
            .complaint(1)
            .contains("there is a user of that name")
    );
    assert!(
        place
            .run(&["user", "add", "Ann!"])
            .await
            .complaint(1)
            .contains("a name has")
    );
    let again = place.run(&["user", "token", "ann", "--json"]).await.json();
    assert_ne!(again["token"], json!(token));
    let listed = place.run(&["user", "list", "--json"]).await.json();
    assert_eq!(
        (listed.as_array().unwrap().len(), &listed[0]["name"]),
        (1, &json!("ann"))
    );
    place.run(&["user", "remove", "ann"]).await.done();
    assert!(
        place
            .run(&["user", "remove", "ann"])
            .await
            .complaint(1)
            .contains("no user of that name")
    );
}

#[cfg(unix)]
#[tokio::test]
async fn the_database_is_for_its_owner_s_eyes_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.user("ann").await;
    let data = place.folder.path().join("data");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for file in std::fs::read_dir(&data).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[tokio::test]
async fn the_relay_is_chosen_by_command_then_by_setting_then_by_default() {
    let place = Place::new();
    let current = async || place.run(&["relay", "status", "--json"]).await.json()["current"].clone();
    assert_eq!(current().await, NO_RELAY);
    place
        .run(&["relay", "set", "https://relay.example/"])
        .await
        .done();
    assert_eq!(current().await, "https://relay.example");
    place.run(&["relay", "off"]).await.done();
    assert_eq!(current().await, json!(null));
    assert!(
        place
            .run(&["relay", "rotate"])
            .await
            .complaint(1)
            .contains("turned off")
    );
    place.run(&["relay", "default"]).await.done();
    assert_eq!(current().await, NO_RELAY);
    let mut unset = place.command(&["relay", "status", "--json"]);
    assert_eq!(
        finish(unset.env_remove("SOVEREIGN_RELAY_URL")).await.json()["current"],
        "https://relay.sovereign.openfs.io"
    );
    let mut off = place.command(&["relay", "status"]);
    assert!(
        finish(off.env("SOVEREIGN_RELAY_URL", "off"))
            .await
            .done()
            .starts_with("in use: off\n")
    );
}

#[tokio::test]
async fn what_makes_no_sense_is_told_in_one_line_with_its_own_code() {
    let place = Place::new();
    let mut wrong = place.command(&["relay", "status"]);
    let ended = finish(wrong.env("SOVEREIGN_RELAY_URL", "http://relay.example")).await;
    assert!(
        ended
            .complaint(2)
            .contains("SOVEREIGN_RELAY_URL: the relay's address must begin with https://")
    );
    assert_eq!(place.run(&["relay", "set", "nonsense"]).await.code, Some(2));
    assert_eq!(place.run(&["no-such-command"]).await.code, Some(2));
    let mut contact = place.command(&["notify", "ann", "--title", "x"]);
    assert_eq!(
        finish(contact.env("SOVEREIGN_CONTACT", "not a contact"))
            .await
            .code,
        Some(2)
    );
    let mut database = place.command(&["user", "list"]);
    let ended = finish(database.env("SOVEREIGN_DATABASE_URL", "mysql://password@host/db")).await;
    assert!(!ended.complaint(1).contains("password"), "{ended:?}");
}

#[tokio::test]
async fn a_relay_that_is_not_there_is_exit_code_3() {
    let place = Place::new();
    let ended = place.run(&["relay", "rotate"]).await;
    assert!(ended.complaint(3).contains("relay status"));
}

#[tokio::test]
async fn a_relay_that_is_named_in_another_spelling_is_the_same_one() {
    let place = Place::new();
    place.run(&["relay", "rotate"]).await.complaint(3);
    place
        .run(&["relay", "resume", "HTTP://127.0.0.1:1//"])
        .await
        .complaint(3);
    let known = place.run(&["relay", "status", "--json"]).await.json()["relays"].clone();
    let urls: Vec<_> = known
        .as_array()
        .unwrap()
        .iter()
        .map(|relay| &relay["url"])
        .collect();
    assert_eq!(urls, [NO_RELAY]);
    assert_eq!(
        place.run(&["relay", "rotate", "relay.example"]).await.code,
        Some(2)
    );
}

#[tokio::test]
async fn whoever_has_no_device_is_told_nothing_and_the_command_says_so() {
    let place = Place::new();
    assert!(
        place
            .run(&["notify", "ann", "--title", "x"])
            .await
            .complaint(1)
            .contains("no user of that name")
    );
    place.user("ann").await;
    let ended = place.run(&["notify", "ann", "--title", "x"]).await;
    assert_eq!(ended.out, "0 of 0 told\n");
    assert!(ended.complaint(1).contains("ann has no device or browser yet"));
    assert_eq!(place.run(&["devices", "ann", "--json"]).await.json(), json!([]));
    assert_eq!(place.run(&["log", "ann", "--json"]).await.json(), json!([]));
    let long = "x".repeat(3000);
    assert!(
        place
            .run(&["notify", "ann", "--title", &long])
            .await
            .complaint(1)
            .contains("2560 bytes")
    );
    assert_eq!(place.run(&["notify", "ann", "--title", ""]).await.code, Some(2));
}

#[tokio::test]
async fn help_names_every_command_and_the_exit_codes() {
    let help = finish(binary(&["--help"])).await.done();
    for word in [
        "serve",
        "user",
        "notify",
        "devices",
        "log",
        "relay",
        "demo",
        "Exit codes:",
        "SOVEREIGN_RELAY_URL",
    ] {
        assert!(help.contains(word), "{word} is missing in {help}");
    }
}
