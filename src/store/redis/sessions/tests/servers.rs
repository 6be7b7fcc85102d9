//! Servers that forget, die, come back, and share their work.

use super::*;

#[tokio::test]
async fn every_key_has_an_end_and_none_is_left_of_a_session_that_is_over() {
    let server = Server::start_frozen();
    let (one, a, other, b) = pair(&server).await;
    for n in 1..=3 {
        one.append(Slot::A, a, n).await.unwrap();
        other.append(Slot::B, b, n).await.unwrap();
    }
    one.beats().await;
    // A list that was empty is made anew.
    other.process(Slot::B, b, 3).await;
    one.append(Slot::A, a, 4).await.unwrap();
    one.bind(Slot::A, 9, 1).await;
    let all = keys(&server.administrators_url()).await;
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all.iter().all(|(_, left)| *left > 0), "{all:?}");
    server.pass(Duration::from_secs(121));
    assert!(matches!(one.append(Slot::A, a, 5).await, Err(Gone::NoSession)));
    let left = keys(&server.administrators_url()).await;
    assert!(
        left.iter().all(|(name, _)| !name.contains(&ID.to_string())),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_told_them_again() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    command(&server.administrators_url(), &["SCRIPT", "FLUSH"]).await;
    assert_eq!(one.append(Slot::A, a, 1).await.unwrap(), Appended::Stored);
    command(&server.administrators_url(), &["SCRIPT", "FLUSH"]).await;
    assert_eq!(other.read(Slot::B, b).await, 1);
}

#[tokio::test]
async fn while_the_server_is_away_nothing_is_known_and_after_its_restart_without_data_epochs_still_grow() {
    let mut server = Server::start();
    let (one, a, ..) = pair(&server).await;
    server.kill();
    let away = async || matches!(one.append(Slot::A, a, 1).await, Err(Gone::Unavailable(_)));
    assert!(away().await && away().await);
    assert!(one.store.create(asked()).await.is_err());
    assert!(matches!(
        one.store.peer(ID, Slot::A).await,
        Err(Gone::Unavailable(_))
    ));
    one.told.forget();
    server.restart();
    one.told.hears(News::Missed).await;
    assert!(matches!(one.append(Slot::A, a, 1).await, Err(Gone::NoSession)));
    one.make().await;
    assert!(matches!(one.append(Slot::A, a, 1).await, Err(Gone::Fenced)));
    assert!(one.bind(Slot::A, 1, 1).await.epoch > a);
}

#[tokio::test]
async fn a_connection_that_was_cut_is_made_again_and_says_that_news_were_missed() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    other.told.forget();
    command(
        &server.administrators_url(),
        &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
    )
    .await;
    command(
        &server.administrators_url(),
        &["CLIENT", "KILL", "TYPE", "pubsub"],
    )
    .await;
    for replica in [&one, &other] {
        replica.told.hears(News::Missed).await;
    }
    one.append(Slot::A, a, 1).await.unwrap();
    other.told.hears(News::Mail(ID, Slot::B)).await;
    assert_eq!(other.read(Slot::B, b).await, 1);
}

#[tokio::test]
async fn in_a_cluster_sessions_lie_on_all_nodes_and_replicas_hear_each_other() {
    let cluster = Cluster::start();
    let one = Replica::start_at(&cluster.url()).await;
    let other = Replica::start_at(&cluster.url()).await;
    for number in 0..12 {
        let new = numbered(number);
        let made = one.store.create(new).await.unwrap();
        assert!(matches!(made, Creation::Made(_)));
        let bind = |slot, connection| Bind {
            slot,
            incarnation: Incarnation(1),
            connection: ConnectionHash(connection),
            attempt: 1,
            last: 0,
        };
        let a = one.store.bind(new.id, bind(Slot::A, 1)).await.unwrap().epoch;
        let b = other.store.bind(new.id, bind(Slot::B, 2)).await.unwrap().epoch;
        let appended = one
            .store
            .append(new.id, Slot::A, a, 1, Opaque::new("hello"))
            .await;
        assert_eq!(appended.unwrap(), Appended::Stored);
        other.told.hears(News::Mail(new.id, Slot::B)).await;
        assert_eq!(
            other
                .store
                .read(new.id, Slot::B, b, 0, 99)
                .await
                .unwrap()
                .entries
                .len(),
            1
        );
    }
    for node in cluster.nodes() {
        let sessions = keys(&node.administrators_url()).await;
        assert!(
            sessions
                .iter()
                .any(|(name, left)| name.contains("session:") && *left > 0)
        );
    }
    assert!(other.store.remove(numbered(3).id, INSTANCE).await.unwrap());
    assert_eq!(*one.told.ended.lock().unwrap(), [numbered(3).id]);
}

