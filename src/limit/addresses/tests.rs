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

fn enroll_all(limits: &AddressLimits, address: AddressHash, now: Now) -> usize {
    (0..100_000)
        .take_while(|_| limits.enrollment(address, now).is_ok())
        .count()
}

#[test]
fn an_address_enrolls_ten_times_a_minute_and_two_hundred_times_a_day() {
    let limits = AddressLimits::new();
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
    let limits = AddressLimits::new();
    let mut now = START;
    for _ in 0..400 {
        enroll_all(&limits, ipv6(1, 2), now);
        let wait = limits.enrollment(ipv6(1, 2), now).unwrap_err();
        assert!(
            limits
                .enrollment(ipv6(1, 2), now.plus(wait - Duration::from_nanos(1)))
                .is_err()
        );
        now = now.plus(wait);
        assert_eq!(limits.enrollment(ipv6(1, 2), now), Ok(()));
    }
}

#[test]
fn the_networks_of_one_ipv6_site_share_ten_times_the_budget() {
    let limits = AddressLimits::new();
    let passed: usize = (0..50)
        .map(|host| enroll_all(&limits, ipv6(host, 7), START))
        .sum();
    assert_eq!(passed, 100);
    assert_eq!(enroll_all(&limits, ipv6(1000, 8), START), 10);
}

#[test]
fn an_enrollment_that_the_site_refuses_takes_nothing_of_the_network() {
    let limits = AddressLimits::new();
    assert_eq!(
        (0..10)
            .map(|host| enroll_all(&limits, ipv6(host, 7), START))
            .sum::<usize>(),
        100
    );
    for _ in 0..100 {
        assert!(limits.enrollment(ipv6(99, 7), START).is_err());
    }
    assert_eq!(enroll_all(&limits, ipv4(99), START), 10);
}

#[test]
fn addresses_are_forgotten_when_their_budgets_are_full_again() {
    let limits = AddressLimits::new();
    for host in 0..10_000 {
        limits.enrollment(ipv4(host), START).unwrap();
    }
    limits.clean(START.plus(Duration::from_secs(60)));
    assert_eq!(limits.addresses(), 10_000, "the day's budget is not whole yet");
    limits.clean(START.plus(Duration::from_secs(24 * 3600)));
    assert_eq!(limits.addresses(), 0);
}

#[test]
fn a_flood_of_addresses_is_refused_and_does_not_grow_the_memory() {
    let limits = AddressLimits::new();
    let passed = (0..ADDRESSES as u64 + 1_000)
        .filter(|&host| limits.enrollment(ipv4(host), START).is_ok())
        .count();
    assert_eq!(passed, ADDRESSES);
    assert_eq!(limits.addresses(), ADDRESSES);
}
