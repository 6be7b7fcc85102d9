//! Nothing of the content and none of the secrets is found anywhere: marked ones are planted in every way a request
//! can go, then everything the relay wrote is searched for them.

mod planted;
mod requests;
mod signaling;

use std::collections::HashSet;

use reqwest::Method;
use serde_json::{Value, json};
use sovereign_relay_simulator::{
    Behaviour, SimulatorOptions, apns::verdict as apns, fcm::verdict as fcm, wns::verdict as wns,
};

use self::planted::Planted;
use crate::support::{
    relay::{Answer, Instance, RelayOptions},
    world::World,
};

const MARK: &str = "MARKEDBYTHETEST";
/// In a form that may be a hexadecimal token.
const HEX_MARK: &str = "feedfacecafebeef00c0ffee";
const ADDRESS: &str = "198.51.100.77";
const NAME: &str = "Name Planted By The Test";
const CONTACT: &str = "planted.contact@instance.example";
/// Files that hold what the relay made for itself.
const OWN_SECRETS: [&str; 2] = ["enrollment-secret", "admin-token"];
/// Foreign crates by name, since a filter that names them is the more specific one.
const MOST_VERBOSE: &str = "trace,h2=trace,hyper=trace,hyper_util=trace,reqwest=trace,rustls=trace,tokio=trace,\
    actix_http=trace,actix_web=trace,actix_server=trace,mio=trace,redb=trace,log=trace";

#[tokio::test]
async fn marked_content_keys_and_addresses_are_found_in_no_log_metric_store_or_error() {
    nothing_is_found(RelayOptions::new().set("RELAY_LOG", "trace")).await;
}

#[tokio::test]
async fn no_setting_of_the_log_makes_foreign_crates_print_content_nor_does_the_log_for_people() {
    let options = RelayOptions::new()
        .set("RELAY_LOG", MOST_VERBOSE)
        .set("RELAY_LOG_FORMAT", "text");
    let log = nothing_is_found(options).await;
    assert!(
        !log.contains("{\"") && !log.contains('\u{1b}'),
        "text, without colours"
    );
    let answered = log.lines().find(|line| line.contains("request answered"));
    let answered = answered.expect("a line of a request");
    for part in ["INFO request{request_id=", "route=\"/v1/", "status="] {
        assert!(answered.contains(part), "{part} in {answered}");
    }
}

/// The whole log, for what else there is to say about it.
async fn nothing_is_found(options: RelayOptions) -> String {
    // Few messages are too many, however slowly they are sent.
    let options = options
        .set("RELAY_PUSH_DEADLINE", "1s")
        .set("RELAY_SIGNAL_MESSAGES_PER_SECOND", "1")
        .set("RELAY_SIGNAL_BURST", "5");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let mut planted = Planted::new(&[("a mark", MARK), ("a token", HEX_MARK), ("an address", ADDRESS)]);
    let enrolled = requests::enroll_with_a_name(&world, NAME, CONTACT).await;
    let key = enrolled["instanceKey"].as_str().unwrap();
    planted.add("an instance key", key.rsplit('.').next().unwrap());
    let invite = world
        .relay
        .admin(
            Method::POST,
            "/admin/v1/invites",
            Some(json!({ "ttlSeconds": 60 })),
        )
        .await;
    planted.add("an invite", invite.body["invite"].as_str().unwrap());

    let answers = everything(&world, key).await;
    let instance = Instance {
        id: enrolled["instanceId"].as_str().unwrap().to_owned(),
        key: key.to_owned(),
    };
    signaling::talk(&world, &instance, &mut planted).await;
    add_credentials(&world, &mut planted);
    // All that may not be in answers, logs and metrics, but may be in the data directory.
    let mut kept = Planted::new(&[("a name", NAME), ("a contact", CONTACT)]);
    for file in OWN_SECRETS {
        let secret = std::fs::read_to_string(world.relay.data_dir().join(file)).unwrap();
        kept.add("a secret of the relay", secret.trim());
        planted.add("a secret of the relay", secret.trim());
    }
    for answer in &answers {
        let text = format!("{:?}{}", answer.headers, answer.body);
        planted.search("an answer", text.as_bytes());
        kept.search("an answer", text.as_bytes());
    }
    let ready = world.relay.get("/readyz").await.body.to_string();
    for (place, text) in [("/metrics", world.relay.metrics().await), ("/readyz", ready)] {
        planted.search(place, text.as_bytes());
        kept.search(place, text.as_bytes());
    }
    let instances = world
        .relay
        .admin(Method::GET, "/admin/v1/instances", None)
        .await
        .body
        .to_string();
    assert!(instances.contains(NAME), "the operator sees who it is");
    planted.search("the admin API", instances.as_bytes());
    planted.search_directory(world.relay.data_dir(), &OWN_SECRETS);
    world.relay.terminate();
    let (_, log) = world.stopped().await;
    assert!(
        log.contains("TRACE") || log.contains("DEBUG"),
        "the log was verbose"
    );
    planted.search("the log", log.as_bytes());
    kept.search("the log", log.as_bytes());
    log
}

