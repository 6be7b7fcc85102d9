//! "FCM error codes", and the answers seen beside them.

use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{
    Behaviour, Pace, RetryAfter,
    fcm::verdict::{self, error, fcm_detail, fcm_error, violation},
};

use super::{
    Expected, MISCONFIGURED, Proof, Row, Since, check, check_apart, gone, gone_if_proven, lasting, passing,
    passing_after, row,
};

/// More than any error of Google's.
const TOO_LARGE_FOR_AN_ERROR: usize = 100 * 1024;
const BAD_TOKEN: &str = "The registration token is not a valid FCM registration token";
const INVALID: &str = "INVALID_ARGUMENT";
const REJECTED: &str = "payload_rejected";
const UNAVAILABLE: &str = "provider_unavailable";

#[tokio::test]
async fn every_answer_of_fcm_has_its_verdict_after_a_sent() {
    check(Platform::Android, Proof::Fresh, rows()).await;
}

#[tokio::test]
async fn every_answer_of_fcm_has_its_verdict_without_any_sent_and_none_that_needs_proof_deletes_a_device() {
    check(Platform::Android, Proof::None, rows()).await;
}

#[tokio::test]
async fn answers_of_fcm_that_are_about_everybody_have_their_verdict() {
    let hint = RetryAfter::Seconds(37);
    check_apart(
        Platform::Android,
        vec![
            row(
                "project quota",
                verdict::project_quota(RetryAfter::Absent),
                passing_after("provider_throttled", 60),
            ),
            row(
                "project quota, hint",
                verdict::project_quota(hint.clone()),
                passing_after("provider_throttled", 37),
            ),
            row(
                "429 without detail",
                verdict::too_many_requests(hint.clone()),
                passing_after("provider_throttled", 37),
            ),
            row(
                "503, hint",
                verdict::unavailable(hint),
                passing_after(UNAVAILABLE, 37),
            ),
            row(
                "401, also with a fresh token",
                verdict::unauthenticated(),
                passing_after(MISCONFIGURED, 10),
            )
            .asked(2),
        ],
    )
    .await;
}

fn rows() -> Vec<Row> {
    let mut rows = vec![row("accepted", Behaviour::accept(), Expected::Sent)];
    rows.extend(dead());
    rows.extend(almost_dead());
    rows.extend(almost_bad_tokens());
    rows.extend(refusals_of_the_relay());
    rows.extend(troubles());
    rows
}

fn dead() -> Vec<Row> {
    vec![
        row(
            "unregistered",
            verdict::unregistered(),
            gone("unregistered", Since::Asked),
        ),
        row("bad token", verdict::bad_token(), gone_if_proven("bad_token")),
        row(
            "bad token, named",
            verdict::bad_token_with_violation(),
            gone_if_proven("bad_token"),
        ),
        row(
            "other project",
            verdict::sender_id_mismatch(),
            gone_if_proven("wrong_app"),
        ),
    ]
}

/// What looks like the end of a device and is not.
fn almost_dead() -> Vec<Row> {
    let unregistered = |status| fcm_error(status, "NOT_FOUND", "UNREGISTERED");
    vec![
        row(
            "404 without FcmError",
            verdict::not_found_without_fcm_error(),
            lasting(MISCONFIGURED),
        ),
        row(
            "404, another FcmError",
            fcm_error(404, "NOT_FOUND", "SOMETHING_NEW"),
            lasting(MISCONFIGURED),
        ),
        row("404, html", Behaviour::html(404), passing(UNAVAILABLE)).alarming(),
        row("404, no body", Behaviour::status(404), passing(UNAVAILABLE)).alarming(),
        row(
            "404, word in the text",
            error(404, "UNREGISTERED", "UNREGISTERED", Vec::new()),
            lasting(MISCONFIGURED),
        ),
        row(
            "404, larger than any error",
            verdict::unregistered().padded_to(TOO_LARGE_FOR_AN_ERROR),
            passing(UNAVAILABLE),
        ),
        row("404, cut", cut(verdict::unregistered()), passing(UNAVAILABLE)),
        row(
            "403, cut",
            cut(verdict::permission_denied()),
            passing(UNAVAILABLE),
        ),
        row("401, cut", cut(verdict::unauthenticated()), passing(UNAVAILABLE)),
        row("400, unregistered", unregistered(400), lasting(REJECTED)),
        row("403, unregistered", unregistered(403), lasting(MISCONFIGURED)),
        row(
            "404, other project",
            fcm_error(404, "NOT_FOUND", "SENDER_ID_MISMATCH"),
            lasting(MISCONFIGURED),
        ),
        row("410", Behaviour::status(410), passing(UNAVAILABLE)),
    ]
}

