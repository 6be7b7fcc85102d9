//! The provider is slow, silent, down, throttling or broken.

use super::*;

#[tokio::test(start_paused = true)]
async fn callers_of_a_black_holed_provider_are_answered_by_the_deadline() {
    let bench = bench(Fake::new(10, black_hole));
    let began = bench.clock.now().mono;
    let pushes: Vec<_> = (0..100).map(|number| bench.push(number % 7, number)).collect();
    let mut unknown = 0;
    for push in pushes {
        let verdict = push.await.unwrap();
        unknown += usize::from(reason(&verdict) == Some(Reason::UnknownOutcome));
        assert!(is_overloaded(&verdict) || reason(&verdict) == Some(Reason::UnknownOutcome));
    }
    assert_eq!(
        unknown, 10,
        "those that were under way may have been accepted, the others were not"
    );
    assert!(bench.clock.now().mono - began <= DEADLINE + Duration::from_millis(5));
    bench.lane.close().await;
    assert_eq!(bench.fake.under_way.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lane_next_to_a_black_holed_one_is_as_fast_as_ever() {
    let dead = bench(Fake::new(10, black_hole));
    let well = bench(Fake::new(10, sends_after(Duration::from_millis(5))));
    let waiting: Vec<_> = (0..500).map(|number| dead.push(1 + number % 7, number)).collect();
    let began = well.clock.now().mono;
    for number in 0..50 {
        assert!(is_sent(&well.push(1, number).await.unwrap()));
    }
    assert!(well.clock.now().mono - began <= Duration::from_millis(50 * 7));
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_costs_its_own_push_only() {
    let bench = bench(Fake::new(1, |delivery: &Delivery| {
        assert!(delivery.ttl_seconds != 13, "a bug");
        sends_after(Duration::from_millis(1))(delivery)
    }));
    for number in 0..50 {
        let mut job = bench.job(1, number);
        job.delivery.ttl_seconds = 13;
        let verdict = bench.lane.deliver(job).await;
        assert_eq!(
            verdict,
            Verdict::Answer(PushAnswer::failed(Reason::UnknownOutcome, true, None))
        );
    }
    assert!(is_sent(&bench.push(1, 99).await.unwrap()));
    assert_eq!(bench.lane.snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_burst_behind_a_project_wide_429_costs_one_call_and_shares_what_is_left_afterwards() {
    let bench = bench(Fake::new(1, |_: &Delivery| {
        let failure = Failure {
            reason: Reason::ProviderThrottled,
            retryable: true,
            retry_after: Some(Duration::from_secs(37)),
            hold: Hold::Provider,
            health: Health::Answered,
        };
        sleep(Duration::from_millis(50))
            .map(|()| Outcome::Failed(failure))
            .boxed()
    }));
    let pushes: Vec<_> = (0..300_u64)
        .map(|number| bench.push(number % 5, number))
        .collect();
    for push in pushes {
        let verdict = push.await.unwrap();
        let expected = PushAnswer::failed(Reason::ProviderThrottled, true, Some(37));
        assert_eq!(verdict, Verdict::Answer(expected));
    }
    assert_eq!(bench.fake.calls(), 1);
    sleep(Duration::from_secs(30)).await;
    let again = bench.push(1, 1).await.unwrap();
    assert_eq!(
        again,
        Verdict::Answer(PushAnswer::failed(Reason::ProviderThrottled, true, Some(7)))
    );
    sleep(Duration::from_secs(7)).await;
    let order = Arc::new(Mutex::new(VecDeque::new()));
    let noted = order.clone();
    bench.fake.now_does(move |delivery| {
        noted.lock().unwrap().push_back(delivery.ttl_seconds);
        sends_after(Duration::from_millis(50))(delivery)
    });
    let shared: FuturesUnordered<_> = (0..60_u32)
        .map(|number| {
            let of = if number < 50 { 1 } else { number };
            let mut job = bench.job(of.into(), number.into());
            job.delivery.ttl_seconds = of;
            let lane = bench.lane.clone();
            async move { lane.deliver(job).await }
        })
        .collect();
    assert!(shared.all(|verdict| std::future::ready(is_sent(&verdict))).await);
    let first: Vec<_> = order.lock().unwrap().iter().take(12).copied().collect();
    assert_eq!(
        first,
        [1, 1, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59],
        "each has a turn, the flood waits"
    );
}

#[tokio::test(start_paused = true)]
async fn a_throttled_device_costs_no_call_and_the_others_go_on() {
    let throttled = Failure {
        reason: Reason::DeviceThrottled,
        retryable: true,
        retry_after: Some(Duration::from_secs(20)),
        hold: Hold::Token,
        health: Health::Answered,
    };
    let bench = bench(Fake::new(4, fails(throttled)));
    bench.push(1, 1).await.unwrap();
    bench.fake.now_does(sends_after(Duration::from_millis(1)));
    for _ in 0..20 {
        assert_eq!(
            reason(&bench.push(1, 1).await.unwrap()),
            Some(Reason::DeviceThrottled)
        );
    }
    assert!(is_sent(&bench.push(1, 2).await.unwrap()));
    assert_eq!(bench.fake.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn unreachable_for_twenty_seconds_then_back_pushes_are_sent_within_one_step_without_a_restart() {
    let bench = bench(Fake::new(100, |_: &Delivery| {
        std::future::ready(Outcome::Unreachable).boxed()
    }));
    for number in 0..20 {
        assert!(matches!(
            bench.push(1, number).await.unwrap(),
            Verdict::Unreachable { .. }
        ));
    }
    assert_eq!(bench.lane.snapshot().breaker, BreakerState::Open);
    let refused = bench.push(1, 1).await.unwrap();
    assert_eq!(
        refused,
        Verdict::Overloaded {
            retry_after: Duration::from_secs(1)
        }
    );
    while bench.clock.now().mono < Duration::from_secs(20) {
        sleep(Duration::from_millis(100)).await;
        bench.push(1, 1).await.unwrap();
    }
    assert!(
        bench.fake.calls() <= 25,
        "20 to open it and a probe at 1, 3, 7 and 15 s"
    );
    bench.fake.now_does(sends_after(Duration::from_millis(1)));
    while !is_sent(&bench.push(1, 1).await.unwrap()) {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(bench.clock.now().mono <= Duration::from_secs(31));
    assert_eq!(bench.lane.snapshot().breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_opens_answers_those_who_wait_at_once() {
    let bench = bench(Fake::new(20, |_: &Delivery| {
        sleep(Duration::from_secs(2))
            .map(|()| Outcome::Unreachable)
            .boxed()
    }));
    let pushes: Vec<_> = (0..200).map(|number| bench.push(number, number)).collect();
    for push in pushes {
        push.await.unwrap();
    }
    assert!(bench.clock.now().mono < Duration::from_millis(2_100));
    assert_eq!(bench.fake.calls(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_caller_hangs_up_in_the_line_is_taken_by_the_next() {
    let bench = bench(Fake::new(21, |_: &Delivery| {
        std::future::ready(Outcome::Unreachable).boxed()
    }));
    bench.fake.now_does(black_hole);
    let stuck: Vec<_> = (0..20).map(|number| bench.push(1, number)).collect();
    bench.settled().await;
    bench
        .fake
        .now_does(|_| std::future::ready(Outcome::Unreachable).boxed());
    for number in 0..20 {
        bench.push(2, number).await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    bench.fake.capacity.send_replace(1);
    bench.settled().await;
    let mut probe = Box::pin(bench.lane.deliver(bench.job(3, 1)));
    assert!(probe.as_mut().now_or_never().is_none());
    assert!(is_overloaded(&bench.push(3, 2).await.unwrap()));
    drop(probe);
    bench.fake.capacity.send_replace(100);
    bench.settled().await;
    bench.fake.now_does(sends_after(Duration::from_millis(1)));
    assert!(is_sent(&bench.push(3, 3).await.unwrap()));
    stuck.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_provider_paced_to_one_call_that_stops_answering_is_found_out_all_the_same() {
    let timed_out = Outcome::Failed(Failure {
        reason: Reason::ProviderTimeout,
        retryable: true,
        retry_after: None,
        hold: Hold::Nothing,
        health: Health::Faulty,
    });
    for silence in [Outcome::Unreachable, timed_out] {
        let bench = bench(Fake::new(1_000, fails(throttled_for_a_second())));
        bench.push(1, 1).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let said = silence.clone();
        bench.fake.now_does(move |_| {
            let said = said.clone();
            sleep(DEADLINE).map(|()| said).boxed()
        });
        let pushes: Vec<_> = (0..100).map(|number| bench.push(1, number)).collect();
        bench.settled().await;
        assert_eq!(bench.fake.under_way.load(Ordering::SeqCst), 1, "paced");
        let mut more = Vec::new();
        while bench.lane.snapshot().breaker != BreakerState::Open {
            assert!(bench.clock.now().mono < Duration::from_secs(30), "{silence:?}");
            more.push(bench.push(2, 1_000));
            sleep(Duration::from_millis(100)).await;
        }
        pushes
            .iter()
            .chain(&more)
            .for_each(tokio::task::JoinHandle::abort);
    }
}

fn throttled_for_a_second() -> Failure {
    Failure {
        reason: Reason::ProviderThrottled,
        retryable: true,
        retry_after: Some(Duration::from_secs(1)),
        hold: Hold::Provider,
        health: Health::Answered,
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_of_one_call_at_a_time_that_hangs_is_given_up_by_those_who_waited_in_vain() {
    let bench = bench(Fake::new(1, black_hole));
    let pushes: Vec<_> = (0..40).map(|number| bench.push(number, number)).collect();
    for push in pushes {
        push.await.unwrap();
    }
    assert!(bench.clock.now().mono <= DEADLINE);
    assert_ne!(bench.lane.snapshot().breaker, BreakerState::Closed);
    let refused_at = bench.clock.now().mono;
    for number in 0..40 {
        assert!(is_overloaded(&bench.push(number, number).await.unwrap()));
    }
    assert_eq!(bench.clock.now().mono, refused_at, "nobody waits any more");
    assert_eq!(bench.fake.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_moves_too_slowly_for_most_is_no_fault_of_a_provider_that_answers() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_secs(4))));
    let pushes: Vec<_> = (0..100).map(|number| bench.push(number, number)).collect();
    let mut sent = 0;
    for push in pushes {
        sent += usize::from(is_sent(&push.await.unwrap()));
    }
    assert_eq!(sent, 2);
    assert_eq!(bench.lane.snapshot().breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ends_a_little_after_its_deadline_still_has_the_last_word() {
    let bench = bench(Fake::new(1, |delivery: &Delivery| {
        // The clock stood at zero when the call began.
        sleep(delivery.deadline + Duration::from_millis(20))
            .map(|()| Outcome::Unreachable)
            .boxed()
    }));
    let verdict = bench.push(1, 1).await.unwrap();
    assert!(matches!(verdict, Verdict::Unreachable { .. }), "{verdict:?}");
    assert!(bench.clock.now().mono <= DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn hosts_that_only_their_caller_vouches_for_turn_nobody_away_and_slow_nobody_down() {
    let of_the_host = Outcome::Failed(Failure {
        reason: Reason::ProviderUnavailable,
        retryable: true,
        retry_after: Some(Duration::from_secs(37)),
        hold: Hold::Token,
        health: Health::Unknown,
    });
    for outcome in [Outcome::HostUnreachable, of_the_host] {
        let bench = bench(Fake::new(10, move |_: &Delivery| {
            std::future::ready(outcome.clone()).boxed()
        }));
        for number in 0..100 {
            let verdict = bench.push(1, number).await.unwrap();
            assert!(!is_overloaded(&verdict), "{verdict:?}");
        }
        assert_eq!(bench.lane.snapshot().breaker, BreakerState::Closed);
        bench.fake.now_does(sends_after(Duration::from_millis(10)));
        let pushes: Vec<_> = (1_000..1_010).map(|number| bench.push(2, number)).collect();
        for push in pushes {
            assert!(is_sent(&push.await.unwrap()));
        }
        assert_eq!(bench.fake.most_under_way.load(Ordering::SeqCst), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_that_can_not_tell_leaves_the_probe_to_one_that_can() {
    let bench = bench(Fake::new(10, |_: &Delivery| {
        std::future::ready(Outcome::Unreachable).boxed()
    }));
    for number in 0..20 {
        bench.push(1, number).await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    bench.fake.now_does(sends_after(Duration::from_millis(1)));
    bench.fake.can_probe.store(false, Ordering::SeqCst);
    assert!(is_overloaded(&bench.push(1, 1).await.unwrap()));
    bench.fake.can_probe.store(true, Ordering::SeqCst);
    assert!(is_sent(&bench.push(2, 1).await.unwrap()));
}
