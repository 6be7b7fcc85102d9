use sovereign_relay_actors::ports::{Clock as _, Receipt};
use sovereign_relay_protocol::id::InstanceId;

use super::*;
use crate::{
    clock::SystemClock,
    limit::{EmbeddedLimits, LeasedLimits},
    store::redis::{kit::Server, link::tests::link},
};

const ACCOUNT: Account = Account::Instance(InstanceId::from_bytes([1; 16]));

fn ask(per_minute: u32, wanted: u32, charge: u32) -> Ask {
    Ask {
        per_minute,
        wanted,
        charge,
    }
}

#[tokio::test]
async fn a_budget_grants_what_is_there_and_names_the_moment_of_the_next_token() {
    let server = Server::start_frozen();
    let wired = link(&server).await;
    let budgets = RedisBudgets::new(wired.redis().clone());
    let first = budgets.lease(ACCOUNT, ask(60, 40, 0)).await.unwrap();
    assert_eq!((first.granted, first.left, first.wait), (40, 20, Duration::ZERO));
    let second = budgets.lease(ACCOUNT, ask(60, 40, 0)).await.unwrap();
    assert_eq!((second.granted, second.left), (20, 0));
    assert_eq!(second.wait, Duration::from_secs(1));
    server.pass(second.wait - Duration::from_millis(1));
    let early = budgets.lease(ACCOUNT, ask(60, 1, 0)).await.unwrap();
    assert_eq!((early.granted, early.wait), (0, Duration::from_millis(1)));
    server.pass(early.wait);
    let third = budgets.lease(ACCOUNT, ask(60, 1, 0)).await.unwrap();
    assert_eq!(third.granted, 1, "at the moment that was named");
}

#[tokio::test]
async fn a_charge_is_taken_whether_it_is_there_or_not_but_never_more_than_a_minute() {
    let server = Server::start_frozen();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let budgets = RedisBudgets::new(redis);
    let charged = budgets.lease(ACCOUNT, ask(60, 60, 50)).await.unwrap();
    assert_eq!((charged.granted, charged.left), (10, 0));
    let again = budgets.lease(ACCOUNT, ask(60, 1, 1000)).await.unwrap();
    assert_eq!(again.granted, 0);
    assert!(again.wait <= Duration::from_secs(1), "{again:?}");
}

#[tokio::test]
async fn accounts_and_rates_have_budgets_of_their_own_that_end_when_they_are_full() {
    let server = Server::start_frozen();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let budgets = RedisBudgets::new(redis.clone());
    for (account, per_minute) in [
        (ACCOUNT, 60),
        (ACCOUNT, 120),
        (Account::Group(1), 60),
        (Account::Group(2), 60),
        (Account::Sessions(InstanceId::from_bytes([1; 16])), 60),
        (Account::Turn(InstanceId::from_bytes([1; 16])), 60),
    ] {
        let grant = budgets.lease(account, ask(per_minute, 30, 0)).await.unwrap();
        assert_eq!(grant.left, per_minute - 30);
        let life: i64 = redis
            .send(redis::cmd("PTTL").arg(key(account, per_minute)))
            .await
            .unwrap();
        let full_after = 30 * 60_000 / i64::from(per_minute);
        assert!((1..=full_after).contains(&life), "{life} of {full_after}");
    }
}

#[tokio::test]
async fn of_many_leases_at_once_all_together_get_the_budget_and_no_more() {
    let server = Server::start_frozen();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let budgets = RedisBudgets::new(redis);
    let leases = (0..100).map(|_| budgets.lease(ACCOUNT, ask(600, 10, 0)));
    let granted: u32 = futures_util::future::join_all(leases)
        .await
        .into_iter()
        .map(|grant| grant.unwrap().granted)
        .sum();
    assert_eq!(granted, 600);
}

#[tokio::test]
async fn who_hops_between_replicas_makes_no_more_sessions_and_gets_no_more_turn_credentials() {
    let server = Server::start();
    let wired = link(&server).await;
    let clock = Arc::new(SystemClock::new());
    let replicas: Vec<LeasedLimits> = (0..3)
        .map(|_| {
            let budgets = RedisBudgets::new(wired.redis().clone());
            budgets.set_replicas(3);
            LeasedLimits::new(Arc::new(EmbeddedLimits::new()), Arc::new(budgets), clock.clone())
        })
        .collect();
    let instance = InstanceId::from_bytes([1; 16]);
    for (account, per_minute) in [(Account::Sessions(instance), 120), (Account::Turn(instance), 30)] {
        let (began, mut passed) = (clock.now().mono, 0);
        for replica in replicas.iter().cycle().take(300) {
            let spent = replica.spend(account, per_minute, clock.now()).await;
            passed += u32::from(spent.map(Receipt::keep).is_ok());
        }
        let refilled = per_minute * u32::try_from((clock.now().mono - began).as_secs() + 1).unwrap() / 60;
        assert!(
            (per_minute..=per_minute + refilled + 1).contains(&passed),
            "{account:?}: {passed}"
        );
    }
}
