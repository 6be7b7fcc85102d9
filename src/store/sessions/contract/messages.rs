//! What is stored, for whom, and for how long.

use super::*;

pub(crate) async fn messages_wait_in_order_and_are_read_page_by_page(opened: Opened) {
    let session = opened.with_session().await;
    let a = session.bind(hello(Slot::A, 1)).await.epoch;
    session.fill(Slot::A, a, 1, 21).await;
    session.unbind(Slot::A, a, Departure::Bye).await.unwrap();
    session.pass(Duration::from_secs(60)).await;
    let b = session.bind(hello(Slot::B, 2)).await.epoch;
    let page = async |after, bytes| {
        let page = session.opened.store.read(session.id, Slot::B, b, after, bytes);
        page.await.unwrap()
    };
    let (mut read, mut is_last) = (Vec::new(), false);
    while !is_last {
        let page = page(read.len() as u64, 10).await;
        assert!((1..=5).contains(&page.entries.len()), "at least one");
        read.extend(page.entries.into_iter().map(shown));
        is_last = page.is_last;
    }
    let expected: Vec<_> = (1..=21).map(|n| said(n, 1, &format!("a{n}"))).collect();
    assert_eq!(read, expected);
    for after in 0..=21 {
        let page = page(after, usize::MAX).await;
        assert_eq!((page.entries.len() as u64, page.is_last), (21 - after, true));
    }
    let beyond = session.opened.store.read(session.id, Slot::B, b, 22, 10).await;
    assert!(matches!(beyond, Err(Gone::Behind)), "that was never read");
}

pub(crate) async fn a_message_is_stored_once_and_a_gap_is_refused(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    for (n, expected) in [
        (2, Appended::OutOfStep),
        (1, Appended::Stored),
        (1, Appended::Duplicate),
        (3, Appended::OutOfStep),
        (2, Appended::Stored),
        (1, Appended::Duplicate),
    ] {
        assert_eq!(session.append(Slot::A, a, n).await.unwrap(), expected, "{n}");
    }
    assert_eq!(
        session.waiting(Slot::B, b).await,
        [said(1, 1, "a1"), said(2, 1, "a2")]
    );
    assert_eq!(session.waiting(Slot::A, a).await, []);
    // Stored before it was resumed, acknowledged or not: stored.
    session.process(Slot::B, b, 2).await;
    let a = session.bind(again(Slot::A, 1, 2, 0)).await.epoch;
    assert_eq!(session.append(Slot::A, a, 2).await.unwrap(), Appended::Duplicate);
    assert_eq!(session.waiting(Slot::B, b).await, []);
}

pub(crate) async fn of_many_copies_at_once_one_is_stored(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    let answers = join_all((0..20).map(|_| session.append(Slot::A, a, 1))).await;
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    let stored = answers
        .iter()
        .filter(|answer| **answer == Appended::Stored)
        .count();
    let duplicates = answers
        .iter()
        .filter(|answer| **answer == Appended::Duplicate)
        .count();
    assert_eq!((stored, duplicates), (1, 19));
    assert_eq!(session.waiting(Slot::B, b).await, [said(1, 1, "a1")]);
}

pub(crate) async fn messages_of_both_sides_of_a_takeover_leave_no_gap(opened: Opened) {
    let session = opened.with_session().await;
    let (old, b) = session.both().await;
    let before = async {
        for n in 1.. {
            match session.append(Slot::A, old, n).await {
                Ok(appended) => assert_eq!(appended, Appended::Stored),
                Err(gone) => return assert!(matches!(gone, Gone::Fenced)),
            }
            tokio::task::yield_now().await;
        }
    };
    let after = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let new = session.bind(again(Slot::A, 1, 2, 0)).await;
        session.fill(Slot::A, new.epoch, new.next, new.next + 10).await;
        new.next
    };
    let ((), next) = tokio::join!(before, after);
    let expected: Vec<_> = (1..=next + 10).map(|n| said(n, 1, &format!("a{n}"))).collect();
    assert_eq!(session.waiting(Slot::B, b).await, expected);
}

pub(crate) async fn what_is_acknowledged_is_forgotten_and_nothing_else(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    session.fill(Slot::A, a, 1, 4).await;
    assert_eq!(session.waiting(Slot::B, b).await.len(), 4);
    for seq in [3, 3, 1, 0] {
        assert_eq!(session.trim(Slot::B, b, seq).await.unwrap(), Trimmed::Trimmed);
        assert_eq!(session.waiting(Slot::B, b).await, [said(4, 1, "a4")]);
    }
    let resumed = session.bind(again(Slot::B, 2, 2, 4)).await;
    assert_eq!(resumed.base, 4);
    assert_eq!(session.waiting(Slot::B, resumed.epoch).await, []);
    session.fill(Slot::A, a, 5, 5).await;
    assert_eq!(session.waiting(Slot::B, resumed.epoch).await, [said(5, 1, "a5")]);
    // One that is behind brings nothing back.
    let resumed = session.bind(again(Slot::B, 2, 3, 0)).await;
    assert_eq!(resumed.base, 4);
    assert_eq!(session.waiting(Slot::B, resumed.epoch).await, [said(5, 1, "a5")]);
}

pub(crate) async fn a_new_load_of_the_receiver_gets_what_was_not_acknowledged(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    session.fill(Slot::A, a, 1, 3).await;
    session.process(Slot::B, b, 1).await;
    let reloaded = session.bind(hello(Slot::B, 3)).await;
    assert_eq!((reloaded.base, reloaded.generation), (1, 2));
    let expected = [said(2, 1, "a2"), said(3, 1, "a3")];
    assert_eq!(session.waiting(Slot::B, reloaded.epoch).await, expected);
}

