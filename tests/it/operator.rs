//! The operator's commands, on the real binary against a running relay: what each prints, does and ends with.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;

use crate::support::{
    command,
    relay::{Answer, Instance, Relay, RelayOptions},
    until,
    world::World,
};

const SECRET: &str = "one secret for two relays, forty bytes..";
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

fn message() -> Value {
    json!({ "deviceToken": "abcd", "platform": "ios", "encryptedPayload": "sealed" })
}

async fn enroll_as(relay: &Relay, name: &str, contact: &str) -> Instance {
    let request = relay.request(Method::POST, "/v1/enroll");
    let answer = Answer::from(request.json(&json!({ "name": name, "contact": contact }))).await;
    let text = |field: &str| answer.body[field].as_str().unwrap().to_owned();
    Instance {
        id: text("instanceId"),
        key: text("instanceKey"),
    }
}

#[tokio::test]
async fn instances_are_listed_and_shown_for_people_and_for_scripts() {
    let world = World::start().await;
    let relay = &world.relay;
    let empty = relay.cli(&["instances", "list"]).await.done();
    assert_eq!(empty.lines().count(), 1, "only the headings: {empty}");
    let named = enroll_as(relay, "Chess club", "admin@chess.example").await;
    let bare = relay.enroll().await;
    assert_eq!(relay.push(&named, &message()).await.word(), "sent");

    let table = relay.cli(&["instances", "list"]).await.done();
    let headings = table.lines().next().unwrap();
    for heading in ["INSTANCE", "NAME", "ENROLLED", "LAST USED", "SENT", "STATE"] {
        assert!(headings.contains(heading), "{table}");
    }
    for text in [&named.id, &bare.id, "Chess club", "active"] {
        assert!(table.contains(text), "{text} in {table}");
    }
    let listed = relay.cli(&["instances", "list", "--json"]).await.json();
    let mut ids: Vec<&str> = listed["instances"]
        .as_array()
        .unwrap()
        .iter()
        .map(|instance| instance["instanceId"].as_str().unwrap())
        .collect();
    assert!(ids.is_sorted());
    ids.sort_unstable();
    let mut expected = [&*named.id, &*bare.id];
    expected.sort_unstable();
    assert_eq!(ids, expected);

    let page = relay.cli(&["instances", "show", &named.id]).await.done();
    for text in [
        &*named.id,
        "Chess club",
        "admin@chess.example",
        "default",
        "active",
    ] {
        assert!(page.contains(text), "{text} in {page}");
    }
    let shown = relay.cli(&["instances", "show", &bare.id, "--json"]).await.json();
    assert_eq!(shown["instanceId"], *bare.id);
    assert!(
        shown["enrolledAt"].is_string() && shown.get("name").is_none(),
        "{shown}"
    );
}

#[tokio::test]
async fn a_suspension_holds_from_its_answer_until_it_is_resumed_or_over_and_leaves_a_letter() {
    let world = World::start().await;
    let relay = &world.relay;
    let instance = enroll_as(relay, "Chess club", "admin@chess.example").await;
    let suspend = [
        "instances",
        "suspend",
        &instance.id,
        "--reason",
        "too many dead tokens",
    ];
    let forever = relay.cli(&suspend).await;
    assert!(
        forever.err.contains("A text for admin@chess.example"),
        "{forever:?}"
    );
    assert!(forever.done().contains("suspended: too many dead tokens"));
    let refused = relay.push(&instance, &message()).await;
    assert_eq!((refused.status.as_u16(), refused.word()), (403, "suspended"));
    assert!(
        !refused.body.to_string().contains("dead tokens"),
        "the reason is the operator's"
    );

    let for_a_day = relay
        .cli(&[&suspend[..], &["--for", "24h", "--json"]].concat())
        .await
        .json();
    assert!(for_a_day["suspension"]["until"].is_string(), "{for_a_day}");
    let refused = relay.push(&instance, &message()).await;
    assert!((86_300..=86_400).contains(&refused.retry_after()), "{refused:?}");

    let resumed = relay.cli(&["instances", "resume", &instance.id]).await.done();
    assert!(resumed.contains("active"), "{resumed}");
    assert_eq!(relay.push(&instance, &message()).await.word(), "sent");

    let began = Instant::now();
    relay.cli(&[&suspend[..], &["--for", "1s"]].concat()).await.done();
    let word = relay.push(&instance, &message()).await.word().to_owned();
    assert!(
        word == "suspended" || began.elapsed() >= Duration::from_secs(1),
        "{word}"
    );
    until("the suspension is over", async || {
        relay.push(&instance, &message()).await.word() == "sent"
    })
    .await;
}

