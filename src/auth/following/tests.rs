use std::time::Duration;

use super::*;
use crate::{
    auth::authority::tests::kit::{HOUR, Kit, SECRET, at},
    store::{
        Store as _,
        revocation::{Cause, Gone, Kid},
    },
};

fn gone(kids: &[Kid]) -> Entry {
    Entry {
        kids: kids.to_vec(),
        state: State::Gone(Gone {
            at: at(Duration::ZERO).unix,
            cause: Cause::Revoked,
        }),
    }
}

/// As after a lost position; the instances that were ended by it.
async fn reconciled(kit: &Kit) -> Vec<InstanceId> {
    let learned = kit.authority.learn_all().await.unwrap();
    kit.authority.write_back(learned.lacking).await.unwrap();
    learned.ended
}

#[tokio::test]
async fn an_entry_that_another_replica_wrote_holds_once_it_is_learned_and_ends_the_instance_once() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    let entry = gone(kit.authority.kids());
    assert!(kit.verify(&key).is_ok());
    assert!(kit.authority.learn(instance, &entry));
    assert!(kit.verify(&key).is_err());
    assert!(!kit.authority.learn(instance, &entry), "it was gone before");
}

#[tokio::test]
async fn what_the_store_knows_is_taken_in_and_what_it_lacks_is_written_back() {
    let kit = Kit::new().await;
    let ((known_here, _), (known_there, key)) = (kit.enroll().await, kit.enroll().await);
    let entry = gone(kit.authority.kids());
    kit.authority.learn(known_here, &entry);
    kit.store
        .join_revocations(vec![(known_there, entry.clone())], false)
        .await
        .unwrap();
    assert_eq!(reconciled(&kit).await, [known_there]);
    assert!(kit.verify(&key).is_err());
    let mut stored: Vec<_> = kit.store.revocations().await.unwrap();
    stored.sort_by_key(|(instance, _)| *instance);
    let mut expected = vec![(known_here, entry.clone()), (known_there, entry)];
    expected.sort_by_key(|(instance, _)| *instance);
    assert_eq!(stored, expected);
    assert_eq!(reconciled(&kit).await, [], "nothing is new");
}

#[tokio::test]
async fn a_rotation_that_the_store_has_lost_is_written_back_and_the_old_key_stays_invalid() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    kit.rotate(&key, Some(0), at(HOUR)).await.unwrap();
    let entry = kit.authority.revocations.get(instance).unwrap();
    let (restored, _) = (
        Kit::with(crate::config::EnrollmentMode::Open, &[SECRET]).await,
        (),
    );
    restored.authority.learn(instance, &entry);
    reconciled(&restored).await;
    assert_eq!(restored.store.revocations().await.unwrap(), [(instance, entry)]);
    assert!(restored.authority.verify(&key, at(HOUR)).is_err());
}

#[tokio::test]
async fn an_entry_under_retired_secrets_alone_is_not_written_back() {
    let kit = Kit::new().await;
    let (instance, _) = kit.enroll().await;
    kit.authority.learn(instance, &gone(&[Kid([9; 6])]));
    reconciled(&kit).await;
    assert_eq!(kit.store.revocations().await.unwrap(), []);
    kit.authority.unlearn(instance, gone(&[Kid([8; 6])]));
    assert!(
        kit.authority.is_gone(instance),
        "another entry than the one that went"
    );
    kit.authority.unlearn(instance, gone(&[Kid([9; 6])]));
    assert!(!kit.authority.is_gone(instance));
}
