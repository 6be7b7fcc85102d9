//! "Push notification service request and response headers", and what proxies answer in WNS's place.

use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{
    Behaviour, RetryAfter,
    wns::verdict::{self, bare, refused, with_status},
};

use super::{
    Expected, MISCONFIGURED, Proof, Row, Since, check, check_apart, gone, gone_if_proven, lasting, passing,
    passing_after, row,
};

const REJECTED: &str = "payload_rejected";
const UNAVAILABLE: &str = "provider_unavailable";
const THROTTLED: &str = "device_throttled";

#[tokio::test]
async fn every_answer_of_wns_has_its_verdict_after_a_sent() {
    check(Platform::Windows, Proof::Fresh, rows()).await;
}

#[tokio::test]
async fn every_answer_of_wns_has_its_verdict_without_any_sent_and_none_that_needs_proof_deletes_a_device() {
    check(Platform::Windows, Proof::None, rows()).await;
}

#[tokio::test]
async fn answers_of_wns_that_are_about_everybody_have_their_verdict() {
    check_apart(
        Platform::Windows,
        vec![
            row(
                "503, hint",
                verdict::unavailable(RetryAfter::Seconds(37)),
                passing_after(UNAVAILABLE, 37),
            ),
            row(
                "401, also with a fresh token",
                verdict::unauthorized(),
                passing_after(MISCONFIGURED, 10),
            )
            .asked(2),
        ],
    )
    .await;
}

fn rows() -> Vec<Row> {
    let mut rows = successes();
    rows.extend(dead());
    rows.extend(refusals_of_the_relay());
    rows.extend(troubles());
    rows.extend(not_from_wns());
    rows
}

/// A 200 may still say that the notification goes nowhere, in either of two headers.
fn successes() -> Vec<Row> {
    let only = |name: &str, value: &str| bare(200).header(name, value);
    vec![
        row("received", Behaviour::accept(), Expected::Sent),
        row("received, other case", with_status("Received"), Expected::Sent),
        row("no status", bare(200), Expected::Sent),
        row("dropped", verdict::dropped(), passing("dropped")),
        row(
            "dropped, one header",
            only("x-wns-status", "dropped"),
            passing("dropped"),
        ),
        row(
            "dropped, the other header and case",
            only("X-WNS-NotificationStatus", "Dropped"),
            passing("dropped"),
        ),
        row(
            "throttled",
            verdict::channel_throttled(),
            passing_after(THROTTLED, 60),
        ),
        row(
            "throttled, one header",
            only("x-wns-notificationstatus", "channelThrottled"),
            passing_after(THROTTLED, 60),
        ),
    ]
}

/// Each is asked for again over a fresh connection.
fn dead() -> Vec<Row> {
    [
        row(
            "not found",
            verdict::not_found(),
            gone("unregistered", Since::Asked),
        ),
        row(
            "expired",
            verdict::channel_expired(),
            gone("expired_token", Since::Asked),
        ),
        row(
            "expired, other case",
            refused(410, "CHANNEL EXPIRED"),
            gone("expired_token", Since::Asked),
        ),
        row(
            "revoked",
            verdict::channel_revoked(),
            gone("unregistered", Since::Asked),
        ),
        row(
            "410 without a word",
            verdict::gone(),
            gone_if_proven("unregistered"),
        ),
        row(
            "410 with another word",
            refused(410, "Something new"),
            gone_if_proven("unregistered"),
        ),
        row("other app", verdict::forbidden(), gone_if_proven("wrong_app")),
    ]
    .map(|row| row.asked(2))
    .into()
}

fn refusals_of_the_relay() -> Vec<Row> {
    vec![
        row(
            "domain blocked",
            verdict::domain_blocked(),
            lasting(MISCONFIGURED),
        ),
        row(
            "domain blocked, other case, and expired besides",
            refused(410, "domain blocked until the grant has expired"),
            lasting(MISCONFIGURED),
        ),
        row("405", refused(405, "method"), lasting(MISCONFIGURED)),
        row("400", refused(400, "bad header"), lasting(REJECTED)),
        row("413", refused(413, "too large"), lasting(REJECTED)),
    ]
}

fn troubles() -> Vec<Row> {
    vec![
        row(
            "406",
            verdict::throttled(RetryAfter::Absent),
            passing_after(THROTTLED, 60),
        ),
        row(
            "406, hint",
            verdict::throttled(RetryAfter::Seconds(37)),
            passing_after(THROTTLED, 37),
        ),
        row(
            "429, hint",
            refused(429, "slow down").retry_after(RetryAfter::Seconds(37)),
            passing_after(THROTTLED, 37),
        ),
        row("500", refused(500, "internal"), passing(UNAVAILABLE)),
        row(
            "503",
            verdict::unavailable(RetryAfter::Absent),
            passing(UNAVAILABLE),
        ),
    ]
}

/// Without a header of WNS it is somebody else who speaks, and says nothing of the device.
fn not_from_wns() -> Vec<Row> {
    let mut rows: Vec<_> = [
        ("400 of a proxy", 400),
        ("403 of a proxy", 403),
        ("404 of a proxy", 404),
        ("410 of a proxy", 410),
        ("407 of a proxy", 407),
        ("413 of a proxy", 413),
    ]
    .map(|(name, status)| row(name, bare(status), passing(UNAVAILABLE)))
    .into();
    rows.push(row("404, html", Behaviour::html(404), passing(UNAVAILABLE)));
    rows.push(row("502, html", Behaviour::html(502), passing(UNAVAILABLE)));
    for status in [301, 302, 307, 308] {
        let elsewhere = verdict::redirect(status, "https://localhost/elsewhere");
        rows.push(row("redirect", elsewhere, passing(UNAVAILABLE)));
    }
    rows.push(row("another 2xx", bare(202), passing("unknown_outcome")));
    rows
}
