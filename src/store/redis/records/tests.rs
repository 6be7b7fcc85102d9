use super::*;
use crate::store::{
    contract::store_contract,
    redis::{
        kit::Server,
        link::{
            RedisLink,
            tests::{PATIENCE, is_back, link},
        },
    },
    revocation::{Cause, Gone, State},
};

mod cluster;
mod much;
mod trouble;

store_contract!(fresh);

async fn fresh() -> (Arc<dyn Store>, (Server, RedisLink)) {
    let (store, guard) = open().await;
    (Arc::new(store), guard)
}

async fn open() -> (RedisRecords, (Server, RedisLink)) {
    open_at(Server::start()).await
}

async fn open_at(server: Server) -> (RedisRecords, (Server, RedisLink)) {
    let wired = link(&server).await;
    (RedisRecords::new(wired.redis().clone()), (server, wired))
}

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn gone(kid: u8) -> Entry {
    Entry {
        kids: vec![Kid([kid; 6])],
        state: State::Gone(Gone {
            at: NOW,
            cause: Cause::Revoked,
        }),
    }
}

fn enrollment(number: u8) -> NewEnrollment {
    NewEnrollment {
        instance: instance(number),
        name: None,
        contact: None,
        at: NOW,
        address: number.into(),
        fresh_group: number.into(),
        invite: None,
    }
}

fn seen(changes: Changes) -> (Position, Vec<Change>) {
    match changes {
        Changes::Seen { position, changes } => (position, changes),
        Changes::Lost => panic!("the position is lost"),
    }
}

#[tokio::test]
async fn every_change_that_a_memory_follows_is_in_the_log_in_order() {
    let (store, _guard) = open().await;
    let begin = store.position().await.unwrap();
    assert_eq!(
        seen(store.changes_since(&begin).await.unwrap()),
        (begin.clone(), vec![])
    );
    store.enroll(enrollment(1)).await.unwrap();
    store
        .join_revocations(vec![(instance(1), gone(1))], true)
        .await
        .unwrap();
    store.set_limit(instance(2), Some(60)).await.unwrap();
    store.set_turn(instance(2), Some(true)).await.unwrap();
    let suspension = Suspension {
        until: None,
        reason: "spam".to_owned(),
    };
    store
        .set_suspension(instance(3), Some(suspension.clone()))
        .await
        .unwrap();
    store.suspend(instance(4), suspension).await.unwrap();
    store.swap_revocation(instance(5), None, gone(1)).await.unwrap();
    let (position, changes) = seen(store.changes_since(&begin).await.unwrap());
    let expected = [
        Change::Revoked(instance(1), gone(1)),
        Change::Standing(instance(1)),
        Change::Standing(instance(2)),
        Change::Standing(instance(2)),
        Change::Standing(instance(3)),
        Change::Standing(instance(4)),
        Change::Revoked(instance(5), gone(1)),
    ];
    assert_eq!(changes, expected);
    assert_eq!(seen(store.changes_since(&position).await.unwrap()).1, []);
    store
        .join_revocations(vec![(instance(5), gone(1))], false)
        .await
        .unwrap();
    assert_eq!(
        seen(store.changes_since(&position).await.unwrap()).1,
        [],
        "what changes nothing is no change"
    );
}

#[tokio::test]
async fn a_position_in_a_log_that_was_trimmed_or_lost_is_known_to_be_lost() {
    let (store, (mut server, wired)) = open().await;
    let begin = store.position().await.unwrap();
    store.set_turn(instance(1), Some(true)).await.unwrap();
    server.answer(&["XTRIM", &store.keys.changes(), "MAXLEN", "1"]);
    assert_eq!(
        store.changes_since(&begin).await.unwrap(),
        Changes::Lost,
        "trimmed"
    );
    let position = store.position().await.unwrap();
    server.restart();
    is_back(&wired).await;
    assert_eq!(
        store.changes_since(&position).await.unwrap(),
        Changes::Lost,
        "empty"
    );
    store.set_turn(instance(1), Some(true)).await.unwrap();
    assert_eq!(
        store.changes_since(&position).await.unwrap(),
        Changes::Lost,
        "another log"
    );
}

