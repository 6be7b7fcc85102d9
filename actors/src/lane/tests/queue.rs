//! Turns, callers that hang up, capacity and closing.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_full_queue_answers_overloaded_at_once() {
    let bench = bench(Fake::new(1, black_hole));
    let config = LaneConfig::default();
    let waiting: Vec<_> = (0..=config.queue as u64)
        .map(|number| bench.push(number / 500, number))
        .collect();
    bench.settled().await;
    assert_eq!(bench.lane.snapshot().waiting, config.queue);
    let before = bench.clock.now().mono;
    assert!(is_overloaded(&bench.lane.deliver(bench.job(999, 0)).await));
    assert_eq!(bench.clock.now().mono, before);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    for push in waiting {
        assert!(push.await.unwrap_err().is_cancelled());
    }
    assert_eq!(
        bench.lane.snapshot().waiting,
        0,
        "whoever hangs up leaves the line"
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_loses_neither_the_turn_nor_the_outcome() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_secs(1))));
    let (first, second) = (bench.push(1, 1), bench.push(1, 2));
    bench.settled().await;
    first.abort();
    assert!(is_sent(&second.await.unwrap()), "the turn went on");
    assert_eq!(bench.fake.calls(), 2);
    // The outcome of the first was judged: with a `sent` a conditional verdict is believed.
    let gone = |_: &Delivery| {
        let since = UnixMillis(1);
        std::future::ready(Outcome::Gone {
            certainty: Certainty::Conditional,
            reason: Reason::BadToken,
            since,
        })
        .boxed()
    };
    bench.fake.now_does(sends_after(Duration::from_secs(1)));
    let push = bench.push(1, 3);
    bench.settled().await;
    push.abort();
    sleep(Duration::from_secs(2)).await;
    bench.fake.now_does(gone);
    assert_eq!(reason(&bench.push(1, 4).await.unwrap()), Some(Reason::BadToken));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_hangs_up_just_when_its_turn_comes_passes_it_on() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_millis(10))));
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    bench.fake.now_does(move |_| {
        let gate = held.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            Outcome::Sent { message_id: None }
        })
    });
    let first = bench.push(1, 1);
    bench.settled().await;
    let mut second = Box::pin(bench.lane.deliver(bench.job(1, 2)));
    assert!(second.as_mut().now_or_never().is_none());
    let third = bench.push(1, 3);
    bench.settled().await;
    gate.add_permits(2);
    assert!(is_sent(&first.await.unwrap()));
    bench.settled().await;
    assert_eq!(
        bench.lane.snapshot().in_flight,
        1,
        "granted to the second, which has not looked yet"
    );
    drop(second);
    assert!(is_sent(&third.await.unwrap()));
    assert_eq!((bench.fake.calls(), bench.lane.snapshot().in_flight), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn capacity_from_one_to_a_thousand_drains_the_queue_and_is_never_exceeded() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_millis(100))));
    let pushes: Vec<_> = (0..2_000_u64)
        .map(|number| bench.push(number % 20, number))
        .collect();
    sleep(Duration::from_millis(950)).await;
    assert_eq!(bench.fake.most_under_way.load(Ordering::SeqCst), 1);
    bench.fake.capacity.send_replace(10);
    sleep(Duration::from_millis(950)).await;
    assert_eq!(bench.fake.most_under_way.load(Ordering::SeqCst), 10);
    bench.fake.capacity.send_replace(1_000);
    for push in pushes {
        assert!(is_sent(&push.await.unwrap()));
    }
    assert!(bench.fake.most_under_way.load(Ordering::SeqCst) <= 1_000);
    assert_eq!(bench.fake.calls(), 2_000);
    assert!(bench.clock.now().mono < Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn closing_refuses_new_pushes_and_waits_for_those_it_has() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_millis(100))));
    let pushes: Vec<_> = (0..5).map(|number| bench.push(1, number)).collect();
    bench.settled().await;
    let closing = tokio::spawn({
        let lane = bench.lane.clone();
        async move { lane.close().await }
    });
    bench.settled().await;
    assert!(is_overloaded(&bench.push(1, 9).await.unwrap()));
    assert!(!closing.is_finished());
    closing.await.unwrap();
    assert_eq!(bench.lane.snapshot().in_flight, 0);
    for push in pushes {
        assert!(is_sent(&push.await.unwrap()));
    }
    bench.lane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_pushes_some_hung_up_leave_nothing_behind() {
    let bench = bench(Fake::new(50, |delivery: &Delivery| {
        sends_after(Duration::from_millis(u64::from(delivery.ttl_seconds)))(delivery)
    }));
    for round in 0..200_u64 {
        let pushes: Vec<_> = (0..500_u64)
            .map(|number| bench.push(number % 40, round * 500 + number))
            .collect();
        bench.settled().await;
        pushes.iter().step_by(7).for_each(tokio::task::JoinHandle::abort);
        for push in pushes {
            assert!(
                push.await
                    .map_or_else(|error| error.is_cancelled(), |verdict| is_sent(&verdict))
            );
        }
    }
    sleep(Duration::from_secs(400)).await;
    let snapshot = bench.lane.snapshot();
    assert_eq!(
        (
            snapshot.in_flight,
            snapshot.waiting,
            bench.fake.under_way.load(Ordering::SeqCst)
        ),
        (0, 0, 0)
    );
    let state = bench.lane.core.lock();
    assert_eq!((state.judge.tokens(), state.holds.tokens()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lane_ends_its_task() {
    let bench = bench(Fake::new(1, sends_after(Duration::ZERO)));
    bench.settled().await;
    let alive = Handle::current().metrics().num_alive_tasks();
    drop(bench.lane);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), alive - 1);
}
