//! "Handling notification responses from APNs": the whole list of reasons, and what is not on it.

use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{
    Behaviour, Pace, RetryAfter,
    apns::verdict::{self, gone as inactive, refused},
};

use super::{
    MISCONFIGURED, Proof, Row, Since, UNCONFIRMED_RETRY, check, check_apart, gone, gone_if_proven, lasting,
    passing, passing_after, row,
};

const TOLD: u64 = 1_700_000_000_123;
const YEAR_2100: i64 = 4_102_444_800_000;
const REJECTED: &str = "payload_rejected";
const UNAVAILABLE: &str = "provider_unavailable";

#[tokio::test]
async fn every_answer_of_apns_has_its_verdict_after_a_sent() {
    check(Platform::Ios, Proof::Fresh, rows()).await;
}

#[tokio::test]
async fn every_answer_of_apns_has_its_verdict_without_any_sent_and_none_that_needs_proof_deletes_a_device() {
    check(Platform::Macos, Proof::None, rows()).await;
}

#[tokio::test]
async fn a_wait_that_apns_asks_for_is_handed_on() {
    check_apart(
        Platform::Ios,
        vec![
            row(
                "503 with a hint, once",
                verdict::service_unavailable().retry_after(RetryAfter::Seconds(37)),
                passing_after(UNAVAILABLE, 37),
            ),
            row(
                "429 with a hint",
                verdict::too_many_requests().retry_after(RetryAfter::Seconds(37)),
                passing_after("device_throttled", 37),
            ),
        ],
    )
    .await;
}

fn rows() -> Vec<Row> {
    let mut rows = vec![row("accepted", Behaviour::accept(), super::Expected::Sent)];
    rows.extend(dead());
    rows.extend(almost_dead());
    rows.extend(bad_requests());
    rows.extend(refusals_of_the_relay());
    rows.extend(troubles());
    rows
}