/// The connection ends within the body.
fn cut(answer: Behaviour) -> Behaviour {
    answer.paced(Pace::CutAfter { bytes: 40 })
}

/// INVALID_ARGUMENT that is about something else than the token, or not surely about it.
fn almost_bad_tokens() -> Vec<Row> {
    let rejected =
        |name, message: &str, details| row(name, error(400, INVALID, message, details), lasting(REJECTED));
    vec![
        row("data", verdict::bad_data(), lasting(REJECTED)),
        row("size", verdict::too_large(), lasting(REJECTED)),
        rejected(
            "newer wording of the size",
            "Message is too large. The maximum is 4K (4096 bytes).",
            vec![fcm_detail(INVALID)],
        ),
        rejected("the sentence without FcmError", BAD_TOKEN, Vec::new()),
        rejected(
            "the sentence within another",
            "The registration token is not a valid FCM registration token, or the ttl is wrong",
            vec![fcm_detail(INVALID)],
        ),
        rejected(
            "the sentence, another field named",
            BAD_TOKEN,
            vec![fcm_detail(INVALID), violation("message.data[0].value", "bad")],
        ),
        rejected(
            "the token and another field named",
            BAD_TOKEN,
            vec![
                fcm_detail(INVALID),
                violation("message.token", BAD_TOKEN),
                violation("message.android.ttl", "bad"),
            ],
        ),
        row("400, html", Behaviour::html(400), passing(UNAVAILABLE)),
        row("400, cut", cut(verdict::bad_data()), passing(UNAVAILABLE)),
        row("400, no body", Behaviour::status(400), passing(UNAVAILABLE)),
        row("413", Behaviour::status(413), passing(UNAVAILABLE)),
        row(
            "413 of Google",
            error(413, "X", "No.", Vec::new()),
            lasting(REJECTED),
        ),
    ]
}

fn refusals_of_the_relay() -> Vec<Row> {
    vec![
        row(
            "third party",
            verdict::third_party_auth_error(),
            lasting(MISCONFIGURED),
        ),
        row("403", verdict::permission_denied(), lasting(MISCONFIGURED)),
        row("403, html", Behaviour::html(403), passing(UNAVAILABLE)).alarming(),
        row("405", Behaviour::status(405), passing(UNAVAILABLE)),
        row(
            "405 of Google",
            error(405, "X", "No.", Vec::new()),
            lasting(MISCONFIGURED),
        ),
    ]
}

fn troubles() -> Vec<Row> {
    vec![
        row(
            "device quota",
            verdict::device_quota(RetryAfter::Seconds(37)),
            passing_after("device_throttled", 37),
        ),
        row(
            "device quota, no hint",
            verdict::device_quota(RetryAfter::Absent),
            passing_after("device_throttled", 60),
        ),
        row(
            "429, cut",
            cut(verdict::project_quota(RetryAfter::Seconds(37))),
            passing_after("provider_throttled", 37),
        ),
        row("500", verdict::internal(), passing(UNAVAILABLE)),
        row(
            "503",
            verdict::unavailable(RetryAfter::Absent),
            passing(UNAVAILABLE),
        ),
        row("502, html", verdict::html_bad_gateway(), passing(UNAVAILABLE)),
        row(
            "500, unregistered",
            fcm_error(500, "NOT_FOUND", "UNREGISTERED"),
            passing(UNAVAILABLE),
        ),
        row("redirect", Behaviour::status(302), passing(UNAVAILABLE)),
        row("another 2xx", Behaviour::status(202), passing("unknown_outcome")),
    ]
}
