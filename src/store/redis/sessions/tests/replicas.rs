//! What replicas tell each other, and think of each other.

use super::*;

#[tokio::test]
async fn what_happens_on_one_replica_is_heard_on_the_one_it_concerns() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    one.told.hears(News::Peer(ID, Slot::A)).await;
    one.append(Slot::A, a, 1).await.unwrap();
    other.told.hears(News::Mail(ID, Slot::B)).await;
    other.append(Slot::B, b, 1).await.unwrap();
    one.told.hears(News::Mail(ID, Slot::A)).await;

    let newer = other.bind(Slot::A, 1, 2).await.epoch;
    one.told.hears(News::Replaced(ID, Slot::A, newer)).await;
    assert!(matches!(one.append(Slot::A, a, 2).await, Err(Gone::Fenced)));
    assert_eq!(one.read(Slot::A, newer).await, 1);
}

#[tokio::test]
async fn peers_on_one_replica_publish_nothing() {
    let server = Server::start();
    let replica = Replica::start(&server).await;
    replica.make().await;
    let a = replica.bind(Slot::A, 1, 1).await.epoch;
    replica.bind(Slot::B, 2, 1).await;
    replica.append(Slot::A, a, 1).await.unwrap();
    replica
        .store
        .unbind(ID, Slot::A, a, Departure::Lost)
        .await
        .unwrap();
    // Published before the removal's own news, had there been any.
    assert!(replica.store.remove(ID, INSTANCE).await.unwrap());
    assert_eq!(*replica.told.news.lock().unwrap(), []);
    assert!(replica.told.ended.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_removal_waits_until_the_other_replica_is_silent() {
    let server = Server::start();
    let (one, _, other, b) = pair(&server).await;
    assert!(one.store.remove(ID, INSTANCE).await.unwrap());
    assert_eq!(*other.told.ended.lock().unwrap(), [ID]);
    assert!(matches!(other.append(Slot::B, b, 1).await, Err(Gone::NoSession)));
    assert_eq!(one.store.0.removals.len(), 0);
}

#[tokio::test]
async fn a_receiver_is_woken_again_until_it_took_everything() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    one.append(Slot::A, a, 1).await.unwrap();
    for _ in 0..2 {
        other.told.hears(News::Mail(ID, Slot::B)).await;
        other.told.forget();
        one.store.0.wake_again().await;
        one.store.0.wake_again().await;
    }
    other.told.hears(News::Mail(ID, Slot::B)).await;
    other.process(Slot::B, b, 1).await;
    one.store.0.wake_again().await;
    one.store.0.wake_again().await;
    assert_eq!(one.store.0.unconfirmed.len(), 0);
}

#[tokio::test]
async fn what_is_stored_while_a_receiver_is_woken_is_not_forgotten_with_its_answer() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    one.append(Slot::A, a, 1).await.unwrap();
    other.process(Slot::B, b, 1).await;
    let shared = &one.store.0;
    shared.wake_again().await;
    // Nothing waits, which the server says; before that is heard, something does.
    let waking = shared.wake_again();
    tokio::pin!(waking);
    assert!(futures_util::poll!(&mut waking).is_pending());
    shared.unconfirmed.insert((ID, Slot::B), 0);
    waking.await;
    assert_eq!(shared.unconfirmed.len(), 1);
}

#[tokio::test]
async fn a_sign_of_life_that_is_answered_late_takes_back_none_that_was_given_after_it() {
    let server = Server::start();
    let mut one = Replica::start(&server).await;
    one.beats_no_more();
    let shared = &one.store.0;
    let later = super::super::millis(shared.clock.now().mono) + 1000;
    shared.known_at.store(later, std::sync::atomic::Ordering::Relaxed);
    shared.renew().await.unwrap();
    assert_eq!(shared.known_at.load(std::sync::atomic::Ordering::Relaxed), later);
}

#[tokio::test]
async fn a_replica_that_was_not_heard_of_for_5_s_is_dead_and_its_peers_are_away_until_it_is_heard_again() {
    let server = Server::start_frozen();
    let (one, _, mut other, b) = pair(&server).await;
    other.beats_no_more();
    other.beats().await;
    let seen = async || one.store.peer(ID, Slot::A).await.unwrap();
    for (passes, state, changes_in) in [
        (4999, PeerState::Online, None),
        (1, PeerState::Away, Some(25_000)),
        (24_999, PeerState::Away, Some(1)),
        (1, PeerState::Left, None),
    ] {
        server.pass(Duration::from_millis(passes));
        one.beats().await;
        let presence = seen().await;
        let changes_in = changes_in.map(Duration::from_millis);
        assert_eq!(
            (presence.told.state, presence.changes_in),
            (state, changes_in),
            "{passes}"
        );
    }
    // It was only slow, and nobody took its slot.
    other.beats().await;
    one.beats().await;
    assert_eq!(seen().await.told.state, PeerState::Online);
    assert_eq!(other.append(Slot::B, b, 1).await.unwrap(), Appended::Stored);
}

#[tokio::test]
async fn bytes_are_counted_over_all_replicas() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    one.append(Slot::A, a, 1).await.unwrap();
    let bytes = one.store.mailbox_bytes();
    assert!(bytes > 0);
    one.beats().await;
    other.beats().await;
    assert_eq!(other.store.mailbox_bytes(), bytes);
    other.process(Slot::B, b, 1).await;
    other.beats().await;
    one.beats().await;
    assert_eq!((one.store.mailbox_bytes(), other.store.mailbox_bytes()), (0, 0));
}

#[tokio::test]
async fn bytes_that_wait_when_both_left_count_until_the_session_ends_early() {
    let server = Server::start_frozen();
    let (one, a, other, b) = pair(&server).await;
    // Each replica's own time.
    let time = || [&one, &other].map(|replica| replica.store.0.clock.now().mono);
    let count = async |times: [Duration; 2]| {
        for (replica, time) in [&one, &other].into_iter().zip(times) {
            replica.store.0.ledger.clean(time);
            replica.beats().await;
        }
        one.beats().await;
        assert_eq!(one.store.mailbox_bytes(), other.store.mailbox_bytes());
        one.store.mailbox_bytes()
    };
    let after = |times: [Duration; 2], seconds| times.map(|time| time + Duration::from_secs(seconds));
    one.append(Slot::A, a, 1).await.unwrap();
    let bytes = count(time()).await;
    assert!(bytes > 0);
    let leave = async |replica: &Replica, slot, epoch| {
        let left = replica.store.unbind(ID, slot, epoch, Departure::Bye).await;
        left.unwrap();
    };
    let before = time();
    leave(&one, Slot::A, a).await;
    leave(&other, Slot::B, b).await;
    // Taken back elsewhere: it is as if both had never left.
    server.pass(Duration::from_secs(3));
    assert_eq!(count(after(before, 3)).await, bytes);
    let a = one.bind(Slot::A, 1, 2).await.epoch;
    assert_eq!(count(after(time(), 6)).await, bytes);
    let before = time();
    leave(&one, Slot::A, a).await;
    assert_eq!(count(after(before, 4)).await, bytes);
    assert_eq!(count(after(time(), 6)).await, 0);
}
