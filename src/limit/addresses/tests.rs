use std::{
    future::pending,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::FutureExt as _;
use sovereign_relay_protocol::time::UnixMillis;

use super::*;

const START: Now = Now {
    mono: Duration::from_secs(100),
    unix: UnixMillis(0),
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

fn enroll_all(limits: &Own, address: AddressHash, now: Now) -> usize {
    (0..100_000)
        .take_while(|_| limits.take(address, now).is_ok())
        .count()
}

#[test]
fn an_address_enrolls_ten_times_a_minute_and_two_hundred_times_a_day() {
    let limits = Own::new();
    assert_eq!(enroll_all(&limits, ipv4(1), START), 10);
    let mut total = 10;
    for minute in 1..=60 {
        total += enroll_all(&limits, ipv4(1), START.plus(Duration::from_secs(60 * minute)));
    }
    // The day's budget refills while it is spent: 200 and what came back within the hour.
    assert!((200..=209).contains(&total), "{total}");
    assert_eq!(enroll_all(&limits, ipv4(2), START), 10);
}

#[test]
fn the_moment_a_refusal_names_is_the_moment_an_enrollment_passes() {
    let limits = Own::new();
    let mut now = START;
    for _ in 0..400 {
        enroll_all(&limits, ipv6(1, 2), now);
        let wait = limits.take(ipv6(1, 2), now).unwrap_err();
        assert!(
            limits
                .take(ipv6(1, 2), now.plus(wait - Duration::from_nanos(1)))
                .is_err()
        );
        now = now.plus(wait);
        assert_eq!(limits.take(ipv6(1, 2), now), Ok(()));
    }
}

#[test]
fn the_networks_of_one_ipv6_site_share_ten_times_the_budget() {
    let limits = Own::new();
    let passed: usize = (0..50)
        .map(|host| enroll_all(&limits, ipv6(host, 7), START))
        .sum();
    assert_eq!(passed, 100);
    assert_eq!(enroll_all(&limits, ipv6(1000, 8), START), 10);
}

#[test]
fn an_enrollment_that_the_site_refuses_takes_nothing_of_the_network() {
    let limits = Own::new();
    assert_eq!(
        (0..10)
            .map(|host| enroll_all(&limits, ipv6(host, 7), START))
            .sum::<usize>(),
        100
    );
    for _ in 0..100 {
        assert!(limits.take(ipv6(99, 7), START).is_err());
    }
    assert_eq!(enroll_all(&limits, ipv4(99), START), 10);
}

#[test]
fn addresses_are_forgotten_when_their_budgets_are_full_again() {
    let limits = AddressLimits::new();
    for host in 0..10_000 {
        limits.own.take(ipv4(host), START).unwrap();
    }
    limits.clean(START.plus(Duration::from_secs(60)));
    assert_eq!(limits.addresses(), 10_000, "the day's budget is not whole yet");
    limits.clean(START.plus(Duration::from_secs(24 * 3600)));
    assert_eq!(limits.addresses(), 0);
}

#[test]
fn a_flood_of_addresses_is_refused_and_does_not_grow_the_memory() {
    let limits = Own::new();
    let passed = (0..ADDRESSES as u64 + 1_000)
        .filter(|&host| limits.take(ipv4(host), START).is_ok())
        .count();
    assert_eq!(passed, ADDRESSES);
    assert_eq!(limits.host.day.keys(), ADDRESSES);
}

/// What stands for the budgets of all replicas.
#[derive(Clone, Copy)]
enum Word {
    Says(Waits),
    Fails,
    Hangs,
}

struct Others {
    word: Mutex<Word>,
    calls: AtomicUsize,
}

impl SharedAddresses for Others {
    fn enrollment(&self, _address: AddressHash) -> BoxFuture<'static, Result<Waits, StoreError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match *self.word.lock().unwrap() {
            Word::Says(waits) => std::future::ready(Ok(waits)).boxed(),
            Word::Fails => std::future::ready(Err(StoreError("away".to_owned()))).boxed(),
            Word::Hangs => pending().boxed(),
        }
    }
}

fn says(host: u64, site: u64) -> Word {
    Word::Says(Waits {
        host: Duration::from_secs(host),
        site: Duration::from_secs(site),
    })
}

fn replica(word: Word) -> (AddressLimits, Arc<Others>) {
    let others = Arc::new(Others {
        word: Mutex::new(word),
        calls: AtomicUsize::new(0),
    });
    (AddressLimits::shared(others.clone()), others)
}

async fn asked(
    others: &Others,
    limits: &AddressLimits,
    address: AddressHash,
    now: Now,
) -> Result<(), Duration> {
    let before = others.calls.load(Ordering::SeqCst);
    let answer = limits.enrollment(address, now).await;
    assert_eq!(others.calls.load(Ordering::SeqCst), before + 1, "it asks");
    answer
}

#[tokio::test]
async fn what_others_have_spent_is_refused_and_asked_for_again_only_when_the_wait_is_over() {
    let (limits, others) = replica(says(300, 0));
    let wait = Duration::from_secs(300);
    assert_eq!(asked(&others, &limits, ipv4(1), START).await, Err(wait));
    *others.word.lock().unwrap() = says(0, 0);
    let soon = START.plus(wait - Duration::from_secs(1));
    for _ in 0..100 {
        assert_eq!(
            limits.enrollment(ipv4(1), soon).await,
            Err(Duration::from_secs(1))
        );
    }
    assert_eq!(others.calls.load(Ordering::SeqCst), 1);
    assert_eq!(asked(&others, &limits, ipv4(1), START.plus(wait)).await, Ok(()));
    assert_eq!(asked(&others, &limits, ipv4(2), START).await, Ok(()));
}

#[tokio::test]
async fn a_site_that_is_spent_is_refused_whichever_of_its_networks_comes() {
    let (limits, others) = replica(says(0, 5));
    let wait = Duration::from_secs(5);
    assert_eq!(asked(&others, &limits, ipv6(1, 7), START).await, Err(wait));
    assert_eq!(limits.enrollment(ipv6(2, 7), START).await, Err(wait));
    assert_eq!(others.calls.load(Ordering::SeqCst), 1);
    *others.word.lock().unwrap() = says(0, 0);
    assert_eq!(asked(&others, &limits, ipv6(1, 8), START).await, Ok(()));
}

#[tokio::test]
async fn what_this_replica_alone_has_let_through_is_refused_without_asking() {
    let (limits, others) = replica(says(0, 0));
    for _ in 0..10 {
        assert_eq!(asked(&others, &limits, ipv4(1), START).await, Ok(()));
    }
    assert_eq!(
        limits.enrollment(ipv4(1), START).await,
        Err(Duration::from_secs(6))
    );
    assert_eq!(others.calls.load(Ordering::SeqCst), 10);
}

#[tokio::test(start_paused = true)]
async fn while_nobody_answers_a_replica_counts_for_itself() {
    for word in [Word::Fails, Word::Hangs] {
        let (limits, _) = replica(word);
        for _ in 0..10 {
            assert_eq!(limits.enrollment(ipv4(1), START).await, Ok(()));
        }
        assert_eq!(
            limits.enrollment(ipv4(1), START).await,
            Err(Duration::from_secs(6))
        );
    }
}
