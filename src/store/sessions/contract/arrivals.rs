//! Who has a slot, and what its peer is told.

use super::*;

pub(crate) async fn one_secret_resumes_and_another_is_a_new_page_load(opened: Opened) {
    let session = opened.with_session().await;
    let first = session.bind(hello(Slot::A, 1)).await;
    assert_eq!(
        (first.generation, first.is_new_load, first.next, first.base),
        (1, true, 1, 0)
    );
    assert_eq!((first.instance, first.settings), (instance(1), plain(1).settings));
    assert_eq!(first.peer.told.state, PeerState::Absent);
    session.fill(Slot::A, first.epoch, 1, 2).await;
    let resumed = session.bind(again(Slot::A, 1, 2, 0)).await;
    assert_eq!(
        (resumed.generation, resumed.is_new_load, resumed.next),
        (1, false, 3)
    );
    let reloaded = session.bind(hello(Slot::A, 3)).await;
    assert_eq!(
        (reloaded.generation, reloaded.is_new_load, reloaded.next),
        (2, true, 1)
    );
    assert!(first.epoch < resumed.epoch && resumed.epoch < reloaded.epoch);
}

pub(crate) async fn of_many_page_loads_at_once_one_has_the_slot(opened: Opened) {
    let session = opened.with_session().await;
    let loads = u128::from(limits::NEW_CONNECTIONS_PER_MINUTE);
    let bound = join_all((1..=loads).map(|connection| session.bind(hello(Slot::A, connection)))).await;
    let mut epochs: Vec<_> = bound.iter().map(|bound| bound.epoch).collect();
    epochs.sort_unstable();
    epochs.dedup();
    assert_eq!(epochs.len(), loads as usize);
    let holder = epochs.pop().unwrap();
    for epoch in epochs {
        assert!(session.is_fenced(Slot::A, epoch).await);
    }
    session.fill(Slot::A, holder, 1, 1).await;
}

pub(crate) async fn after_a_takeover_the_old_connection_changes_nothing(opened: Opened) {
    let session = opened.with_session().await;
    let (old, b) = session.both().await;
    session.fill(Slot::B, b, 1, 1).await;
    session.fill(Slot::A, old, 1, 1).await;
    for bind in [again(Slot::A, 1, 2, 0), hello(Slot::A, 3)] {
        let new = session.bind(bind).await;
        assert!(session.is_fenced(Slot::A, old).await);
        assert_eq!(session.seen(Slot::A).await.0, PeerState::Online);
        assert_eq!(session.waiting(Slot::A, new.epoch).await, [said(1, 1, "b1")]);
    }
    assert_eq!(
        session.waiting(Slot::B, b).await,
        [said(1, 1, "a1"), (2, 2, None)]
    );
    assert!(session.is_fenced(Slot::B, 0).await, "an epoch that nobody had");
}

pub(crate) async fn a_secret_that_was_replaced_does_not_come_back(opened: Opened) {
    let session = opened.with_session().await;
    session.bind(again(Slot::A, 1, 5, 0)).await;
    for attempt in [0, 4, 5] {
        let refused = session.try_bind(again(Slot::A, 1, attempt, 0)).await;
        assert!(matches!(refused, Err(BindRefusal::Replaced)), "{attempt}");
    }
    let loads = limits::RETIRED_CONNECTIONS as u128 + 2;
    for connection in 2..=loads {
        session.pass(Duration::from_millis(6100)).await;
        session.bind(hello(Slot::A, connection)).await;
    }
    for connection in 2..loads {
        let refused = session.try_bind(again(Slot::A, connection, 99, 0)).await;
        assert!(matches!(refused, Err(BindRefusal::Replaced)), "{connection}");
    }
    assert_eq!(u128::from(session.seen(Slot::A).await.1), loads);
    session.bind(hello(Slot::B, 2)).await;
}

pub(crate) async fn binds_are_limited_each_kind_by_itself(opened: Opened) {
    let session = opened.with_session().await;
    let loads = u128::from(limits::NEW_CONNECTIONS_PER_MINUTE);
    for connection in 1..=loads {
        session.bind(hello(Slot::A, connection)).await;
    }
    let refused = session.try_bind(hello(Slot::A, 99)).await;
    assert!(matches!(refused, Err(BindRefusal::TooManyLoads)));
    let resumes = u64::from(limits::RESUMES_PER_MINUTE);
    for attempt in 2..resumes + 2 {
        session.bind(again(Slot::A, loads, attempt, 0)).await;
    }
    let attempt = resumes + 2;
    let refused = session.try_bind(again(Slot::A, loads, attempt, 0)).await;
    assert!(matches!(refused, Err(BindRefusal::TooManyResumes)));
    // The other slot has its own budgets, and the next minute has new ones.
    session.bind(hello(Slot::B, 1)).await;
    session.bind(again(Slot::B, 1, 2, 0)).await;
    session.pass(Duration::from_secs(60)).await;
    session.bind(again(Slot::A, loads, attempt, 0)).await;
    session.bind(hello(Slot::A, 99)).await;
    session.bind(again(Slot::A, 99, 2, 0)).await;
}