fn dead() -> Vec<Row> {
    let told = i64::try_from(TOLD).unwrap();
    let without_number = Behaviour::status(410).body(r#"{"reason":"Unregistered","timestamp":"yesterday"}"#);
    let unregistered = |since| gone("unregistered", since);
    vec![
        row(
            "unregistered",
            verdict::unregistered(told),
            unregistered(Since::Told(TOLD)),
        ),
        row(
            "expired",
            verdict::expired_token(told),
            gone("expired_token", Since::Told(TOLD)),
        ),
        row(
            "no timestamp",
            refused(410, "Unregistered"),
            unregistered(Since::Asked),
        ),
        row(
            "a timestamp that is no number",
            without_number,
            unregistered(Since::Asked),
        ),
        row(
            "a negative timestamp",
            inactive("Unregistered", -1),
            unregistered(Since::Asked),
        ),
        row(
            "a timestamp in the future",
            inactive("Unregistered", YEAR_2100),
            unregistered(Since::Asked),
        ),
        row(
            "bad token",
            verdict::bad_device_token(),
            gone_if_proven("bad_token"),
        ),
        row(
            "not for topic",
            verdict::device_token_not_for_topic(),
            gone_if_proven("wrong_app"),
        ),
    ]
}

/// What looks like the end of a device and is not.
fn almost_dead() -> Vec<Row> {
    let told = i64::try_from(TOLD).unwrap();
    let unconfirmed = || passing_after("unconfirmed_token", UNCONFIRMED_RETRY);
    vec![
        row("410, no body", Behaviour::status(410), unconfirmed()),
        row("410, html", Behaviour::html(410), unconfirmed()),
        row(
            "410, unknown reason",
            inactive("SomethingNew", told),
            unconfirmed(),
        ),
        row("410, other case", inactive("unregistered", told), unconfirmed()),
        row("410, bad token", inactive("BadDeviceToken", told), unconfirmed()),
        row(
            "410, cut JSON",
            Behaviour::status(410).body(r#"{"reason":"Unregistered""#),
            unconfirmed(),
        ),
        row(
            "400, unregistered",
            refused(400, "Unregistered"),
            lasting(REJECTED),
        ),
        row("400, expired", refused(400, "ExpiredToken"), lasting(REJECTED)),
        row(
            "403, bad token",
            refused(403, "BadDeviceToken"),
            lasting(MISCONFIGURED),
        ),
        row(
            "404, unregistered",
            refused(404, "Unregistered"),
            lasting(MISCONFIGURED),
        ),
        row(
            "413, not for topic",
            refused(413, "DeviceTokenNotForTopic"),
            lasting(REJECTED),
        ),
        row(
            "500, unregistered",
            refused(500, "Unregistered"),
            passing(UNAVAILABLE),
        )
        .asked(2),
    ]
}

fn bad_requests() -> Vec<Row> {
    let rejected = ["BadCollapseId", "MissingDeviceToken", "SomethingNew"];
    let misconfigured = [
        "BadExpirationDate",
        "BadMessageId",
        "BadPriority",
        "BadTopic",
        "DuplicateHeaders",
        "InvalidPushType",
        "MissingTopic",
        "PayloadEmpty",
        "TopicDisallowed",
    ];
    let of_the_payload = rejected.map(|reason| row(reason, refused(400, reason), lasting(REJECTED)));
    let of_the_relay = misconfigured.map(|reason| row(reason, refused(400, reason), lasting(MISCONFIGURED)));
    let mut rows: Vec<_> = of_the_payload.into_iter().chain(of_the_relay).collect();
    rows.push(row("400, no body", Behaviour::status(400), passing(UNAVAILABLE)));
    rows.push(row("400, html", Behaviour::html(400), passing(UNAVAILABLE)));
    rows.push(row("413, html", Behaviour::html(413), passing(UNAVAILABLE)));
    rows.push(row(
        "too large",
        refused(413, "PayloadTooLarge"),
        lasting(REJECTED),
    ));
    let idle = row("IdleTimeout", refused(400, "IdleTimeout"), passing(UNAVAILABLE));
    rows.push(idle.asked(2));
    rows
}

fn refusals_of_the_relay() -> Vec<Row> {
    let forbidden = [
        "BadCertificate",
        "BadCertificateEnvironment",
        "BadEnvironmentKeyIdInToken",
        "ExpiredProviderToken",
        "Forbidden",
        "InvalidProviderToken",
        "MissingProviderToken",
        "SomethingNew",
    ];
    let mut rows: Vec<_> = forbidden
        .map(|reason| row(reason, refused(403, reason), lasting(MISCONFIGURED)))
        .into();
    let other_key = row(
        "UnrelatedKeyIdInToken, also on a new connection",
        refused(403, "UnrelatedKeyIdInToken"),
        lasting(MISCONFIGURED),
    );
    rows.push(other_key.asked(2));
    rows.push(row("403, html", Behaviour::html(403), passing(MISCONFIGURED)));
    rows.push(row("404, html", Behaviour::html(404), passing(MISCONFIGURED)));
    rows.push(row("405, html", Behaviour::html(405), passing(UNAVAILABLE)));
    rows.push(row("BadPath", refused(404, "BadPath"), lasting(MISCONFIGURED)));
    rows.push(row(
        "MethodNotAllowed",
        refused(405, "MethodNotAllowed"),
        lasting(MISCONFIGURED),
    ));
    rows.push(row(
        "TooManyProviderTokenUpdates",
        verdict::too_many_provider_token_updates(),
        lasting(MISCONFIGURED),
    ));
    rows
}

fn troubles() -> Vec<Row> {
    let cut = Pace::CutAfter { bytes: 5 };
    let twice = |name, reason| row(name, refused(503, reason), passing(UNAVAILABLE)).asked(2);
    vec![
        row(
            "TooManyRequests",
            verdict::too_many_requests(),
            passing_after("device_throttled", 60),
        ),
        row(
            "InternalServerError",
            verdict::internal_server_error(),
            passing(UNAVAILABLE),
        )
        .asked(2),
        twice("ServiceUnavailable", "ServiceUnavailable"),
        twice("Shutdown, also on a new connection", "Shutdown"),
        row(
            "403, cut",
            refused(403, "InvalidProviderToken").paced(cut),
            passing(UNAVAILABLE),
        ),
        row(
            "400, cut",
            refused(400, "PayloadEmpty").paced(cut),
            passing(UNAVAILABLE),
        ),
        row(
            "410, cut",
            verdict::unregistered(i64::try_from(TOLD).unwrap()).paced(cut),
            passing(UNAVAILABLE),
        ),
        row(
            "413, endless",
            refused(413, "PayloadTooLarge").padded_to(100_000),
            passing(UNAVAILABLE),
        ),
        row("502, html", Behaviour::html(502), passing(UNAVAILABLE)),
        row("504", Behaviour::status(504), passing(UNAVAILABLE)),
        row("redirect", Behaviour::status(302), passing(UNAVAILABLE)),
        row("401", Behaviour::status(401), passing(UNAVAILABLE)),
        row("another 2xx", Behaviour::status(202), passing("unknown_outcome")),
    ]
}
