use sovereign_relay_protocol::{push::Reason, time::UnixMillis};

use super::*;
use crate::store::redis::{
    kit::Server,
    link::tests::{is_back, link},
};

const KEY: u128 = 0xabc;
/// Of pushes: their claims outlast every test, but where their end is waited for.
const DEADLINE: Duration = Duration::from_secs(60);

fn now() -> Now {
    Now {
        mono: Duration::from_secs(1_000),
        unix: UnixMillis(1_800_000_000_000),
    }
}

fn outcome(message: u128) -> Remembered {
    Remembered {
        message,
        answer: PushAnswer::failed(Reason::PayloadRejected, false, None),
    }
}

fn memory(redis: &Redis, replica: &str) -> RedisOutcomes {
    memory_within(redis, replica, DEADLINE)
}

fn memory_within(redis: &Redis, replica: &str, deadline: Duration) -> RedisOutcomes {
    let own = Arc::new(EmbeddedOutcomes::new());
    RedisOutcomes::new(redis.clone(), own, replica, deadline)
}

#[tokio::test]
async fn another_replica_repeats_what_one_has_answered_for_ten_minutes() {
    let server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let (one, other) = (memory(&redis, "one"), memory(&redis, "other"));
    assert_eq!(one.get(KEY, now()).await, None);
    one.put(KEY, outcome(u128::MAX), now()).await;
    assert_eq!(other.get(KEY, now()).await, Some(outcome(u128::MAX)));
    let life: u64 = redis.send(redis::cmd("PTTL").arg(name(KEY))).await.unwrap();
    assert!((590_000..=600_000).contains(&life));
}

#[tokio::test]
async fn the_first_outcome_of_a_key_stays() {
    let server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let (one, other) = (memory(&redis, "one"), memory(&redis, "other"));
    one.put(KEY, outcome(1), now()).await;
    other.put(KEY, outcome(2), now()).await;
    assert_eq!(memory(&redis, "third").get(KEY, now()).await, Some(outcome(1)));
}

#[tokio::test]
async fn a_repeat_waits_for_a_push_under_way_at_another_replica() {
    let server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let (one, other) = (memory(&redis, "one"), memory(&redis, "other"));
    assert_eq!(one.get(KEY, now()).await, None, "the first");
    let repeat = tokio::spawn(other.get(KEY, now()));
    tokio::task::yield_now().await;
    assert!(!repeat.is_finished());
    one.put(KEY, outcome(1), now()).await;
    assert_eq!(repeat.await.unwrap(), Some(outcome(1)));
}

#[tokio::test]
async fn after_a_failure_that_is_not_remembered_one_of_those_who_wait_is_the_next_first() {
    let server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let (one, other, third) = (
        memory(&redis, "one"),
        memory(&redis, "other"),
        memory(&redis, "third"),
    );
    assert_eq!(one.get(KEY, now()).await, None);
    let (repeat, another) = (
        tokio::spawn(other.get(KEY, now())),
        tokio::spawn(third.get(KEY, now())),
    );
    one.release(KEY).await;
    let finished = tokio::select! {
        first = repeat => { assert_eq!(first.unwrap(), None); other }
        first = another => { assert_eq!(first.unwrap(), None); third }
    };
    one.release(KEY).await;
    assert!(
        tokio::time::timeout(Duration::from_millis(200), one.get(KEY, now()))
            .await
            .is_err(),
        "a claim is nobody else's to take back"
    );
    finished.put(KEY, outcome(2), now()).await;
    assert_eq!(one.get(KEY, now()).await, Some(outcome(2)));
}

