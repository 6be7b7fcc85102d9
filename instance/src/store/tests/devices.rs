//! Registration, revocation, pruning.

use std::iter::zip;

use sovereign_relay_protocol::platform::{Environment, Platform};
use uuid::Uuid;

use crate::{
    store::testing::{Place, new_device, registered, told, waiting},
    user::User,
};

pub(super) mod contract {
    contract!(
        a_device_is_read_as_it_was_registered,
        a_token_moves_to_the_user_and_key_that_registered_it_last,
        a_user_of_another_tenant_is_another_user,
        the_limit_counts_a_users_devices_but_not_the_one_that_registers_again,
        room_is_made_by_those_unused_longest_and_what_waits_for_them_goes_too,
        one_that_registers_again_never_makes_room_for_itself,
        only_its_user_removes_a_device,
        nothing_waits_for_a_device_that_was_removed,
        what_waited_for_the_previous_user_is_not_shown_to_the_next,
        what_waits_stays_when_the_same_user_registers_the_same_key_again,
        a_device_is_pruned_when_its_registration_is_older_than_the_invalidity,
        the_same_second_proves_nothing_and_keeps_the_device,
        a_device_that_registered_again_is_not_pruned_by_what_was_read_before,
        use_is_noted_of_the_registration_that_was_read,
        a_user_who_is_forgotten_leaves_nothing,
        a_row_of_a_platform_that_is_not_known_does_not_hide_the_others,
    );
}

async fn a_device_is_read_as_it_was_registered(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let environments = [
        None,
        Some(Environment::Sandbox),
        Some(Environment::Production),
        None,
    ];
    for (platform, environment) in zip(Platform::ALL, environments) {
        let mut new = new_device(&ann, platform.as_str());
        (new.platform, new.environment) = (platform, environment);
        let device = registered(&store, &new, 100).await;
        assert_eq!(device.user, ann);
        assert_eq!(device.platform, platform);
        assert_eq!(device.token, new.token);
        assert_eq!(device.public_key, new.public_key);
        assert_eq!(device.relay_url, new.relay_url);
        assert_eq!(device.environment, environment);
        assert_eq!((device.created_at, device.last_used_at), (100, None));
    }
    assert_eq!(store.devices_of(&ann).await.unwrap().len(), 4);
    assert_eq!(store.devices_of(&User::new("ben")).await.unwrap(), []);
}

async fn a_token_moves_to_the_user_and_key_that_registered_it_last(Place { store, .. }: Place) {
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    let old = registered(&store, &new_device(&ann, "token"), 100).await;
    told(&store, &[(old.id, 100)], 150).await;
    let mut new = new_device(&ben, "token");
    new.environment = Some(Environment::Sandbox);
    new.public_key = "another key".to_owned();
    new.relay_url = "https://another.example".to_owned();
    new.platform = Platform::Ios;
    let moved = registered(&store, &new, 200).await;
    assert_eq!(store.devices_of(&ann).await.unwrap(), []);
    assert_eq!(moved.public_key, "another key");
    assert_eq!(moved.relay_url, "https://another.example");
    assert_eq!(moved.platform, Platform::Ios);
    assert_eq!(moved.environment, Some(Environment::Sandbox));
    assert_eq!((moved.created_at, moved.last_used_at), (200, None));
    new.environment = None;
    assert_eq!(registered(&store, &new, 300).await.environment, None);
}

async fn a_user_of_another_tenant_is_another_user(Place { store, .. }: Place) {
    let (here, there) = (User::new("ann"), User::of_tenant("there", "ann"));
    let device = registered(&store, &new_device(&here, "token"), 100).await;
    assert_eq!(store.devices_of(&there).await.unwrap(), []);
    assert!(!store.remove_device(&there, device.id).await.unwrap());
    assert_eq!(store.devices_of(&here).await.unwrap(), [device]);
}

