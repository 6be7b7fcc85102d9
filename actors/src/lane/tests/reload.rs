//! Credentials that change while pushes are under way: no verdict stands on the evidence of others.

use super::*;

fn scope(name: &str, generation: u64) -> Scope {
    Scope {
        name: name.into(),
        generation,
    }
}

fn bad_token(_: &Delivery) -> BoxFuture<'static, Outcome> {
    let gone = Outcome::Gone {
        certainty: Certainty::Conditional,
        reason: Reason::BadToken,
        since: UnixMillis(1),
    };
    sleep(Duration::from_millis(10)).map(|()| gone).boxed()
}

fn is_gone(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Answer(answer) if answer.result == PushResult::InvalidToken)
}

/// A lane whose scope has the proof of a `sent`.
async fn proven() -> Bench {
    let bench = bench(Fake::new(1, sends_after(Duration::from_millis(1))));
    assert!(is_sent(&bench.push(1, 1).await.unwrap()));
    bench.fake.now_does(bad_token);
    bench
}

#[tokio::test(start_paused = true)]
async fn without_a_reload_the_proof_holds() {
    let bench = proven().await;
    assert!(is_gone(&bench.push(1, 2).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_saw_a_reload_is_not_judged_by_the_evidence_of_before() {
    for now in [
        scope("fake/production/topic", 2),
        scope("fake/production/other", 2),
    ] {
        let bench = proven().await;
        let push = bench.push(1, 2);
        bench.settled().await;
        assert_eq!(bench.lane.snapshot().in_flight, 1);
        bench.fake.reload(now);
        let verdict = push.await.unwrap();
        assert_eq!(reason(&verdict), Some(Reason::UnconfirmedToken));
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_that_waited_through_a_reload_is_judged_by_what_it_was_sent_with() {
    let bench = proven().await;
    let (before, waiting) = (bench.push(1, 2), bench.push(1, 3));
    bench.settled().await;
    bench.fake.reload(scope("fake/production/topic", 2));
    bench.fake.now_does(sends_after(Duration::from_millis(1)));
    assert_eq!(reason(&before.await.unwrap()), Some(Reason::UnconfirmedToken));
    assert!(
        is_sent(&waiting.await.unwrap()),
        "the first proof of the new ones"
    );
    bench.fake.now_does(bad_token);
    assert!(is_gone(&bench.push(1, 4).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_sent_of_a_call_that_saw_a_reload_proves_nothing_for_either() {
    let bench = bench(Fake::new(2, sends_after(Duration::from_millis(10))));
    let push = bench.push(1, 1);
    bench.settled().await;
    bench.fake.reload(scope("fake/production/topic", 2));
    assert!(is_sent(&push.await.unwrap()));
    bench.fake.now_does(bad_token);
    let verdict = bench.push(1, 2).await.unwrap();
    assert_eq!(reason(&verdict), Some(Reason::UnconfirmedToken));
}

#[tokio::test(start_paused = true)]
async fn a_certain_verdict_needs_no_proof_and_passes_through_a_reload() {
    let bench = proven().await;
    bench.fake.now_does(|_: &Delivery| {
        let gone = Outcome::Gone {
            certainty: Certainty::Certain,
            reason: Reason::Unregistered,
            since: UnixMillis(1),
        };
        sleep(Duration::from_millis(10)).map(|()| gone).boxed()
    });
    let push = bench.push(1, 2);
    bench.settled().await;
    bench.fake.reload(scope("fake/production/topic", 2));
    assert!(is_gone(&push.await.unwrap()));
}
