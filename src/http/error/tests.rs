//! One form for every refusal.

use actix_web::body::to_bytes;
use proptest::prelude::*;

use sovereign_relay_actors::{push::Refusal, wait::Limit};

use super::*;

#[actix_web::test]
async fn every_code_becomes_its_status_and_a_json_body() {
    for code in ErrorCode::ALL {
        let response = ApiError::new(code, "a sentence").error_response();
        assert_eq!(response.status().as_u16(), code.status());
        assert_eq!(
            response.headers().get(header::CONTENT_TYPE).unwrap(),
            "application/json"
        );
        let body = to_bytes(response.into_body()).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            body,
            serde_json::json!({"error": code.as_str(), "message": "a sentence"})
        );
    }
}

#[test]
fn every_429_502_and_passing_503_names_a_moment_to_retry() {
    for code in ErrorCode::ALL {
        let response = ApiError::new(code, "a sentence").error_response();
        let must =
            matches!(code.status(), 429 | 502) || matches!(code, ErrorCode::Overloaded | ErrorCode::Draining);
        assert_eq!(
            response.headers().contains_key(header::RETRY_AFTER),
            must,
            "{code:?}"
        );
    }
}

#[test]
fn a_suspension_without_end_names_no_moment_and_one_with_an_end_does() {
    let endless = ApiError::from(Refusal::Suspended { retry_after: None }).error_response();
    assert!(!endless.headers().contains_key(header::RETRY_AFTER));
    let after = Some(Duration::from_millis(90_001));
    let ending = ApiError::from(Refusal::Suspended { retry_after: after }).error_response();
    assert_eq!(ending.headers().get(header::RETRY_AFTER).unwrap(), "91");
}

#[test]
fn a_401_names_the_scheme_that_would_help() {
    let response = ApiError::unauthorized("no key").error_response();
    assert_eq!(
        response.headers().get(header::WWW_AUTHENTICATE).unwrap(),
        "Bearer"
    );
}

#[test]
fn a_batch_result_says_the_same_as_the_answer_of_a_single_push() {
    let refusal = Refusal::RateLimited(Limit::Instance.wait(Duration::from_millis(1500)));
    let BatchResult::Refused {
        error,
        retry_after_seconds,
        ..
    } = ApiError::from(refusal).into_batch_result()
    else {
        panic!("a refusal stays one");
    };
    assert_eq!((error, retry_after_seconds), (ErrorCode::RateLimited, Some(2)));
}

#[test]
fn each_limit_has_a_sentence_of_its_own_and_none_speaks_of_a_header_that_a_batch_lacks() {
    let limits = [
        Limit::UnderWay,
        Limit::Instance,
        Limit::Group,
        Limit::Device,
        Limit::Slowed,
        Limit::Strangers,
    ];
    let told = limits.map(|limit| {
        let refusal = Refusal::RateLimited(limit.wait(Duration::from_secs(1)));
        ApiError::from(refusal).message.into_owned()
    });
    let different: std::collections::BTreeSet<_> = told.iter().collect();
    assert_eq!(different.len(), limits.len());
    assert!(told.iter().all(|sentence| !sentence.contains("Retry-After")));
}

proptest! {
    #[test]
    fn a_retry_hint_is_never_before_the_moment_it_stands_for(millis in 0u64..10_000_000) {
        let seconds = whole_seconds(Duration::from_millis(millis));
        prop_assert!(seconds >= 1 && seconds * 1000 >= millis);
        prop_assert!(seconds == 1 || (seconds - 1) * 1000 < millis);
    }
}
