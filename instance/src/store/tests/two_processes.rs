//! Two processes on one database, each with its own connections, and many tasks in each.

use std::collections::HashSet;

use futures_util::future::join_all;

use crate::{
    store::{
        Store,
        testing::{Place, new_device, registered, waiting},
    },
    user::User,
};

pub(super) mod contract {
    contract!(
        a_row_is_never_taken_by_two,
        a_token_that_many_register_at_once_is_one_row,
        registrations_at_once_keep_to_the_limit_and_each_makes_no_more_room_than_it_takes,
        a_prune_that_races_a_registration_never_takes_the_new_one,
    );
}

async fn a_row_is_never_taken_by_two(place: Place) {
    let device = registered(&place.store, &new_device(&User::new("ann"), "token"), 50).await;
    let rows: Vec<_> = (0..300).map(|_| waiting(&device, 100)).collect();
    place.store.enqueue(&rows).await.unwrap();
    let other = place.again().await;
    let claimers = (0..8).map(|number| claim_all(if number % 2 == 0 { &place.store } else { &other }));
    let taken: Vec<_> = join_all(claimers).await.concat();
    assert_eq!(taken.len(), 300);
    assert_eq!(taken.into_iter().collect::<HashSet<_>>().len(), 300);
    other.close().await;
}

/// A claim may come back empty while others hold what it looked at, so ends only when all is taken.
async fn claim_all(store: &Store) -> Vec<uuid::Uuid> {
    let mut taken = Vec::new();
    while store.outbox_counts(100).await.unwrap().leased < 300 {
        let rows = store.claim(100, 1000, 7).await.unwrap();
        taken.extend(rows.iter().map(|row| row.id));
    }
    taken
}

async fn a_token_that_many_register_at_once_is_one_row(place: Place) {
    let other = place.again().await;
    let users: Vec<_> = (0..12).map(|number| User::new(number.to_string())).collect();
    let register = async |(number, user): (usize, &User)| {
        let store = if number % 2 == 0 { &place.store } else { &other };
        store
            .register_device(&new_device(user, "token"), 5, 100)
            .await
            .unwrap()
    };
    let answers = join_all(users.iter().enumerate().map(register)).await;
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let devices = join_all(users.iter().map(|user| place.store.devices_of(user))).await;
    assert_eq!(devices.into_iter().flat_map(Result::unwrap).count(), 1);
    other.close().await;
}

async fn registrations_at_once_keep_to_the_limit_and_each_makes_no_more_room_than_it_takes(place: Place) {
    let other = place.again().await;
    let ann = User::new("ann");
    let devices: Vec<_> = (0..12)
        .map(|number| new_device(&ann, &number.to_string()))
        .collect();
    let register = async |(number, device)| {
        let store = if number % 2 == 0 { &place.store } else { &other };
        store.register_device(device, 5, 100).await.unwrap()
    };
    let answers = join_all(devices.iter().enumerate().map(register)).await;
    assert_eq!(answers.iter().flat_map(|answer| &answer.removed).count(), 7);
    assert_eq!(place.store.devices_of(&ann).await.unwrap().len(), 5);
    other.close().await;
}

async fn a_prune_that_races_a_registration_never_takes_the_new_one(place: Place) {
    let other = place.again().await;
    let ann = User::new("ann");
    for round in 0..20 {
        let read = registered(&place.store, &new_device(&ann, "token"), 100 + round * 10).await;
        let new = new_device(&ann, "token");
        let again = place.store.register_device(&new, 5, 105 + round * 10);
        let (again, pruned) = tokio::join!(again, other.prune_device(&read, 104 + round * 10));
        again.unwrap();
        pruned.unwrap();
        let devices = place.store.devices_of(&ann).await.unwrap();
        assert_eq!(devices[0].created_at, 105 + round * 10);
    }
    other.close().await;
}