#[tokio::test]
async fn a_limit_is_set_and_taken_back() {
    let world = World::start().await;
    let relay = &world.relay;
    let instance = relay.enroll().await;
    let batch: Vec<Value> = (0..20)
        .map(|_| world.device(Platform::Ios).push(&json!({})))
        .collect();
    let limited = relay.cli(&["instances", "limit", &instance.id, "5"]).await.done();
    assert!(limited.contains("5 a minute"), "{limited}");
    let refused = relay.batch(&instance, &batch).await.body.to_string();
    assert!(refused.matches("rate_limited").count() >= 14, "{refused}");
    let back = relay
        .cli(&["instances", "limit", &instance.id, "default", "--json"])
        .await
        .json();
    assert!(back.get("perMinute").is_none(), "{back}");
    for wrong in ["0", "-1", "many", "1.5", "4000000000"] {
        assert_eq!(
            relay.cli(&["instances", "limit", &instance.id, wrong]).await.code,
            Some(2),
            "{wrong}"
        );
    }
    relay.cli(&["instances", "limit", &instance.id, "7"]).await.done();
    let table = relay.cli(&["instances", "list"]).await.done();
    assert!(table.contains("LIMIT") && table.contains(" 7 "), "{table}");
}

#[tokio::test]
async fn an_id_that_has_no_record_is_acted_upon_and_doubted() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    for (id, is_known) in [(&*instance.id, true), (NOBODY, false)] {
        for change in [
            &["suspend", id, "--reason", "spam"][..],
            &["limit", id, "5"],
            &["turn", "allow", id],
            &["revoke", id],
        ] {
            let done = relay.cli(&[&["instances"], change].concat()).await;
            let doubted = done.err.contains("no enrollment is on record");
            assert_eq!(doubted, !is_known, "{change:?}: {done:?}");
            done.done();
        }
    }
    let too_late = relay.cli(&["instances", "limit", &instance.id, "default"]).await;
    assert!(too_late.err.contains("has ended (revoked)"), "{too_late:?}");
}

#[tokio::test]
async fn turn_is_allowed_denied_and_left_to_the_configuration_again() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    for (word, shown) in [("allow", "allowed"), ("deny", "denied"), ("default", "default")] {
        let page = relay.cli(&["instances", "turn", word, &instance.id]).await.done();
        assert!(page.contains(&format!("turn       {shown}")), "{page}");
    }
    let json = relay
        .cli(&["instances", "turn", "allow", &instance.id, "--json"])
        .await
        .json();
    assert_eq!(json["turn"], true);
    let wrong = relay.cli(&["instances", "turn", "perhaps", &instance.id]).await;
    assert_eq!(wrong.code, Some(2));
}

#[tokio::test]
async fn a_revoked_instance_stays_revoked_is_shown_as_ended_and_can_not_be_resumed_into_life() {
    let world = World::start().await;
    let relay = &world.relay;
    let (instance, other) = (relay.enroll().await, relay.enroll().await);
    let page = relay.cli(&["instances", "revoke", &instance.id]).await.done();
    assert!(page.contains("ended (revoked)"), "{page}");
    relay.cli(&["instances", "resume", &instance.id]).await;
    let refused = relay.push(&instance, &message()).await;
    assert_eq!((refused.status.as_u16(), refused.word()), (401, "revoked"));
    assert_eq!(relay.push(&other, &message()).await.word(), "sent");
    let unknown = relay.cli(&["instances", "show", NOBODY]).await;
    assert_eq!(
        unknown.complaint(4),
        "no instance is known by this id (not_found)"
    );
    assert_eq!(unknown.out, "");
}

#[tokio::test]
async fn an_invite_that_nobody_needs_is_made_with_a_word_on_that() {
    for (mode, is_needed) in [("open", false), ("invite", true), ("closed", false)] {
        let relay = Relay::start(RelayOptions::new().set("RELAY_ENROLLMENT", mode)).await;
        let made = relay.cli(&["invite", "create"]).await;
        assert_eq!(
            made.err.contains(&format!("RELAY_ENROLLMENT is {mode}")),
            !is_needed,
            "{made:?}"
        );
        assert_eq!(made.done().lines().count(), 1);
    }
}

#[tokio::test]
async fn invites_are_made_once_shown_once_and_listed_by_an_id_that_opens_nothing() {
    let relay = Relay::start(RelayOptions::new().set("RELAY_ENROLLMENT", "invite")).await;
    let created = relay.cli(&["invite", "create", "--json"]).await.json();
    let invite = created["invite"].as_str().unwrap();
    let plain = relay.cli(&["invite", "create", "--ttl", "30m"]).await.done();
    assert_eq!(plain.lines().count(), 1, "a script reads it whole: {plain}");
    let listed = relay.cli(&["invite", "list", "--json"]).await.json();
    let invites = listed["invites"].as_array().unwrap();
    assert_eq!(invites.len(), 2);
    let ends: Vec<&Value> = invites.iter().map(|invite| &invite["expiresAt"]).collect();
    assert!(ends.contains(&&created["expiresAt"]), "{listed}");
    let table = relay.cli(&["invite", "list"]).await.done();
    assert!(table.starts_with("ID"), "{table}");
    for text in [table, listed.to_string()] {
        assert!(
            !text.contains(invite) && !text.contains(plain.trim()),
            "kept as hashes: {text}"
        );
    }
}

