//! How sessions begin and end.

use super::*;

pub(crate) async fn a_session_is_seen_by_its_instance_and_by_nobody_else(opened: Opened) {
    let Creation::Made(place) = opened.create(plain(1)).await else {
        panic!("not made");
    };
    assert_eq!((place.incarnation, place.slot), (Incarnation(7), None));
    let session = Session {
        id: plain(1).id,
        opened,
    };
    let (a, _) = session.both().await;
    session.fill(Slot::A, a, 1, 2).await;
    let store = &session.opened.store;
    let view = store.view(session.id, instance(1)).await.unwrap().unwrap();
    assert_eq!((view.session_id, view.expires_at), (session.id, place.expires_at));
    let shown = |slot: sovereign_relay_protocol::signal::session::SlotView| {
        (slot.state, slot.generation, slot.queued)
    };
    assert_eq!(shown(view.slots.a), (PeerState::Online, 1, 0));
    assert_eq!(shown(view.slots.b), (PeerState::Online, 1, 2));
    assert_eq!(store.view(session.id, instance(2)).await.unwrap(), None);
    assert!(!store.remove(session.id, instance(2)).await.unwrap());
    let unknown = SessionId::from_bytes([1; 16]);
    assert!(store.lives(session.id).await.unwrap() && !store.lives(unknown).await.unwrap());
    assert_eq!(store.view(unknown, instance(1)).await.unwrap(), None);
    assert!(!store.remove(unknown, instance(1)).await.unwrap());
}

pub(crate) async fn two_instances_meet_at_a_rendezvous_and_the_first_ones_settings_hold(opened: Opened) {
    let Creation::Made(first) = opened.create(meeting(1)).await else {
        panic!("not made");
    };
    assert_eq!(first.slot, Some(Slot::A));
    let refused = opened.store.bind(meeting(1).id, hello(Slot::B, 1)).await;
    assert!(
        matches!(refused, Err(BindRefusal::Gone(Gone::NoSession))),
        "nobody's slot"
    );
    opened.pass(Duration::from_secs(10)).await;

    let mut later = NewSession {
        incarnation: Incarnation(8),
        life: LIFE * 2,
        ..meeting(2)
    };
    later.settings.turn = true;
    let mut other = meeting(2);
    other.settings.e2e = EndToEnd::Required;
    assert_eq!(opened.create(other).await, Creation::Conflict);
    for _ in 0..2 {
        let second = Place {
            slot: Some(Slot::B),
            ..first
        };
        assert_eq!(opened.create(later).await, Creation::Joined(second));
        assert_eq!(opened.create(meeting(1)).await, Creation::Joined(first));
    }
    assert_eq!(opened.create(meeting(3)).await, Creation::Full);

    let bound = opened.store.bind(meeting(1).id, hello(Slot::B, 1)).await.unwrap();
    assert_eq!(
        (bound.instance, bound.settings),
        (instance(2), meeting(1).settings)
    );
    assert_eq!(
        (bound.expires_at, bound.expires_in),
        (first.expires_at, LIFE - Duration::from_secs(10))
    );
    for (number, sees) in [(1, true), (2, true), (3, false)] {
        let view = opened.store.view(meeting(1).id, instance(number)).await.unwrap();
        assert_eq!(view.is_some(), sees);
    }
}

pub(crate) async fn of_many_instances_that_meet_at_once_two_find_a_slot(opened: Opened) {
    let created = join_all((1..=8).map(|number| opened.create(meeting(number)))).await;
    let count = |is: fn(&Creation) -> bool| created.iter().filter(|creation| is(creation)).count();
    assert_eq!(
        count(|creation| matches!(creation, Creation::Made(place) if place.slot == Some(Slot::A))),
        1
    );
    assert_eq!(
        count(|creation| matches!(creation, Creation::Joined(place) if place.slot == Some(Slot::B))),
        1
    );
    assert_eq!(count(|creation| *creation == Creation::Full), 6);
}

pub(crate) async fn a_removed_session_is_gone_for_everybody(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    session.fill(Slot::A, a, 1, 3).await;
    assert!(
        session
            .opened
            .store
            .remove(session.id, instance(1))
            .await
            .unwrap()
    );
    assert!(session.is_gone(Slot::A, a).await && session.is_gone(Slot::B, b).await);
    assert!(
        !session
            .opened
            .store
            .remove(session.id, instance(1))
            .await
            .unwrap()
    );
}

pub(crate) async fn a_session_that_is_over_is_gone_for_everybody(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    session.fill(Slot::A, a, 1, 3).await;
    session.pass(LIFE - Duration::from_millis(1)).await;
    // Work in its last moment doesn't lengthen its life.
    session.fill(Slot::B, b, 1, 1).await;
    let bound = session.bind(again(Slot::A, 1, 2, 0)).await;
    assert_eq!(bound.expires_in, Duration::from_millis(1));
    session.pass(Duration::from_millis(1)).await;
    assert!(session.is_gone(Slot::A, bound.epoch).await && session.is_gone(Slot::B, b).await);
    assert!(
        !session
            .opened
            .store
            .remove(session.id, instance(1))
            .await
            .unwrap()
    );
}

