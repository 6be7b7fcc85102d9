//! Instances that name the same rendezvous.

use super::*;
use crate::http::tests::wire::DEADLINE;

#[actix_web::test]
async fn of_three_instances_at_a_rendezvous_two_meet_and_the_third_is_told_it_is_full() {
    let relay = Relay::start().await;
    let keys = [relay.enroll().await, relay.enroll().await, relay.enroll().await];
    let wanted = json!({"rendezvous": RENDEZVOUS, "ttlSeconds": 300});
    let first = made(&relay, &keys[0], wanted.clone()).await;
    assert!(first["tickets"].get("b").is_none(), "{first}");
    // The first call's life holds.
    let joining = json!({"rendezvous": RENDEZVOUS, "ttlSeconds": 30, "turn": true});
    let answer = create(&relay, &keys[1], &joining).await;
    assert_eq!(answer.status, 200);
    let second = answer.json();
    assert!(second["tickets"].get("a").is_none(), "{second}");
    assert_eq!(
        (id_of(&first), &first["expiresAt"]),
        (id_of(&second), &second["expiresAt"])
    );
    let (a, b) = (claims(&relay, &first, "a"), claims(&relay, &second, "b"));
    assert_eq!((a.session, a.incarnation), (b.session, b.incarnation));
    assert_ne!(a.instance, b.instance);
    let third = create(&relay, &keys[2], &wanted).await;
    assert_eq!(third.refusal(), (409, "session_full".to_owned()));
    for (key, own) in [(&keys[0], &first), (&keys[1], &second)] {
        let again = create(&relay, key, &wanted).await;
        assert_eq!((again.status, &again.json()["tickets"]), (200, &own["tickets"]));
    }
    let bound = bind(&relay, b).await.unwrap();
    assert_eq!((bound.instance, bound.settings.turn), (b.instance, false));
}

#[actix_web::test]
async fn the_id_at_a_rendezvous_tells_nothing_of_it_and_another_one_leads_elsewhere() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let session = made(&relay, &key, json!({"rendezvous": RENDEZVOUS})).await;
    assert!(!RENDEZVOUS.contains(id_of(&session)) && !session.to_string().contains(RENDEZVOUS));
    let elsewhere = made(&relay, &key, json!({"rendezvous": RENDEZVOUS.to_lowercase()})).await;
    assert_ne!(id_of(&session), id_of(&elsewhere));
}

#[actix_web::test]
async fn another_e2e_at_a_rendezvous_is_a_conflict_for_whoever_asks() {
    let relay = Relay::start().await;
    let (first, second) = (relay.enroll().await, relay.enroll().await);
    made(&relay, &first, json!({"rendezvous": RENDEZVOUS})).await;
    let other = json!({"rendezvous": RENDEZVOUS, "e2e": "optional"});
    for key in [&first, &second] {
        let answer = create(&relay, key, &other).await;
        assert_eq!(answer.refusal(), (409, "settings_conflict".to_owned()));
    }
    // Nobody took the second place by asking.
    let answer = create(&relay, &second, &json!({"rendezvous": RENDEZVOUS})).await;
    assert_eq!(answer.status, 200);
}

#[actix_web::test]
async fn a_ticket_of_an_earlier_session_at_the_same_rendezvous_opens_nothing() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let wanted = json!({"rendezvous": RENDEZVOUS});
    let earlier = made(&relay, &key, wanted.clone()).await;
    assert_eq!(one(&relay, "DELETE", &key, id_of(&earlier)).await.status, 204);
    let later = made(&relay, &key, wanted).await;
    assert_eq!(id_of(&earlier), id_of(&later), "one rendezvous, one id");
    let refused = bind(&relay, claims(&relay, &earlier, "a")).await;
    assert!(
        matches!(refused, Err(BindRefusal::Gone(Gone::NoSession))),
        "{refused:?}"
    );
    assert!(bind(&relay, claims(&relay, &later, "a")).await.is_ok());
}

#[actix_web::test]
async fn many_at_once_at_one_rendezvous_make_one_session_with_two_places() {
    let relay = Relay::start().await;
    let mut keys = Vec::new();
    for _ in 0..8 {
        keys.push(relay.enroll().await);
    }
    let wanted = json!({"rendezvous": RENDEZVOUS});
    let all = keys.iter().map(|key| create(&relay, key, &wanted));
    let answers = tokio::time::timeout(DEADLINE, futures_util::future::join_all(all))
        .await
        .unwrap();
    let count = |status| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(201), count(200), count(409)), (1, 1, 6));
}
