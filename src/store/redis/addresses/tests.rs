use futures_util::future::join_all;

use super::*;
use crate::store::redis::{kit::Server, link::tests::link};

const TAKEN: Waits = Waits {
    host: Duration::ZERO,
    site: Duration::ZERO,
};

fn ipv4(host: u64) -> AddressHash {
    AddressHash { host, site: None }
}

fn ipv6(host: u64, site: u64) -> AddressHash {
    AddressHash {
        host,
        site: Some(site),
    }
}

async fn take_all(budgets: &RedisAddresses, address: AddressHash) -> (u32, Waits) {
    let mut taken = 0;
    loop {
        match budgets.enrollment(address).await.unwrap() {
            TAKEN => taken += 1,
            waits => return (taken, waits),
        }
    }
}

#[tokio::test]
async fn an_address_has_ten_a_minute_and_two_hundred_a_day_by_the_servers_clock() {
    let server = Server::start_frozen();
    let wired = link(&server).await;
    let budgets = wired.addresses();
    let (mut taken, waits) = take_all(&budgets, ipv4(1)).await;
    assert_eq!(
        (taken, waits.host, waits.site),
        (10, Duration::from_secs(6), Duration::ZERO)
    );
    server.pass(waits.host - Duration::from_millis(1));
    assert_eq!(take_all(&budgets, ipv4(1)).await.0, 0);
    // One for the wait and one for the frozen clock, which is true to some microseconds.
    server.pass(Duration::from_millis(2));
    assert_eq!(take_all(&budgets, ipv4(1)).await.0, 1);
    taken += 1;
    for _ in 0..30 {
        server.pass(Duration::from_secs(60));
        taken += take_all(&budgets, ipv4(1)).await.0;
    }
    // The day's budget refills while it is spent: 200 and what came back within the half hour.
    assert!((200..=205).contains(&taken), "{taken}");
    server.pass(Duration::from_secs(60));
    assert!(take_all(&budgets, ipv4(1)).await.0 <= 1, "one in seven minutes");
    assert_eq!(take_all(&budgets, ipv4(2)).await.0, 10, "another one has its own");
}

#[tokio::test]
async fn the_networks_of_a_site_share_its_budget_and_a_refusal_by_the_one_takes_nothing_of_the_other() {
    let server = Server::start_frozen();
    let wired = link(&server).await;
    let budgets = wired.addresses();
    let mut taken = 0;
    for host in 0..10 {
        taken += take_all(&budgets, ipv6(host, 7)).await.0;
    }
    assert_eq!(taken, 100);
    let (none, waits) = take_all(&budgets, ipv6(10, 7)).await;
    assert_eq!((none, waits.host), (0, Duration::ZERO));
    assert!(!waits.site.is_zero());
    server.pass(Duration::from_secs(60));
    assert_eq!(take_all(&budgets, ipv6(10, 7)).await.0, 10);
}

#[tokio::test]
async fn of_many_at_once_ten_pass_and_each_key_has_an_end() {
    let server = Server::start_frozen();
    let wired = link(&server).await;
    let budgets = wired.addresses();
    let all = join_all((0..50).map(|_| budgets.enrollment(ipv6(1, 2)))).await;
    let passed = all.into_iter().filter(|waits| *waits.as_ref().unwrap() == TAKEN);
    assert_eq!(passed.count(), 10);
    let keys = server.answer(&["KEYS", "relay:{enroll:*"]);
    assert_eq!(keys.lines().count(), 4, "{keys:?}");
    for key in keys.lines() {
        let life: i64 = wired.redis().send(redis::cmd("PTTL").arg(key)).await.unwrap();
        assert!(life > 0, "{key}: {life}");
    }
}