pub(crate) async fn a_new_load_of_the_sender_stands_before_its_messages_even_in_a_full_mailbox(
    opened: Opened,
) {
    let session = opened.with_session().await;
    let a = session.bind(hello(Slot::A, 1)).await.epoch;
    let most = limits::MAILBOX_MESSAGES as u64;
    session.fill(Slot::A, a, 1, most).await;
    let reloaded = session.bind(hello(Slot::A, 2)).await.epoch;
    assert_eq!(
        session.append(Slot::A, reloaded, 1).await.unwrap(),
        Appended::MailboxFull
    );
    let b = session.bind(hello(Slot::B, 3)).await;
    assert_eq!((b.base, b.peer.told.generation), (0, 2));
    assert_eq!(
        session.waiting(Slot::B, b.epoch).await.last(),
        Some(&(most + 1, 2, None))
    );
    session.process(Slot::B, b.epoch, most).await;
    session.fill(Slot::A, reloaded, 1, 1).await;
    let expected = [(most + 1, 2, None), said(most + 2, 2, "a1")];
    assert_eq!(session.waiting(Slot::B, b.epoch).await, expected);
}

pub(crate) async fn a_full_mailbox_refuses_what_is_new_until_something_is_acknowledged(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    let most = limits::MAILBOX_MESSAGES as u64;
    session.fill(Slot::A, a, 1, most).await;
    for (n, expected) in [
        (most + 1, Appended::MailboxFull),
        (most, Appended::Duplicate),
        (most + 2, Appended::OutOfStep),
    ] {
        assert_eq!(session.append(Slot::A, a, n).await.unwrap(), expected, "{n}");
    }
    session.fill(Slot::B, b, 1, 1).await;
    session.process(Slot::B, b, 1).await;
    session.fill(Slot::A, a, most + 1, most + 1).await;
    assert_eq!(
        session.append(Slot::A, a, most + 2).await.unwrap(),
        Appended::MailboxFull
    );
    let waiting = session.waiting(Slot::B, b).await;
    assert_eq!(
        waiting.iter().map(|entry| entry.0).collect::<Vec<_>>(),
        (2..=most + 1).collect::<Vec<_>>()
    );
}

pub(crate) async fn the_bytes_of_a_mailbox_are_bounded(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    let append = |n, length| {
        let content = Opaque::new("x".repeat(length));
        session.opened.store.append(session.id, Slot::A, a, n, content)
    };
    let sixteenth = limits::MAILBOX_BYTES / 16 - ENTRY_BYTES;
    for n in 1..=16 {
        assert_eq!(append(n, sixteenth).await.unwrap(), Appended::Stored);
    }
    assert_eq!(append(17, 0).await.unwrap(), Appended::MailboxFull);
    session.process(Slot::B, b, 1).await;
    assert_eq!(append(17, sixteenth + 1).await.unwrap(), Appended::MailboxFull);
    assert_eq!(append(17, sixteenth).await.unwrap(), Appended::Stored);
}

pub(crate) async fn messages_without_content_are_counted_too(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    let append = |n, length| {
        let content = Opaque::new("x".repeat(length));
        session.opened.store.append(session.id, Slot::A, a, n, content)
    };
    for n in 1..=10 {
        assert_eq!(append(n, 0).await.unwrap(), Appended::Stored);
    }
    let room = limits::MAILBOX_BYTES - 11 * ENTRY_BYTES;
    assert_eq!(append(11, room + 1).await.unwrap(), Appended::MailboxFull);
    assert_eq!(append(11, room).await.unwrap(), Appended::Stored);
    session.process(Slot::B, b, 1).await;
    assert_eq!(append(12, 1).await.unwrap(), Appended::MailboxFull);
    assert_eq!(append(12, 0).await.unwrap(), Appended::Stored);
}

pub(crate) async fn a_session_carries_so_many_messages_both_ways_together(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    let half = u64::from(limits::SESSION_MESSAGES / 2);
    for n in 1..=half {
        session.fill(Slot::A, a, n, n).await;
        session.fill(Slot::B, b, n, n).await;
        session.process(Slot::A, a, n).await;
        session.process(Slot::B, b, n).await;
    }
    assert_eq!(
        session.append(Slot::A, a, half + 1).await.unwrap(),
        Appended::SessionTotal
    );
    assert_eq!(
        session.append(Slot::B, b, half + 1).await.unwrap(),
        Appended::SessionTotal
    );
    assert_eq!(
        session.append(Slot::B, b, half).await.unwrap(),
        Appended::Duplicate
    );
    let reloaded = session.bind(hello(Slot::A, 3)).await.epoch;
    assert_eq!(
        session.append(Slot::A, reloaded, 1).await.unwrap(),
        Appended::SessionTotal
    );
}

pub(crate) async fn what_is_done_in_one_session_is_not_seen_in_another(opened: Opened) {
    let other = NewSession {
        id: SessionId::from_bytes([201; 16]),
        ..plain(2)
    };
    assert!(matches!(opened.create(other).await, Creation::Made(_)));
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    session.fill(Slot::A, a, 1, 3).await;
    let store = &session.opened.store;
    let bound = store.bind(other.id, hello(Slot::B, 2)).await.unwrap();
    assert_eq!((bound.generation, bound.peer.told.state), (1, PeerState::Absent));
    assert_eq!(
        store
            .read(other.id, Slot::B, bound.epoch, 0, usize::MAX)
            .await
            .unwrap()
            .entries,
        []
    );
    assert!(store.remove(other.id, instance(2)).await.unwrap());
    assert_eq!(session.waiting(Slot::B, b).await.len(), 3);
}