#[tokio::test]
async fn an_entry_that_has_taken_the_place_of_the_one_seen_is_noticed() {
    let (store, (_server, wired)) = open().await;
    store.set_turn(instance(1), Some(true)).await.unwrap();
    let position = store.position().await.unwrap();
    let id = &position.id;
    // A failover that lost the end of the log, and a clock that makes the same id again.
    wired
        .redis()
        .send::<u64>(redis::cmd("DEL").arg(store.keys.changes()))
        .await
        .unwrap();
    let add = redis::cmd("XADD")
        .arg(store.keys.changes())
        .arg(id)
        .arg("s")
        .arg(instance(2).to_string())
        .to_owned();
    wired.redis().send::<String>(&add).await.unwrap();
    assert_eq!(store.changes_since(&position).await.unwrap(), Changes::Lost);
}

#[tokio::test]
async fn no_key_is_without_an_end_but_words_suspensions_and_revocations() {
    let (store, (server, wired)) = open().await;
    let invite = Invite {
        hash: crate::store::InviteHash([1; 32]),
        created_at: NOW,
        expires_at: NOW.plus_millis(DAY_MILLIS),
    };
    store.add_invite(invite).await.unwrap();
    store.enroll(enrollment(1)).await.unwrap();
    store.note_use(instance(1), 1, NOW).await.unwrap();
    store.set_limit(instance(2), Some(60)).await.unwrap();
    let for_a_while = Suspension {
        until: Some(NOW.plus_millis(1)),
        reason: "spam".to_owned(),
    };
    store.suspend(instance(3), for_a_while).await.unwrap();
    store
        .join_revocations(vec![(instance(4), gone(1))], false)
        .await
        .unwrap();
    store.purge(NOW, vec![Kid([1; 6])]).await.unwrap();
    store.beat("one").await.unwrap();
    store.read_words("one").await.unwrap();
    let keys = server.answer(&["KEYS", "*"]);
    let keys: Vec<_> = keys.lines().collect();
    let mut endless = Vec::new();
    for key in &keys {
        let life: i64 = wired.redis().send(redis::cmd("PTTL").arg(key)).await.unwrap();
        if life < 0 {
            endless.push((*key).to_owned());
        }
    }
    endless.sort();
    let mut expected = vec![
        store.keys.word(instance(2)),
        store.keys.word(instance(3)),
        store.keys.revocations(),
        store.keys.word_ids(),
        store.keys.words_epoch(),
        store.keys.suspension_ends(),
    ];
    expected.sort();
    assert_eq!(endless, expected);
    assert_eq!(keys.len(), expected.len() + 10, "{keys:?}");
}

