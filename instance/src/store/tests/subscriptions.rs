//! Browsers.

use crate::{
    store::{
        Channel, OutboxRow, Store, Subscription, Used,
        testing::{Place, new_device, new_subscription, registered, waiting},
    },
    user::User,
};

pub(super) mod contract {
    contract!(
        a_browser_is_read_as_it_subscribed,
        an_endpoint_moves_to_the_user_that_subscribed_last,
        the_limit_counts_a_users_browsers,
        unsubscribing_removes_all_of_the_users_and_what_waits_for_them,
        a_browser_is_pruned_only_as_it_was_read,
        use_of_a_browser_is_noted,
    );
}

async fn subscribed(store: &Store, user: &User, endpoint: &str, now: u64) -> Subscription {
    let new = new_subscription(user, endpoint);
    let id = store.subscribe(&new, 100, now).await.unwrap().id;
    let all = store.subscriptions_of(user).await.unwrap();
    all.into_iter().find(|one| one.id == id).unwrap()
}

async fn a_browser_is_read_as_it_subscribed(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let new = new_subscription(&ann, "https://push.example/1");
    let read = subscribed(&store, &ann, "https://push.example/1", 100).await;
    assert_eq!((&read.user, &read.endpoint), (&ann, &new.endpoint));
    assert_eq!((&read.p256dh, &read.auth), (&new.p256dh, &new.auth));
    assert_eq!((read.created_at, read.last_used_at), (100, None));
}

async fn an_endpoint_moves_to_the_user_that_subscribed_last(Place { store, .. }: Place) {
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    subscribed(&store, &ann, "https://push.example/1", 100).await;
    let moved = subscribed(&store, &ben, "https://push.example/1", 200).await;
    assert_eq!(store.subscriptions_of(&ann).await.unwrap(), []);
    assert_eq!(moved.created_at, 200);
}

async fn the_limit_counts_a_users_browsers(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let subscribe = async |endpoint: &str| {
        let new = new_subscription(&ann, endpoint);
        store.subscribe(&new, 1, 100).await.unwrap()
    };
    let one = subscribe("one").await;
    assert!(one.removed.is_empty());
    assert_eq!(subscribe("one").await, one);
    assert_eq!(subscribe("two").await.removed, [one.id]);
}

async fn unsubscribing_removes_all_of_the_users_and_what_waits_for_them(Place { store, .. }: Place) {
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    let device = registered(&store, &new_device(&ann, "token"), 100).await;
    let for_browser = |browser: &Subscription| OutboxRow {
        channel: Channel::Web,
        target_id: browser.id,
        target_public_key: browser.p256dh.clone(),
        platform: None,
        relay_url: None,
        ..waiting(&device, 100)
    };
    for number in 0..3 {
        let browser = subscribed(&store, &ann, &number.to_string(), 100).await;
        store.enqueue(&[for_browser(&browser)]).await.unwrap();
    }
    subscribed(&store, &ben, "of ben", 100).await;
    assert_eq!(store.unsubscribe_all(&ann).await.unwrap(), 3);
    assert_eq!(store.unsubscribe_all(&ann).await.unwrap(), 0);
    assert_eq!(store.subscriptions_of(&ben).await.unwrap().len(), 1);
    assert_eq!(store.claim(100, 10, 10).await.unwrap(), []);
}

async fn a_browser_is_pruned_only_as_it_was_read(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let old = subscribed(&store, &ann, "endpoint", 100).await;
    let new = subscribed(&store, &ann, "endpoint", 101).await;
    let prune = async |read: &Subscription, key: &str| {
        store
            .prune_subscription(read.id, read.created_at, key)
            .await
            .unwrap()
    };
    assert!(!prune(&old, &old.p256dh).await);
    assert!(!prune(&new, "another key").await);
    assert!(prune(&new, &new.p256dh).await);
    assert_eq!(store.subscriptions_of(&ann).await.unwrap(), []);
}

async fn use_of_a_browser_is_noted(Place { store, .. }: Place) {
    let ann = User::new("ann");
    let browser = subscribed(&store, &ann, "endpoint", 100).await;
    let used = Used {
        browsers: &[(browser.id, 100)],
        at: 300,
        ..Used::default()
    };
    store.settle_used(&[], &[], &used).await.unwrap();
    let read = store.subscriptions_of(&ann).await.unwrap();
    assert_eq!(read[0].last_used_at, Some(300));
}