async fn the_limit_counts_a_users_devices_but_not_the_one_that_registers_again(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let register = async |token: &str, limit: u32, now: u64| {
        let new = new_device(&ann, token);
        store.register_device(&new, limit, now).await.unwrap()
    };
    let (one, two) = (register("one", 2, 100).await, register("two", 2, 101).await);
    assert_eq!((&one.removed, &two.removed), (&vec![], &vec![]));
    assert_eq!(register("two", 2, 102).await, two);
    assert_eq!(register("three", 2, 103).await.removed, [one.id]);
    // There is always room for the one that registers.
    assert_eq!(register("four", 0, 104).await.removed.len(), 2);
    assert_eq!(store.devices_of(&ann).await.unwrap().len(), 1);
}

async fn room_is_made_by_those_unused_longest_and_what_waits_for_them_goes_too(Place { store, .. }: Place) {
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    let mut of_ann = Vec::new();
    for (number, token) in (0..).zip(["one", "two", "three", "four"]) {
        let device = registered(&store, &new_device(&ann, token), 100 + number).await;
        store.enqueue(&[waiting(&device, 100)]).await.unwrap();
        of_ann.push(device);
    }
    let of_ben = registered(&store, &new_device(&ben, "of ben"), 50).await;
    told(&store, &[(of_ann[0].id, of_ann[0].created_at)], 200).await;
    let new = new_device(&ann, "five");
    let mut removed = store.register_device(&new, 3, 300).await.unwrap().removed;
    removed.sort();
    let mut unused = [of_ann[1].id, of_ann[2].id];
    unused.sort();
    assert_eq!(removed, unused);
    assert_eq!(store.devices_of(&ann).await.unwrap().len(), 3);
    assert_eq!(store.claim(100, 10, 10).await.unwrap().len(), 2);
    assert_eq!(store.devices_of(&ben).await.unwrap(), [of_ben]);
}

async fn one_that_registers_again_never_makes_room_for_itself(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let old = registered(&store, &new_device(&ann, "old"), 100).await;
    let newer = registered(&store, &new_device(&ann, "newer"), 200).await;
    let again = new_device(&ann, "old");
    let registered = store.register_device(&again, 1, 300).await.unwrap();
    assert_eq!((registered.id, registered.removed), (old.id, vec![newer.id]));
}

async fn only_its_user_removes_a_device(Place { store, .. }: Place) {
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    let device = registered(&store, &new_device(&ann, "token"), 100).await;
    assert!(!store.remove_device(&ben, device.id).await.unwrap());
    assert!(!store.remove_device(&ann, Uuid::nil()).await.unwrap());
    assert!(store.remove_device(&ann, device.id).await.unwrap());
    assert!(!store.remove_device(&ann, device.id).await.unwrap());
    assert_eq!(store.devices_of(&ann).await.unwrap(), []);
}

async fn nothing_waits_for_a_device_that_was_removed(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let gone = registered(&store, &new_device(&ann, "gone"), 100).await;
    let stays = registered(&store, &new_device(&ann, "stays"), 100).await;
    let rows = [waiting(&gone, 100), waiting(&stays, 100)];
    store.enqueue(&rows).await.unwrap();
    assert!(store.remove_device(&ann, gone.id).await.unwrap());
    let claimed = store.claim(100, 10, 10).await.unwrap();
    assert_eq!(
        claimed.iter().map(|row| row.target_id).collect::<Vec<_>>(),
        [stays.id]
    );
}

async fn what_waited_for_the_previous_user_is_not_shown_to_the_next(Place { store, .. }: Place) {
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    let of_ann = registered(&store, &new_device(&ann, "token"), 100).await;
    store.enqueue(&[waiting(&of_ann, 100)]).await.unwrap();
    // Even with the same key, which the app keeps when another user signs in.
    registered(&store, &new_device(&ben, "token"), 101).await;
    assert_eq!(store.claim(200, 10, 10).await.unwrap(), []);
}