#[tokio::test]
async fn a_suspension_that_is_over_is_shown_as_long_as_its_enrollment_is() {
    let (store, _guard) = open().await;
    store.enroll(enrollment(1)).await.unwrap();
    let over = Suspension {
        until: Some(NOW.plus_millis(1)),
        reason: "spam".to_owned(),
    };
    store.suspend(instance(1), over.clone()).await.unwrap();
    store.purge(NOW.plus_millis(DAY_MILLIS), vec![]).await.unwrap();
    let record = store.record(instance(1)).await.unwrap().unwrap();
    assert_eq!(record.suspension, Some(over));
    store.purge(NOW.plus_millis(UNUSED_MILLIS), vec![]).await.unwrap();
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
    assert_eq!(store.records(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_suspension_that_is_over_is_forgotten_by_the_memories_that_follow_too() {
    let (store, _guard) = open().await;
    let over = Suspension {
        until: Some(NOW.plus_millis(1)),
        reason: "spam".to_owned(),
    };
    store.suspend(instance(1), over).await.unwrap();
    store.read_words("one").await.unwrap();
    assert!(store.words.get(instance(1)).is_some());
    let position = store.position().await.unwrap();
    store.purge(NOW.plus_millis(DAY_MILLIS), vec![]).await.unwrap();
    let (_, changes) = seen(store.changes_since(&position).await.unwrap());
    assert_eq!(changes, [Change::Standing(instance(1))]);
    store.read_word(instance(1)).await.unwrap();
    assert_eq!(store.words.get(instance(1)), None);
}

#[tokio::test]
async fn replicas_are_counted_while_they_beat() {
    let (store, _guard) = open_at(Server::start_frozen()).await;
    assert_eq!(store.beat("one").await.unwrap().replicas, 1);
    assert_eq!(store.beat("two").await.unwrap().replicas, 2);
    assert_eq!(store.beat("one").await.unwrap().replicas, 2);
    store.leave("two").await.unwrap();
    assert_eq!(store.beat("one").await.unwrap().replicas, 1);
}

#[tokio::test]
async fn a_store_that_is_away_says_so_and_fails_at_once() {
    let (store, (mut server, wired)) = open().await;
    assert!(store.fault().is_none());
    server.kill();
    let asked = tokio::time::timeout(PATIENCE, store.record(instance(1))).await;
    assert!(asked.expect("it does not wait for the server").is_err());
    assert!(store.fault().is_some());
    server.restart();
    is_back(&wired).await;
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
    assert!(store.fault().is_none());
}

fn spam() -> Suspension {
    Suspension {
        until: None,
        reason: "spam".to_owned(),
    }
}

#[tokio::test]
async fn words_go_back_into_a_redis_that_was_emptied_and_what_was_said_since_stays() {
    let (store, (mut server, wired)) = open().await;
    store.set_limit(instance(1), Some(60)).await.unwrap();
    store.set_turn(instance(1), Some(false)).await.unwrap();
    store.set_suspension(instance(2), Some(spam())).await.unwrap();
    let until = Suspension {
        until: Some(NOW.plus_millis(1)),
        ..spam()
    };
    store.set_suspension(instance(3), Some(until)).await.unwrap();
    store.set_limit(instance(4), Some(60)).await.unwrap();
    let before = store.records(None, 10).await.unwrap();
    assert_eq!(store.read_words("one").await.unwrap(), 0);
    server.restart();
    is_back(&wired).await;
    store.set_limit(instance(4), Some(90)).await.unwrap();
    assert_eq!(
        RedisRecords::new(wired.redis().clone())
            .read_words("two")
            .await
            .unwrap(),
        0,
        "a newcomer"
    );
    assert_eq!(store.read_words("three").await.unwrap(), 4);
    let mut after = store.records(None, 10).await.unwrap();
    assert_eq!(after[3].per_minute, Some(90));
    after[3].per_minute = Some(60);
    assert_eq!(after, before);
    assert_eq!(store.read_words("four").await.unwrap(), 0, "once");
    store.purge(NOW.plus_millis(1), vec![]).await.unwrap();
    assert_eq!(
        store.record(instance(3)).await.unwrap(),
        None,
        "its end came back too"
    );
}

#[tokio::test]
async fn a_word_that_was_taken_back_while_a_replica_did_not_hear_it_does_not_come_back() {
    let (store, _guard) = open().await;
    store.set_suspension(instance(1), Some(spam())).await.unwrap();
    store.read_words("one").await.unwrap();
    store.set_suspension(instance(1), None).await.unwrap();
    assert_eq!(store.read_words("two").await.unwrap(), 0);
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_word_that_was_heard_to_be_taken_back_is_not_written_into_an_emptied_redis() {
    let (store, (mut server, wired)) = open().await;
    store.set_suspension(instance(1), Some(spam())).await.unwrap();
    store.read_words("one").await.unwrap();
    store.set_turn(instance(2), Some(true)).await.unwrap();
    store.set_suspension(instance(1), None).await.unwrap();
    for changed in [1, 2] {
        store.read_word(instance(changed)).await.unwrap();
    }
    server.restart();
    is_back(&wired).await;
    assert_eq!(store.read_words("two").await.unwrap(), 1);
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
    assert_eq!(store.record(instance(2)).await.unwrap().unwrap().turn, Some(true));
}

#[tokio::test]
async fn what_the_operator_said_holds_for_instances_that_are_first_heard_of_while_redis_is_away() {
    let (store, (mut server, _wired)) = open().await;
    store.enroll(enrollment(1)).await.unwrap();
    store.set_suspension(instance(1), Some(spam())).await.unwrap();
    store.read_words("one").await.unwrap();
    server.kill();
    let standing = store.standing(instance(1)).await.unwrap().unwrap();
    assert_eq!(
        (standing.suspension, standing.enrolled_at),
        (Some(spam()), Some(NOW))
    );
    assert!(store.standing(instance(2)).await.is_err(), "nothing was said");
    assert!(
        store.record(instance(1)).await.is_err(),
        "the operator is shown what is so"
    );
}
