//! Keys at relays, and settings.

use sovereign_relay_protocol::redacted::Redacted;

use crate::store::{
    RelayRow, RelayState,
    testing::{Place, RELAY},
};

pub(super) mod contract {
    contract!(
        a_relay_is_read_as_it_was_written,
        each_relay_has_its_own_key,
        of_two_that_enroll_at_once_the_second_learns_of_the_first,
        a_setting_holds_until_it_is_set_again_or_removed,
        of_two_that_make_a_key_at_once_both_get_one,
    );
}

fn enrolled(url: &str, key: &str) -> RelayRow {
    RelayRow {
        relay_url: url.to_owned(),
        instance_id: Some("0198c0de-0000-4000-8000-000000000000".to_owned()),
        instance_key: Some(Redacted::new(key)),
        previous_key: None,
        state: RelayState::Enrolled,
        enrolled_at: Some(100),
        attempts: 0,
        next_attempt_at: 0,
        note: String::new(),
    }
}

async fn a_relay_is_read_as_it_was_written(Place { store, .. }: Place) {
    assert_eq!(store.relay(RELAY).await.unwrap(), None);
    let waiting = RelayRow {
        instance_id: None,
        instance_key: None,
        state: RelayState::Unenrolled,
        enrolled_at: None,
        attempts: 3,
        next_attempt_at: 700,
        note: "an invite is needed".to_owned(),
        ..enrolled(RELAY, "")
    };
    let revoked = RelayRow {
        state: RelayState::Revoked,
        ..enrolled(RELAY, "key")
    };
    for row in [waiting, enrolled(RELAY, "key"), revoked] {
        store.put_relay(&row).await.unwrap();
        assert_eq!(store.relay(RELAY).await.unwrap(), Some(row));
    }
}

async fn each_relay_has_its_own_key(Place { store, .. }: Place) {
    let rows = [
        enrolled("https://a.example", "one"),
        enrolled("https://b.example", "two"),
    ];
    for row in &rows {
        store.put_relay(row).await.unwrap();
    }
    assert_eq!(store.relays().await.unwrap(), rows);
    assert_eq!(
        store.relay("https://b.example").await.unwrap().as_ref(),
        Some(&rows[1])
    );
}

async fn of_two_that_enroll_at_once_the_second_learns_of_the_first(Place { store, .. }: Place) {
    let (first, second) = (enrolled(RELAY, "first"), enrolled(RELAY, "second"));
    assert!(store.replace_relay(&first, None).await.unwrap());
    assert!(!store.replace_relay(&second, None).await.unwrap());
    assert_eq!(store.relay(RELAY).await.unwrap(), Some(first.clone()));
    assert!(store.replace_relay(&second, Some(&first)).await.unwrap());
    assert_eq!(store.relay(RELAY).await.unwrap(), Some(second));
}

async fn a_setting_holds_until_it_is_set_again_or_removed(Place { store, .. }: Place) {
    assert_eq!(store.setting("relay").await.unwrap(), None);
    for value in ["off", "https://relay.example"] {
        store.put_setting("relay", &Redacted::new(value)).await.unwrap();
        assert_eq!(store.setting("relay").await.unwrap(), Some(Redacted::new(value)));
    }
    assert!(store.remove_setting("relay").await.unwrap());
    assert!(!store.remove_setting("relay").await.unwrap());
}

async fn of_two_that_make_a_key_at_once_both_get_one(Place { store, .. }: Place) {
    let made = ["a", "b", "c", "d"].map(Redacted::new);
    let kept = futures_util::future::join_all(made.iter().map(|key| store.setting_or("vapid", key))).await;
    let kept: Vec<_> = kept.into_iter().map(Result::unwrap).collect();
    assert!(made.contains(&kept[0]));
    assert!(kept.iter().all(|key| *key == kept[0]));
}