#[tokio::test]
async fn revocations_go_out_to_a_file_and_into_another_relay_and_survive_its_restart() {
    let with_secret = || RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", SECRET);
    let directory = tempfile::tempdir().unwrap();
    let old = Relay::start(with_secret()).await;
    let new = Relay::start(with_secret().data_dir(directory.path())).await;
    let (revoked, withdrawn, other) = (old.enroll().await, old.enroll().await, old.enroll().await);
    old.cli(&["instances", "revoke", &revoked.id]).await.done();
    let leaves = old
        .request(Method::DELETE, "/v1/enrollment")
        .bearer_auth(&withdrawn.key);
    assert_eq!(Answer::from(leaves).await.status, 204);
    let file = old.data_dir().join("revocations.json");
    let to_file = ["revocations", "export", "--output", file.to_str().unwrap()];
    assert_eq!(old.cli(&to_file).await.done(), "", "it is in the file");
    let printed = old.cli(&["revocations", "export"]).await.json();
    assert_eq!(printed["entries"].as_array().unwrap().len(), 2);
    assert_eq!(
        serde_json::from_slice::<Value>(&std::fs::read(&file).unwrap()).unwrap(),
        printed
    );

    assert_eq!(
        new.push(&revoked, &message()).await.word(),
        "platform_not_configured",
        "not known there yet"
    );
    let import = ["revocations", "import", file.to_str().unwrap()];
    assert_eq!(new.cli(&import).await.done(), "2 entries joined in\n");
    let again = new.cli(&[&import[..], &["--json"]].concat()).await.json();
    assert_eq!(again, json!({ "imported": 2 }), "importing again is safe");
    assert_eq!(
        new.cli(&["revocations", "export"]).await.json(),
        printed,
        "the same list comes out"
    );
    new.kill().await;
    let restarted = Relay::start(with_secret().data_dir(directory.path())).await;
    for gone in [&revoked, &withdrawn] {
        assert_eq!(restarted.push(gone, &message()).await.word(), "revoked");
    }
    assert_eq!(
        restarted.push(&other, &message()).await.word(),
        "platform_not_configured"
    );
}

#[tokio::test]
async fn what_is_no_export_is_refused_and_changes_nothing() {
    let relay = Relay::start(RelayOptions::new()).await;
    let before = relay.cli(&["revocations", "export"]).await.done();
    let environment = [
        ("RELAY_DATA_DIR", relay.data_dir().to_str().unwrap()),
        (
            "RELAY_ADMIN_LISTEN",
            relay.admin_url.trim_start_matches("http://"),
        ),
    ];
    let newer = r#"{"format":"sovereign-relay-revocations","version":2,"entries":[]}"#;
    for text in ["", "{", "[]", "{\"entries\":[]}", newer] {
        let refused = command::run_with_input(&["revocations", "import", "-"], &environment, text).await;
        assert!(
            refused.complaint(4).contains("revocation export"),
            "{text}: {refused:?}"
        );
    }
    let accepted = command::run_with_input(&["revocations", "import", "-"], &environment, &before).await;
    assert_eq!(accepted.done(), "0 entries joined in\n");
    let missing = relay.cli(&["revocations", "import", "/no/such/file"]).await;
    assert!(missing.complaint(1).starts_with("/no/such/file: "), "{missing:?}");
    assert_eq!(relay.cli(&["revocations", "export"]).await.done(), before);
}

#[tokio::test]
async fn a_relay_that_is_not_there_is_a_3_and_one_that_refuses_the_token_a_4() {
    let relay = Relay::start(RelayOptions::new()).await;
    let admin = relay.admin_url.trim_start_matches("http://").to_owned();
    let wrong = [
        ("RELAY_ADMIN_LISTEN", &*admin),
        ("RELAY_ADMIN_TOKEN", "a token of another relay"),
    ];
    let refused = command::run(&["instances", "list"], &wrong).await;
    assert!(refused.complaint(4).contains("(unauthorized)"), "{refused:?}");
    let folder = tempfile::tempdir().unwrap();
    let nowhere = [
        ("RELAY_ADMIN_LISTEN", &*admin),
        ("RELAY_DATA_DIR", folder.path().to_str().unwrap()),
    ];
    let tokenless = command::run(&["instances", "list"], &nowhere).await;
    assert!(
        tokenless.complaint(3).contains("RELAY_ADMIN_TOKEN"),
        "{tokenless:?}"
    );
    relay.kill().await;
    for arguments in [
        &["instances", "list"][..],
        &["invite", "list"],
        &["revocations", "export"],
    ] {
        let unreachable = command::run(arguments, &wrong).await;
        assert!(
            unreachable.complaint(3).contains("the relay was not reached"),
            "{unreachable:?}"
        );
    }
}