pub(crate) async fn no_connection_or_ticket_of_a_session_outlives_it_into_the_next_of_the_same_id(
    opened: Opened,
) {
    assert!(matches!(opened.create(meeting(1)).await, Creation::Made(_)));
    let session = Session {
        id: meeting(1).id,
        opened,
    };
    for ends_early in [true, false] {
        let earlier = session.bind(hello(Slot::A, 1)).await.epoch;
        session.fill(Slot::A, earlier, 1, 1).await;
        if ends_early {
            assert!(
                session
                    .opened
                    .store
                    .remove(session.id, instance(1))
                    .await
                    .unwrap()
            );
            session.pass(Duration::from_millis(1)).await;
        } else {
            session.pass(LIFE).await;
        }
        let next = NewSession {
            incarnation: Incarnation(8),
            ..meeting(1)
        };
        assert!(matches!(session.opened.create(next).await, Creation::Made(_)));
        let refused = session.try_bind(hello(Slot::A, 1)).await;
        assert!(matches!(refused, Err(BindRefusal::Gone(Gone::NoSession))));
        let bind = Bind {
            incarnation: Incarnation(8),
            ..hello(Slot::A, 1)
        };
        let bound = session.bind(bind).await;
        assert_eq!((bound.generation, bound.next, bound.base), (1, 1, 0));
        assert!(session.is_fenced(Slot::A, earlier).await && bound.epoch > earlier);
        assert_eq!(session.seen(Slot::A).await.0, PeerState::Online);
        assert!(
            session
                .opened
                .store
                .remove(session.id, instance(1))
                .await
                .unwrap()
        );
        session.pass(Duration::from_millis(1)).await;
        assert!(matches!(
            session.opened.create(meeting(1)).await,
            Creation::Made(_)
        ));
    }
}

pub(crate) async fn an_instance_has_so_many_live_sessions_and_its_neighbours_theirs(opened: Opened) {
    let most = SessionBounds::default().sessions_per_instance;
    let numbered = |number: u32, by: u8| NewSession {
        id: SessionId::from_bytes(u128::from(number).to_be_bytes()),
        ..meeting(by)
    };
    for number in 1..=most {
        assert!(matches!(
            opened.create(numbered(number, 1)).await,
            Creation::Made(_)
        ));
    }
    assert_eq!(opened.create(numbered(0, 1)).await, Creation::TooMany);
    assert!(
        matches!(opened.create(numbered(1, 1)).await, Creation::Joined(_)),
        "its own again"
    );
    assert!(matches!(opened.create(numbered(0, 2)).await, Creation::Made(_)));
    // To come to another's session counts as well.
    assert_eq!(opened.create(numbered(0, 1)).await, Creation::TooMany);
    assert!(opened.store.remove(numbered(5, 1).id, instance(1)).await.unwrap());
    assert!(matches!(opened.create(numbered(0, 1)).await, Creation::Joined(_)));
    assert_eq!(opened.create(numbered(5, 1)).await, Creation::TooMany);
    // What is over is counted no longer.
    opened.pass(LIFE + Duration::from_secs(2)).await;
    assert!(matches!(opened.create(numbered(1, 1)).await, Creation::Made(_)));
}

pub(crate) async fn a_session_that_both_left_ends_soon_unless_one_comes_back(opened: Opened) {
    let session = opened.with_session().await;
    let (a, b) = session.both().await;
    session.unbind(Slot::A, a, Departure::Bye).await.unwrap();
    session.unbind(Slot::B, b, Departure::Bye).await.unwrap();
    session.pass(Duration::from_millis(4999)).await;
    let back = session.bind(again(Slot::A, 1, 2, 0)).await;
    session.pass(Duration::from_secs(30)).await;
    assert_eq!(
        session.append(Slot::A, back.epoch, 1).await.unwrap(),
        Appended::Stored
    );

    session.unbind(Slot::A, back.epoch, Departure::Bye).await.unwrap();
    session.pass(Duration::from_secs(5)).await;
    assert!(session.is_gone(Slot::A, back.epoch).await);
}

pub(crate) async fn whoever_comes_to_a_rendezvous_that_both_left_has_a_ticket_that_is_good(opened: Opened) {
    let Creation::Made(first) = opened.create(meeting(1)).await else {
        panic!("not made");
    };
    assert!(matches!(opened.create(meeting(2)).await, Creation::Joined(_)));
    let session = Session {
        id: meeting(1).id,
        opened,
    };
    let (a, b) = session.both().await;
    session.fill(Slot::A, a, 1, 2).await;
    session.unbind(Slot::A, a, Departure::Bye).await.unwrap();
    session.unbind(Slot::B, b, Departure::Bye).await.unwrap();
    session.pass(Duration::from_secs(4)).await;
    assert_eq!(session.opened.create(meeting(1)).await, Creation::Joined(first));
    session.pass(Duration::from_secs(60)).await;
    let b = session.bind(hello(Slot::B, 3)).await;
    assert_eq!(b.expires_in, LIFE - Duration::from_secs(64));
    assert_eq!(session.waiting(Slot::B, b.epoch).await.len(), 2);
    session.unbind(Slot::B, b.epoch, Departure::Bye).await.unwrap();

    // Whoever finds no place, or asks for something else, takes nothing back.
    session.pass(Duration::from_secs(4)).await;
    let mut other = meeting(1);
    other.settings.e2e = EndToEnd::Required;
    assert_eq!(session.opened.create(other).await, Creation::Conflict);
    assert_eq!(session.opened.create(meeting(3)).await, Creation::Full);
    session.pass(Duration::from_secs(1)).await;
    assert!(session.is_gone(Slot::A, a).await);
}
