//! A bug in one instance's actor costs that caller a 500 and nobody else anything.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use sovereign_relay::app::Ports;

use crate::support::{
    answer::Answer,
    in_process::{InProcess, Treacherous},
};

/// More than there are threads for actors, so that some share the thread of the one that panics.
const OTHERS: usize = 16;

/// An instance of the relay under test.
#[derive(Clone)]
struct Caller {
    http: reqwest::Client,
    url: String,
    key: String,
}

impl Caller {
    /// Each from an address of its own, so that none is held to a common budget.
    async fn enroll(relay: &InProcess, number: usize) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = http
            .post(format!("{}/v1/enroll", relay.url))
            .header("x-forwarded-for", format!("203.0.113.{number}"));
        let answer = Answer::from(request).await;
        Self {
            http,
            url: relay.url.clone(),
            key: answer.body["instanceKey"].as_str().unwrap().to_owned(),
        }
    }

    async fn push(self) -> Answer {
        let body = json!({ "deviceToken": "abcd", "platform": "ios", "encryptedPayload": "sealed" });
        let request = self.http.post(format!("{}/v1/push", self.url));
        Answer::from(request.bearer_auth(&self.key).json(&body)).await
    }
}

fn all_sent(answers: &[Answer]) {
    for answer in answers {
        assert_eq!(
            (answer.status.as_u16(), answer.word()),
            (200, "sent"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_panic_in_one_actor_is_a_500_with_a_body_and_pushes_of_others_before_during_and_after_it_succeed() {
    let provider = Treacherous::new();
    let relay = InProcess::start(Ports {
        providers: Some(provider.everywhere()),
        ..Ports::default()
    })
    .await;
    let unlucky = Caller::enroll(&relay, 0).await;
    let others = join_all((1..=OTHERS).map(|number| Caller::enroll(&relay, number))).await;
    let pushes = || others.iter().cloned().map(|caller| tokio::spawn(caller.push()));

    all_sent(&[unlucky.clone().push().await]);
    provider.hold(true);
    let before: Vec<_> = pushes().collect();
    provider.holds(OTHERS).await;
    provider.panic_next();
    let refused = unlucky.clone().push().await;
    assert_eq!(
        (refused.status.as_u16(), refused.word()),
        (500, "internal_error"),
        "{refused:?}"
    );
    assert!(
        !refused.body.to_string().contains("injected"),
        "a fault's text is not for callers"
    );
    assert!(!provider.is_armed(), "it was the actor that panicked");
    let after: Vec<_> = pushes().collect();
    provider.holds(2 * OTHERS).await;
    assert!(
        before.iter().all(|push| !push.is_finished()),
        "they were under way all the time"
    );
    provider.hold(false);

    for pushes in [before, after] {
        let answers = join_all(pushes).await.into_iter().map(Result::unwrap);
        all_sent(&answers.collect::<Vec<_>>());
    }
    all_sent(&join_all((0..20).map(|_| unlucky.clone().push())).await);
    drop(relay);
    assert_eq!(Arc::strong_count(&provider), 1, "nothing of the relay is left");
}
