//! No answer but the exact ones ends a device: mutated, arbitrary, and each under every status.

use proptest::prelude::*;

use super::*;

/// By the facts alone, without the reader's help: may this answer be called the end of a device?
fn may_be_gone(status: u16, body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    let details = body["error"]["details"].as_array().cloned().unwrap_or_default();
    let says = |code: &str| {
        details
            .iter()
            .any(|detail| detail["@type"] == FCM_ERROR && detail["errorCode"] == code)
    };
    let fields: Vec<_> = details
        .iter()
        .filter(|detail| detail["@type"] == "type.googleapis.com/google.rpc.BadRequest")
        .filter_map(|detail| detail["fieldViolations"].as_array())
        .flatten()
        .map(|violation| violation["field"].clone())
        .collect();
    match status {
        404 => says("UNREGISTERED"),
        403 => says("SENDER_ID_MISMATCH"),
        400 if fields.is_empty() => says("INVALID_ARGUMENT") && body["error"]["message"] == BAD_TOKEN_MESSAGE,
        400 => says("INVALID_ARGUMENT") && fields.iter().all(|field| field == "message.token"),
        _ => false,
    }
}

/// The exact bodies, and some that are near.
fn seeds() -> Vec<String> {
    vec![
        error("Requested entity was not found.", vec![fcm("UNREGISTERED")]),
        error("Requested entity was not found.", vec![]),
        error(BAD_TOKEN_MESSAGE, vec![fcm("INVALID_ARGUMENT")]),
        error(
            BAD_TOKEN_MESSAGE,
            vec![fcm("INVALID_ARGUMENT"), violations(&["message.token"])],
        ),
        error("Android message is too big", vec![fcm("INVALID_ARGUMENT")]),
        error("SenderId mismatch", vec![fcm("SENDER_ID_MISMATCH")]),
        error("denied", vec![]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_status_with_arbitrary_text_is_a_devices_end(status in 200u16..600, body in ".{0,200}") {
        prop_assert!(!is_gone(&read_body(status, body)));
    }

    #[test]
    fn no_mutated_4xx_but_the_exact_ones_is_a_devices_end(
        seed in 0usize..7,
        status in proptest::sample::select(vec![400u16, 401, 403, 404, 410, 413, 429]),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0u8..3), 0..4),
    ) {
        let mut body = seeds().swap_remove(seed).into_bytes();
        for (at, byte, kind) in edits {
            let at = at.index(body.len());
            match kind {
                0 => body[at] = byte,
                1 => body.insert(at, byte),
                _ => {
                    body.remove(at);
                }
            }
        }
        let gone = is_gone(&read_body(status, body.clone()));
        prop_assert!(!gone || may_be_gone(status, &body), "{} {}", status, String::from_utf8_lossy(&body));
    }
}

#[test]
fn the_exact_bodies_under_their_own_status_are_the_only_ones() {
    for status in 400..500 {
        let gone: Vec<_> = seeds()
            .into_iter()
            .map(|body| is_gone(&read_body(status, body)))
            .collect();
        let expected = match status {
            400 => [false, false, true, true, false, false, false],
            403 => [false, false, false, false, false, true, false],
            404 => [true, false, false, false, false, false, false],
            _ => [false; 7],
        };
        assert_eq!(gone, expected, "{status}");
    }
}