#[tokio::test]
async fn when_the_server_has_no_memory_left_what_waits_is_read_and_acknowledged_all_the_same() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    for n in 1..=2 {
        assert_eq!(one.append(Slot::A, a, n).await.unwrap(), Appended::Stored);
    }
    command(&server.administrators_url(), &["CONFIG", "SET", "maxmemory", "1"]).await;
    assert!(matches!(
        one.append(Slot::A, a, 3).await,
        Err(Gone::Unavailable(_))
    ));
    assert_eq!(other.read(Slot::B, b).await, 2);
    let trimmed = other.store.trim(ID, Slot::B, b, 2).await.unwrap();
    assert_eq!(trimmed, Trimmed::Trimmed);
    command(&server.administrators_url(), &["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(one.append(Slot::A, a, 3).await.unwrap(), Appended::Stored);
}

#[tokio::test]
async fn when_the_server_has_no_memory_left_no_session_is_made() {
    let server = Server::start();
    let one = Replica::start(&server).await;
    one.make().await;
    let lost = numbered(8);
    one.store.create(lost).await.unwrap();
    // Still counted for its instance, as a session on another node of a Cluster may be.
    server.answer(&["DEL", &format!("relay:session:{{{}}}", lost.id)]);
    server.answer(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(one.store.create(numbered(9)).await.is_err());
    assert!(one.store.create(lost).await.is_err());
    let joined = one.store.create(asked()).await.unwrap();
    assert!(matches!(joined, Creation::Joined(_)), "it is there already");
    server.answer(&["CONFIG", "SET", "maxmemory", "0"]);
    for new in [numbered(9), lost] {
        let made = one.store.create(new).await.unwrap();
        assert!(matches!(made, Creation::Made(_)));
    }
}

/// Waits until the replica has what was written before.
async fn replicated(url: &str) {
    let mut connection = connect(url).await;
    // WAIT is for the writes of its own connection; the replica takes all writes in their order.
    let replicas: (i64,) = redis::pipe()
        .cmd("SET")
        .arg("marker")
        .arg(1)
        .ignore()
        .cmd("WAIT")
        .arg(1)
        .arg(30_000)
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(replicas, (1,));
}

#[tokio::test]
async fn when_the_master_dies_sentinels_lead_to_the_next_one_with_all_that_it_had() {
    let mut watched = Watched::start();
    let one = Replica::start_at(&watched.url()).await;
    one.make().await;
    let a = one.bind(Slot::A, 1, 1).await.epoch;
    assert_eq!(one.append(Slot::A, a, 1).await.unwrap(), Appended::Stored);
    replicated(&watched.master.administrators_url()).await;
    one.told.forget();
    watched.master.kill();
    assert!(matches!(
        one.append(Slot::A, a, 2).await,
        Err(Gone::Unavailable(_))
    ));
    one.told.hears(News::Missed).await;
    assert_eq!(one.append(Slot::A, a, 2).await.unwrap(), Appended::Stored);
    let b = one.bind(Slot::B, 2, 1).await.epoch;
    assert_eq!(one.read(Slot::B, b).await, 2);
}

#[tokio::test]
async fn a_replica_may_write_messages_for_4_s_from_when_it_was_last_heard_of() {
    let mut server = Server::start();
    let one = Replica::start(&server).await;
    let until = || *one.told.writes_until.lock().unwrap();
    let is_told = async |later: Duration| {
        let waiting = async {
            while until() <= later {
                one.told.arrived.notified().await;
            }
        };
        timeout(DEADLINE, waiting).await.expect("in vain");
    };
    is_told(Duration::ZERO).await;
    is_told(until()).await;
    let lease = Duration::from_secs(4);
    assert!(until() <= one.store.0.clock.now().mono + lease);
    server.kill();
    while one.store.0.renew().await.is_ok() {}
    let last = until();
    assert!(last <= one.store.0.clock.now().mono + lease);
    server.restart();
    is_told(last).await;
}

#[tokio::test]
async fn while_memory_is_short_leases_are_renewed_and_what_waits_is_delivered() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    assert_eq!(one.append(Slot::A, a, 1).await.unwrap(), Appended::Stored);
    server.answer(&["CONFIG", "SET", "maxmemory", "1"]);
    one.beats().await;
    other.beats().await;
    assert!(matches!(
        one.append(Slot::A, a, 2).await,
        Err(Gone::Unavailable(_))
    ));
    assert_eq!(other.read(Slot::B, b).await, 1);
    other.process(Slot::B, b, 1).await;
    server.answer(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(one.append(Slot::A, a, 2).await.unwrap(), Appended::Stored);
}

#[tokio::test]
async fn when_two_replicas_store_for_one_slot_during_a_takeover_no_number_is_missing_or_given_twice() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    let old = async {
        for n in 1.. {
            match one.append(Slot::A, a, n).await {
                Ok(appended) => assert_eq!(appended, Appended::Stored),
                Err(gone) => return assert!(matches!(gone, Gone::Fenced)),
            }
        }
    };
    let new = async {
        for _ in 0..10 {
            other.read(Slot::B, b).await;
        }
        let bound = other.bind(Slot::A, 1, 2).await;
        for n in bound.next..bound.next + 10 {
            assert_eq!(
                other.append(Slot::A, bound.epoch, n).await.unwrap(),
                Appended::Stored
            );
        }
        bound.next + 10
    };
    let ((), next) = tokio::join!(old, new);
    let read = other
        .store
        .read(ID, Slot::B, b, 0, usize::MAX)
        .await
        .unwrap()
        .entries;
    let seqs: Vec<u64> = read.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (1..next).collect::<Vec<_>>());
}
