//! The enrollment secret is changed: replicas of neighbouring steps run side by side and name a rendezvous differently.

use serde_json::json;

use super::*;
use crate::support::{answer::Answer, peer::load, secret_change::steps};

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_name_one_rendezvous_at_replicas_of_neighbouring_steps_meet_and_talk() {
    let redis = Server::start();
    let replicas = steps().map(|step| Relay::start(step.set("REDIS_URL", redis.url())));
    let replicas = join_all(replicas).await;
    join_all(replicas.iter().map(is_ready)).await;
    let pairs = replicas.iter().zip(replicas.iter().skip(1));
    let both_ways = pairs.flat_map(|(one, other)| [(one, other), (other, one)]);
    for (number, (one, other)) in both_ways.enumerate() {
        let rendezvous = format!("{number}-at-which-two-instances-meet");
        let wanted = json!({ "rendezvous": rendezvous, "e2e": "optional" });
        let first = one.session(&one.enroll().await, wanted.clone()).await;
        let answer = Answer::from(other.session_request(&other.enroll().await, &wanted)).await;
        assert_eq!(answer.status, 200, "it was there: {answer:?}");
        let second = Made::read(&answer);
        assert_eq!(first.id, second.id);

        let (mut a, _) = first.join("a", load(1)).await;
        let (mut b, _) = second.join("b", load(2)).await;
        a.message(1, "an offer").await;
        assert_eq!(b.next_of("msg").await["d"], "an offer");
    }
}
