//! Through Caddy as without it: pushes, WebSockets, and whose limits a caller meets.

use std::time::Instant;

use reqwest::Method;
use serde_json::json;
use sovereign_relay_protocol::limits::ENROLLMENTS_PER_MINUTE;

use crate::support::{
    answer::Answer,
    caddy::Caddy,
    fleet::{Fleet, client},
    grown::grown_instance,
    peer::load,
    until,
    upstream::{Fate, Upstream},
};

/// Where clients and servers say who has sent a request, besides X-Forwarded-For.
const CLAIMS: [&str; 5] = [
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
];
/// So many that each of two replicas surely gets some.
const PUSHES: usize = 60;
const ELSEWHERE: &str = "127.0.0.9";

/// Enrolls from `from`, and claims to be somebody else in all ways there are.
async fn enroll(caddy: &Caddy, from: Option<&str>, claim: &str) -> Answer {
    let request = client(from).post(format!("{}/v1/enroll", caddy.url()));
    let request = CLAIMS.iter().fold(request, |request, name| {
        let prefix = if *name == "forwarded" { "for=" } else { "" };
        request.header(*name, format!("{prefix}{claim}"))
    });
    Answer::from(request.header("x-forwarded-for", claim)).await
}

#[tokio::test]
async fn a_caller_meets_the_limits_of_its_own_address_whatever_it_claims() {
    let fleet = Fleet::start(1).await;
    let (began, mut enrolled) = (Instant::now(), 0);
    let refused = loop {
        let answer = enroll(&fleet.caddy, None, &format!("203.0.113.{enrolled}")).await;
        if answer.status != 200 {
            break answer;
        }
        enrolled += 1;
    };
    assert_eq!(refused.word(), "rate_limited");
    let most = f64::from(ENROLLMENTS_PER_MINUTE) * (1.0 + began.elapsed().as_secs_f64() / 60.0);
    assert!(
        enrolled >= ENROLLMENTS_PER_MINUTE && f64::from(enrolled) <= most,
        "{enrolled} of {most}"
    );
    let other = enroll(&fleet.caddy, Some(ELSEWHERE), "127.0.0.1").await;
    assert_eq!(other.status, 200, "{other:?}");
}

#[tokio::test]
async fn what_a_caller_claims_of_its_address_does_not_get_past_caddy() {
    let upstream = Upstream::start(Fate::Answered).await;
    let caddy = Caddy::start(Caddy::choose(), &[upstream.address()]).await;
    assert_eq!(enroll(&caddy, Some(ELSEWHERE), "203.0.113.7").await.status, 200);
    let head = upstream.heads().pop().unwrap().to_ascii_lowercase();
    assert!(!head.contains("203.0.113.7"), "{head}");
    assert!(
        CLAIMS.iter().all(|name| !head.contains(&format!("\n{name}:"))),
        "{head}"
    );
    assert!(
        head.contains(&format!("x-forwarded-for: {ELSEWHERE}\r\n")),
        "{head}"
    );
}

#[tokio::test]
async fn pushes_of_all_platforms_pass_to_every_replica_and_the_request_id_comes_back() {
    let fleet = Fleet::start(2).await;
    let instance = grown_instance();
    let simulators = &fleet.simulators;
    let devices = [
        ("ios", simulators.apns.new_token()),
        ("macos", simulators.apns.new_token()),
        ("android", simulators.fcm.new_token()),
        ("windows", simulators.wns.new_channel()),
    ];
    for (nth, (platform, token)) in devices.iter().cycle().take(PUSHES).enumerate() {
        let request_id = format!("call-{nth}");
        let push = json!({ "platform": platform, "deviceToken": token, "encryptedPayload": "sealed" });
        let request = fleet.request(Method::POST, "/v1/push").bearer_auth(&instance.key);
        let answer = Answer::from(request.json(&push).header("x-request-id", &request_id)).await;
        assert_eq!(answer.word(), "sent", "{answer:?}");
        assert_eq!(answer.headers["x-request-id"], request_id);
        assert!(!answer.headers.contains_key("server"), "{answer:?}");
    }
    let mut sent = 0.0;
    for replica in &fleet.replicas {
        let here = replica.relay().metric("relay_pushes_total", "sent").await;
        assert!(here > 0.0, "each has its share");
        sent += here;
    }
    assert_eq!(sent, PUSHES as f64);
}

#[tokio::test]
async fn two_peers_exchange_messages_through_caddy_at_the_url_that_the_session_names() {
    let fleet = Fleet::start(1).await;
    let session = fleet.session().await;
    assert_eq!(session.url, format!("ws://{}/v1/signal", &fleet.caddy.url()[7..]));
    let (mut a, _) = session.join("a", load(1)).await;
    let (mut b, _) = session.join("b", load(2)).await;
    a.message(1, "offer").await;
    assert_eq!(b.next_of("msg").await["d"], "offer");
    b.message(1, "answer").await;
    assert_eq!(a.next_of("msg").await["d"], "answer");
}

#[tokio::test]
async fn what_is_the_operators_alone_is_not_reached_through_caddy() {
    let fleet = Fleet::start(1).await;
    for path in ["/metrics", "/admin/v1/instances", "/admin/v1/revocations"] {
        assert_eq!(fleet.get(path).await.word(), "not_found", "{path}");
    }
}

#[tokio::test]
async fn neither_what_is_sent_nor_who_sends_it_is_in_caddys_log() {
    let fleet = Fleet::start(1).await;
    let (instance, session) = (grown_instance(), fleet.session().await);
    let (_peer, _) = session.join("a", load(1)).await;
    let token = fleet.simulators.apns.new_token();
    let push = json!({ "platform": "ios", "deviceToken": token, "encryptedPayload": "c2VhbGVk" });
    let path = "/v1/push?leaked=by-a-careless-caller";
    let request = fleet.request(Method::POST, path).bearer_auth(&instance.key);
    assert_eq!(Answer::from(request.json(&push)).await.word(), "sent");
    // And one that is lost, of which Caddy has more to say.
    let lost = Upstream::start(Fate::BrokenOff).await;
    let caddy = Caddy::start(Caddy::choose(), &[lost.address()]).await;
    let request = client(Some(ELSEWHERE)).post(format!("{}{path}", caddy.url()));
    let answer = Answer::from(request.bearer_auth(&instance.key).json(&push)).await;
    assert_eq!(answer.word(), "send_failed");
    drop(fleet.get("/livez").await);
    for caddy in [&fleet.caddy, &caddy] {
        until("requests are logged", async || {
            caddy.log().contains("\"/v1/push\"")
        })
        .await;
    }
    let log = fleet.caddy.log() + &caddy.log();
    for hidden in [
        &*instance.key,
        &session.a,
        &token,
        "c2VhbGVk",
        "careless",
        ELSEWHERE,
        "remote_ip",
        "remote_addr",
        "Authorization",
        "Sec-Websocket",
    ] {
        assert!(!log.contains(hidden), "{hidden} is in the log:\n{log}");
    }
}