async fn what_waits_stays_when_the_same_user_registers_the_same_key_again(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let device = registered(&store, &new_device(&ann, "token"), 100).await;
    store.enqueue(&[waiting(&device, 100)]).await.unwrap();
    registered(&store, &new_device(&ann, "token"), 101).await;
    assert_eq!(store.claim(200, 10, 10).await.unwrap().len(), 1);
}

async fn a_device_is_pruned_when_its_registration_is_older_than_the_invalidity(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let device = registered(&store, &new_device(&ann, "token"), 100).await;
    assert!(store.prune_device(&device, 101).await.unwrap());
    assert!(!store.prune_device(&device, 101).await.unwrap());
    assert_eq!(store.devices_of(&ann).await.unwrap(), []);
}

async fn the_same_second_proves_nothing_and_keeps_the_device(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let device = registered(&store, &new_device(&ann, "token"), 100).await;
    for since in [0, 99, 100] {
        assert!(!store.prune_device(&device, since).await.unwrap(), "{since}");
    }
    assert_eq!(store.devices_of(&ann).await.unwrap(), [device]);
}

async fn a_device_that_registered_again_is_not_pruned_by_what_was_read_before(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let read = registered(&store, &new_device(&ann, "token"), 100).await;
    let later = registered(&store, &new_device(&ann, "token"), 105).await;
    assert!(!store.prune_device(&read, 200).await.unwrap());
    let mut new_key = new_device(&ann, "token");
    new_key.public_key = "another key".to_owned();
    registered(&store, &new_key, 105).await;
    assert!(!store.prune_device(&later, 200).await.unwrap());
    assert_eq!(store.devices_of(&ann).await.unwrap().len(), 1);
}

async fn use_is_noted_of_the_registration_that_was_read(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let mut used = Vec::new();
    for number in 0..3 {
        let device = registered(&store, &new_device(&ann, &number.to_string()), 100 + number).await;
        used.push((device.id, device.created_at));
    }
    used[1].1 += 1;
    told(&store, &used, 500).await;
    told(&store, &[], 600).await;
    let devices = store.devices_of(&ann).await.unwrap();
    let at: Vec<_> = devices.iter().map(|device| device.last_used_at).collect();
    assert_eq!(at, [Some(500), None, Some(500)]);
}

async fn a_user_who_is_forgotten_leaves_nothing(Place { store, .. }: Place) {
    use crate::store::{LogEntry, Outcome, testing::new_subscription};
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    for user in [&ann, &ben] {
        let device = registered(&store, &new_device(user, &user.id), 100).await;
        let row = waiting(&device, 100);
        store.enqueue(std::slice::from_ref(&row)).await.unwrap();
        let entry = LogEntry::of(&row, Outcome::Retrying, "overloaded".into(), 100);
        store.record(&[entry]).await.unwrap();
        store
            .subscribe(&new_subscription(user, &user.id), 9, 100)
            .await
            .unwrap();
    }
    store.forget_user(&ann).await.unwrap();
    for (user, left) in [(&ann, 0), (&ben, 1)] {
        assert_eq!(store.devices_of(user).await.unwrap().len(), left);
        assert_eq!(store.subscriptions_of(user).await.unwrap().len(), left);
        assert_eq!(store.log_of(user, 9).await.unwrap().len(), left);
    }
    assert_eq!(store.outbox_counts(100).await.unwrap().rows, 1);
}

async fn a_row_of_a_platform_that_is_not_known_does_not_hide_the_others(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let device = registered(&store, &new_device(&ann, "token"), 100).await;
    registered(&store, &new_device(&ann, "other"), 100).await;
    sqlx::query("UPDATE push_device_tokens SET platform = 'linux' WHERE device_token = 'other'")
        .execute(&store.pool)
        .await
        .unwrap();
    assert_eq!(store.devices_of(&ann).await.unwrap(), [device]);
}