/// Every kind of request under every kind of answer of the providers.
async fn everything(world: &World, key: &str) -> Vec<Answer> {
    let simulators = &world.simulators;
    // What a token endpoint says in its error, or hands out, is not for the log.
    let oauth = |token: Value| {
        Behaviour::status(200)
            .header("content-type", "application/json")
            .body(token.to_string())
    };
    let refused =
        Behaviour::status(400).body(json!({ "error": MARK, "error_description": MARK }).to_string());
    let marked = oauth(json!({ "access_token": MARK, "token_type": "Bearer", "expires_in": 3600 }));
    for script in [simulators.fcm.oauth_script(), simulators.wns.oauth_script()] {
        script.next(1, refused.clone());
        script.next(1, marked.clone());
    }
    let mut answers = requests::push_everywhere(world, key, 0).await;
    answers.extend(requests::push_everywhere(world, key, 1).await);
    let echo = |behaviour: Behaviour| behaviour.header("x-echo", MARK).header("x-wns-debug-trace", MARK);
    let verdicts = [
        (Behaviour::accept(), Behaviour::accept(), Behaviour::accept()),
        (apns::unregistered(1), fcm::unregistered(), wns::channel_expired()),
        (
            apns::refused(403, MARK),
            fcm::error(403, "X", MARK, vec![]),
            wns::refused(410, MARK),
        ),
        (
            apns::refused(400, HEX_MARK),
            fcm::error(
                400,
                MARK,
                HEX_MARK,
                vec![fcm::violation(MARK, MARK), fcm::fcm_detail(MARK)],
            ),
            wns::refused(400, MARK).header("x-wns-status", MARK),
        ),
        (
            Behaviour::status(500).body(MARK),
            Behaviour::status(302).header("location", MARK).body(MARK),
            Behaviour::status(302).header("location", &format!("https://{MARK}.example/")),
        ),
        (
            Behaviour::status(429)
                .header("retry-after", MARK)
                .body(MARK.repeat(9000)),
            Behaviour::status(429).header("retry-after", MARK).body("{"),
            Behaviour::status(406).header("retry-after", MARK),
        ),
        (
            Behaviour::kill_connection(),
            Behaviour::kill_connection(),
            Behaviour::kill_connection(),
        ),
        (
            Behaviour::never_answer(),
            Behaviour::never_answer(),
            Behaviour::never_answer(),
        ),
    ];
    for (turn, (on_apns, on_fcm, on_wns)) in verdicts.into_iter().enumerate() {
        simulators.apns.script().always(echo(on_apns));
        simulators.fcm.script().always(echo(on_fcm));
        simulators.wns.script().always(echo(on_wns));
        answers.extend(requests::push_everywhere(world, key, turn + 2).await);
        simulators.apns.goaway(MARK);
    }
    answers.extend(requests::malformed(world, key).await);
    requests::garbage(world).await;
    check_variety(&answers);
    answers
}

/// A search proves nothing where nothing happened.
fn check_variety(answers: &[Answer]) {
    for result in ["sent", "invalid_token", "failed"] {
        assert!(
            answers.iter().any(|answer| answer.body["result"] == result),
            "{result}"
        );
    }
    let statuses: HashSet<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    for status in [200, 400, 401, 404, 405, 409, 413, 415] {
        assert!(statuses.contains(&status), "{status} among {statuses:?}");
    }
}

/// What the relay shows its providers: keys, client secrets and the tokens made of them.
fn add_credentials(world: &World, planted: &mut Planted) {
    let simulators = &world.simulators;
    for line in simulators.apns.key().pem.lines().filter(|line| line.len() > 40) {
        planted.add("the APNs key", line);
    }
    let account: Value = serde_json::from_str(&simulators.fcm.service_account_json()).unwrap();
    let pem = account["private_key"].as_str().unwrap();
    for line in pem
        .lines()
        .filter(|line| !line.starts_with('-') && line.len() > 40)
    {
        planted.add("the FCM account's key", line);
    }
    planted.add("the WNS client secret", &simulators.wns.options().client_secret);
    let shown = simulators.apns.jwts();
    assert!(!shown.is_empty());
    for used in shown {
        planted.add("an APNs JWT", used.jwt.rsplit('.').next().unwrap());
    }
}