#[tokio::test]
async fn the_claim_of_a_replica_that_is_heard_of_ends_a_little_after_its_pushs_deadline() {
    let server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let memory = |replica| memory_within(&redis, replica, Duration::from_secs(1));
    assert_eq!(memory("one").get(KEY, now()).await, None);
    let began = tokio::time::sleep(Duration::ZERO).deadline();
    let life: u64 = redis.send(redis::cmd("PTTL").arg(name(KEY))).await.unwrap();
    assert!((1..=3000).contains(&life));
    // It ends with the claim, as everything does that tests leave behind.
    let beating = async {
        loop {
            wired.records().beat("one").await.unwrap();
            tokio::time::sleep(LOOK).await;
        }
    };
    let other = memory("other");
    let mut next = other.get(KEY, now());
    let early = began + Duration::from_millis(life) - LOOK * 10;
    tokio::select! {
        biased;
        () = tokio::time::sleep_until(early) => {}
        () = beating => {}
        _ = &mut next => panic!("it may still be under way"),
    }
    assert_eq!(next.await, None);
}

#[tokio::test]
async fn the_claim_of_a_replica_that_died_is_taken_over_long_before_it_ends() {
    let server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let memory = |replica| memory(&redis, replica);
    assert_eq!(memory("dead").get(KEY, now()).await, None);
    let other = memory("other");
    let next = tokio::time::timeout(DEADLINE / 2, other.get(KEY, now())).await;
    assert_eq!(next.expect("it does not wait for a dead one"), None);
    other.put(KEY, outcome(1), now()).await;
    assert_eq!(memory("third").get(KEY, now()).await, Some(outcome(1)));
}

#[tokio::test]
async fn a_repeat_does_not_take_redis_silence_for_the_end_of_the_first_push() {
    let server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let (one, other) = (memory(&redis, "one"), memory(&redis, "other"));
    assert_eq!(one.get(KEY, now()).await, None);
    let mut repeat = other.get(KEY, now());
    let seen = LOOK * 4;
    assert!(tokio::time::timeout(seen, &mut repeat).await.is_err());
    server.freeze();
    assert!(tokio::time::timeout(PATIENCE + seen, &mut repeat).await.is_err());
    server.thaw();
    one.put(KEY, outcome(1), now()).await;
    assert_eq!(repeat.await, Some(outcome(1)));
}

#[tokio::test]
async fn while_redis_is_away_a_replica_goes_by_its_own_memory() {
    let mut server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let one = memory(&redis, "one");
    server.kill();
    let pushed = async {
        assert_eq!(one.get(KEY, now()).await, None);
        one.put(KEY, outcome(1), now()).await;
        assert_eq!(one.get(KEY, now()).await, Some(outcome(1)));
    };
    // Redis comes back only afterwards.
    tokio::time::timeout(DEADLINE, pushed)
        .await
        .expect("no push is held up");
    server.restart();
    is_back(&wired).await;
    assert_eq!(one.get(KEY, now()).await, Some(outcome(1)), "still its own");
}

#[tokio::test]
async fn what_was_answered_while_redis_was_away_is_known_to_others_when_it_is_back() {
    let mut server = Server::start();
    let wired = link(&server).await;
    let redis = wired.redis().clone();
    let one = memory(&redis, "one");
    server.kill();
    one.put(KEY, outcome(1), now()).await;
    server.restart();
    is_back(&wired).await;
    let told = async {
        let mut get = redis::cmd("GET");
        get.arg(name(KEY));
        while !matches!(redis.send(&get).await, Ok(Some::<String>(_))) {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(DEADLINE, told)
        .await
        .expect("it is told again");
    assert_eq!(memory(&redis, "other").get(KEY, now()).await, Some(outcome(1)));
}

#[tokio::test]
async fn a_claim_that_was_left_behind_holds_for_the_whole_time_of_the_next_push() {
    let server = Server::start();
    let wired = link(&server).await;
    let memory = memory(wired.redis(), "one");
    assert_eq!(memory.get(KEY, now()).await, None);
    let nearly_over = 500;
    let mut expire = redis::cmd("PEXPIRE");
    expire.arg(name(KEY)).arg(nearly_over);
    let _: bool = wired.redis().send(&expire).await.unwrap();
    assert_eq!(memory.get(KEY, now()).await, None, "it is ours");
    let life: i64 = wired
        .redis()
        .send(redis::cmd("PTTL").arg(name(KEY)))
        .await
        .unwrap();
    assert!(life > nearly_over, "{life}");
}