pub(crate) async fn a_client_that_knows_more_than_was_sent_is_turned_away(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    session.fill(Slot::A, a, 1, 2).await;
    assert_eq!(session.waiting(Slot::B, b).await.len(), 2);
    for bind in [again(Slot::B, 2, 2, 3), again(Slot::B, 9, 1, 3)] {
        assert!(matches!(
            session.try_bind(bind).await,
            Err(BindRefusal::BeyondSent)
        ));
    }
    assert_eq!(session.trim(Slot::B, b, 3).await.unwrap(), Trimmed::BeyondSent);
    assert_eq!(session.waiting(Slot::B, b).await.len(), 2);
    // What was sent may be known, though it is kept no longer.
    for attempt in [2, 3] {
        assert_eq!(session.bind(again(Slot::B, 2, attempt, 2)).await.base, 2);
    }
}

pub(crate) async fn what_waits_and_was_never_sent_can_not_be_known(opened: Opened) {
    let session = opened.with_session().await;
    let a = session.bind(hello(Slot::A, 1)).await.epoch;
    session.fill(Slot::A, a, 1, 5).await;
    for last in [1, 5] {
        let refused = session.try_bind(again(Slot::B, 2, 1, last)).await;
        assert!(matches!(refused, Err(BindRefusal::BeyondSent)), "{last}");
    }
    let b = session.bind(hello(Slot::B, 2)).await.epoch;
    assert_eq!(session.trim(Slot::B, b, 1).await.unwrap(), Trimmed::BeyondSent);

    // One page is sent: of its messages it may know, of the others not.
    let store = &session.opened.store;
    let page = store.read(session.id, Slot::B, b, 0, 2 * (ENTRY_BYTES + 2));
    assert_eq!(page.await.unwrap().entries.len(), 2);
    assert_eq!(session.trim(Slot::B, b, 3).await.unwrap(), Trimmed::BeyondSent);
    assert_eq!(session.trim(Slot::B, b, 1).await.unwrap(), Trimmed::Trimmed);
    // Whichever of its connections read it.
    let refused = session.try_bind(again(Slot::B, 3, 1, 3)).await;
    assert!(matches!(refused, Err(BindRefusal::BeyondSent)));
    let reloaded = session.bind(again(Slot::B, 3, 1, 2)).await;
    assert_eq!(reloaded.base, 2);
    assert_eq!(
        session.trim(Slot::B, reloaded.epoch, 3).await.unwrap(),
        Trimmed::BeyondSent
    );
    // What was read again makes nothing unsent.
    assert_eq!(session.waiting(Slot::B, reloaded.epoch).await.len(), 3);
    let page = store.read(session.id, Slot::B, reloaded.epoch, 0, 1);
    assert_eq!(page.await.unwrap().entries.len(), 1);
    assert_eq!(
        session.trim(Slot::B, reloaded.epoch, 5).await.unwrap(),
        Trimmed::Trimmed
    );
}

pub(crate) async fn a_lost_peer_is_away_after_2_s_and_left_after_30(opened: Opened) {
    use PeerState::{Absent, Away, Left, Online};
    let session = opened.with_session().await;
    let millis = |millis| Some(Duration::from_millis(millis));
    assert_eq!(session.seen(Slot::A).await, (Absent, 0, None));
    let a = session.bind(hello(Slot::A, 1)).await.epoch;
    assert_eq!(session.seen(Slot::A).await, (Online, 1, None));
    session.unbind(Slot::A, a, Departure::Lost).await.unwrap();
    assert_eq!(session.seen(Slot::A).await, (Online, 1, millis(2000)));
    session.pass(Duration::from_millis(1999)).await;
    assert_eq!(session.seen(Slot::A).await, (Online, 1, millis(1)));
    session.pass(Duration::from_millis(1)).await;
    assert_eq!(session.seen(Slot::A).await, (Away, 1, millis(28_000)));
    assert_eq!(session.bind(hello(Slot::B, 2)).await.peer.told.state, Away);
    session.pass(Duration::from_millis(27_999)).await;
    assert_eq!(session.seen(Slot::A).await, (Away, 1, millis(1)));
    session.pass(Duration::from_millis(1)).await;
    assert_eq!(session.seen(Slot::A).await, (Left, 1, None));
    session.bind(again(Slot::A, 1, 2, 0)).await;
    assert_eq!(session.seen(Slot::A).await, (Online, 1, None));
}

pub(crate) async fn a_goodbye_is_seen_at_once_and_can_be_taken_back(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    session.unbind(Slot::A, a, Departure::Bye).await.unwrap();
    assert_eq!(session.seen(Slot::A).await, (PeerState::Left, 1, None));
    assert!(session.is_fenced(Slot::A, a).await);
    assert_eq!(session.seen(Slot::A).await, (PeerState::Left, 1, None));
    session.fill(Slot::B, b, 1, 1).await;
    session.pass(Duration::from_secs(60)).await;
    let back = session.bind(again(Slot::A, 1, 2, 0)).await;
    assert_eq!(session.waiting(Slot::A, back.epoch).await, [said(1, 1, "b1")]);
    assert_eq!(session.seen(Slot::A).await, (PeerState::Online, 1, None));
}
