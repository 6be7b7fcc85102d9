use std::{collections::BTreeSet, time::Duration};

use futures_util::{FutureExt as _, future::join_all};
use tokio::sync::oneshot;

use super::*;
use crate::entropy::SystemEntropy;

mod fragile;
pub(crate) mod kit;

use kit::{HOUR, Kit, SECRET, at, enrollment};

fn now() -> Now {
    at(Duration::ZERO)
}

#[tokio::test]
async fn an_instance_enrolls_and_its_key_is_valid() {
    let kit = Kit::new().await;
    let request = EnrollRequest {
        name: Some(Redacted::new("Home")),
        contact: Some(Redacted::new("a@b.example")),
    };
    let asked = Enrollment {
        request,
        ..enrollment(None)
    };
    let answer = kit.authority.enroll(asked, now()).await.unwrap();
    let caller = kit.verify(&Redacted::new(answer.instance_key)).unwrap();
    assert_eq!(
        caller,
        Caller {
            instance: answer.instance_id,
            generation: Some(0)
        }
    );
    let record = kit.store.record(answer.instance_id).await.unwrap().unwrap();
    assert_eq!(
        (record.name.unwrap().expose(), record.contact.unwrap().expose()),
        ("Home", "a@b.example")
    );
    let (second, _) = kit.enroll().await;
    assert_ne!(second, answer.instance_id);
    assert_eq!(
        kit.store.record(second).await.unwrap().unwrap().group,
        record.group,
        "one address"
    );
}

#[tokio::test]
async fn a_closed_relay_and_one_without_a_secret_enroll_nobody() {
    let closed = Kit::with(EnrollmentMode::Closed, &[SECRET]).await;
    let refused = closed.authority.enroll(enrollment(None), now()).await;
    assert!(matches!(refused, Err(EnrollError::Closed)));
    let unconfigured = Kit::with(EnrollmentMode::Open, &[]).await;
    assert!(!unconfigured.authority.is_configured());
    let refused = unconfigured.authority.enroll(enrollment(None), now()).await;
    assert!(matches!(refused, Err(EnrollError::NotConfigured)));
    let (_, key) = Kit::new().await.enroll().await;
    assert_eq!(unconfigured.verify(&key), Err(KeyError::NotConfigured));
    let refused = unconfigured.rotate(&key, None, now()).await;
    assert!(matches!(refused, Err(RotateError::Key(KeyError::NotConfigured))));
}

#[tokio::test]
async fn of_two_enrollments_with_one_invite_one_succeeds() {
    let kit = Kit::with(EnrollmentMode::Invite, &[SECRET]).await;
    let (invite, _) = kit.authority.create_invite(HOUR, now()).await.unwrap();
    let both = (0..2).map(|_| kit.authority.enroll(enrollment(Some(invite.clone())), now()));
    let outcomes = join_all(both).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Err(EnrollError::InviteRefused)))
            .count(),
        1
    );
    assert!(matches!(
        kit.authority.enroll(enrollment(None), now()).await,
        Err(EnrollError::InviteRefused)
    ));
    let (expired, _) = kit.authority.create_invite(HOUR, now()).await.unwrap();
    let refused = kit.authority.enroll(enrollment(Some(expired)), at(HOUR)).await;
    assert!(matches!(refused, Err(EnrollError::InviteRefused)));
}

#[tokio::test]
async fn a_rotation_gives_the_old_key_a_day() {
    let kit = Kit::new().await;
    let (instance, old) = kit.enroll().await;
    let answer = kit
        .authority
        .rotate(&old, RotateRequest::default(), now())
        .await
        .unwrap();
    assert_eq!(
        (answer.instance_id, answer.previous_valid_until),
        (instance, at(24 * HOUR).unix)
    );
    let new = Redacted::new(answer.instance_key);
    assert_eq!(kit.verify(&old).unwrap().generation, Some(0));
    assert_eq!(kit.verify(&new).unwrap().generation, Some(1));
    assert_eq!(kit.authority.verify(&old, at(24 * HOUR)), Err(KeyError::Revoked));
    assert!(kit.authority.verify(&new, at(24_000 * HOUR)).is_ok());
}

#[tokio::test]
async fn a_lost_answer_can_be_asked_for_again_until_the_new_key_is_used() {
    let kit = Kit::new().await;
    let (_, old) = kit.enroll().await;
    let new = kit.rotate(&old, Some(0), now()).await.unwrap();
    assert_eq!(kit.verify(&old), Err(KeyError::Revoked), "at once");
    assert!(kit.authority.verify_for_rotation(&old, at(HOUR)).is_ok());
    assert_eq!(
        kit.rotate(&old, None, at(HOUR)).await.unwrap(),
        new,
        "the same key"
    );
    kit.verify(&new).unwrap();
    assert_eq!(
        kit.authority.verify_for_rotation(&old, now()),
        Err(KeyError::Revoked)
    );
    let refused = kit.rotate(&old, None, now()).await;
    assert!(matches!(refused, Err(RotateError::Key(KeyError::Revoked))));
}

#[tokio::test]
async fn a_key_in_its_grace_can_not_rotate_beside_a_newer_one_in_use() {
    let kit = Kit::new().await;
    let (_, old) = kit.enroll().await;
    let new = kit.rotate(&old, None, now()).await.unwrap();
    kit.verify(&new).unwrap();
    let refused = kit.rotate(&old, None, now()).await.unwrap_err();
    assert!(matches!(refused, RotateError::NotNewest));
    assert_eq!(
        refused.code(),
        sovereign_relay_protocol::error::ErrorCode::Unauthorized
    );
    assert!(kit.verify(&old).is_ok(), "it goes on working");
}

#[tokio::test]
async fn many_rotations_at_once_give_one_key() {
    let kit = Kit::new().await;
    let (_, old) = kit.enroll().await;
    let rotations = (0..32).map(|_| kit.rotate(&old, Some(60), now()));
    let keys: BTreeSet<String> = join_all(rotations)
        .await
        .into_iter()
        .map(|key| key.unwrap().expose().into())
        .collect();
    assert_eq!(keys.len(), 1);
    let key = Redacted::new(keys.into_iter().next().unwrap());
    assert_eq!(kit.verify(&key).unwrap().generation, Some(1));
}

#[tokio::test]
async fn another_replicas_rotation_is_taken_in_and_not_overwritten() {
    let kit = Kit::new().await;
    let (instance, old) = kit.enroll().await;
    let theirs = Entry {
        kids: kit.authority.kids().to_vec(),
        state: State::Rotated(crate::store::revocation::Rotated {
            newest: 1,
            issued_at: 1_700_000_000,
            used: false,
            grace: vec![],
        }),
    };
    kit.store
        .join_revocations(vec![(instance, theirs)], false)
        .await
        .unwrap();
    let key = kit.rotate(&old, None, now()).await.unwrap();
    let same = kit
        .authority
        .keys
        .as_ref()
        .unwrap()
        .sign(instance, 1, 1_700_000_000)
        .unwrap();
    assert_eq!(key, same);
    assert_eq!(
        kit.verify(&old),
        Err(KeyError::Revoked),
        "as the other replica has it"
    );
}

#[tokio::test]
async fn a_withdrawn_instance_is_gone_but_for_the_revocation() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    let new = kit.rotate(&key, None, now()).await.unwrap();
    kit.authority
        .withdraw(kit.verify(&key).unwrap(), now())
        .await
        .unwrap();
    for key in [&key, &new] {
        assert_eq!(kit.verify(key), Err(KeyError::Revoked));
        assert!(matches!(
            kit.rotate(key, None, now()).await,
            Err(RotateError::Key(KeyError::Revoked))
        ));
    }
    assert_eq!(kit.store.record(instance).await.unwrap(), None);
    let kit = kit.restart(&[SECRET]).await;
    assert_eq!(kit.verify(&new), Err(KeyError::Revoked));
}

#[tokio::test]
async fn keys_outlive_a_change_of_the_secret_and_so_do_revocations() {
    let kit = Kit::new().await;
    let ((_, kept), (lost, revoked)) = (kit.enroll().await, kit.enroll().await);
    kit.authority.revoke(lost, now()).await.unwrap();
    let next = "the secret that came after it, longer";
    let kit = kit.restart(&[next, SECRET]).await;
    assert!(kit.verify(&kept).is_ok());
    assert_eq!(kit.verify(&revoked), Err(KeyError::Revoked));
    let new = kit.rotate(&kept, Some(0), now()).await.unwrap();
    let kit = kit.restart(&[next]).await;
    assert!(kit.verify(&new).is_ok());
    assert_eq!(
        kit.verify(&kept),
        Err(KeyError::Unauthorized),
        "its secret is retired"
    );
    assert_eq!(kit.verify(&revoked), Err(KeyError::Unauthorized));
}

#[tokio::test]
async fn upkeep_saves_the_first_use_of_a_new_key() {
    let kit = Kit::new().await;
    let (_, old) = kit.enroll().await;
    let new = kit.rotate(&old, None, now()).await.unwrap();
    kit.verify(&new).unwrap();
    kit.store.fail(true);
    kit.authority.maintain(now()).await;
    kit.store.fail(false);
    kit.authority.maintain(now()).await;
    let kit = kit.restart(&[SECRET]).await;
    assert!(
        matches!(kit.rotate(&old, None, now()).await, Err(RotateError::NotNewest)),
        "the use was kept"
    );
}

#[tokio::test]
async fn the_first_use_of_a_new_key_is_there_to_be_saved_at_once_and_only_once() {
    let kit = Kit::new().await;
    let (_, old) = kit.enroll().await;
    let new = kit.rotate(&old, None, now()).await.unwrap();
    kit.verify(&old).unwrap();
    assert_eq!(
        kit.authority.first_use().now_or_never(),
        None,
        "the old one was used"
    );
    kit.verify(&new).unwrap();
    kit.verify(&new).unwrap();
    assert_eq!(kit.authority.first_use().now_or_never(), Some(()));
    assert_eq!(kit.authority.first_use().now_or_never(), None);
    kit.authority.save_first_uses().await;
    let kit = kit.restart(&[SECRET]).await;
    assert!(matches!(
        kit.rotate(&old, None, now()).await,
        Err(RotateError::NotNewest)
    ));
}

#[tokio::test]
async fn upkeep_forgets_what_has_lapsed() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    kit.authority.maintain(at(7 * 24 * HOUR)).await;
    assert_eq!(kit.store.record(instance).await.unwrap(), None);
    assert!(kit.verify(&key).is_ok(), "keys don't expire");
}

#[tokio::test]
async fn nothing_is_said_to_be_done_that_the_store_could_not_do() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    kit.store.fail(true);
    assert!(matches!(
        kit.authority.enroll(enrollment(None), now()).await,
        Err(EnrollError::Store(_))
    ));
    assert!(matches!(
        kit.rotate(&key, Some(0), now()).await,
        Err(RotateError::Store(_))
    ));
    let caller = kit.verify(&key).unwrap();
    assert!(matches!(
        kit.authority.withdraw(caller, now()).await,
        Err(WithdrawError::Store(_))
    ));
    assert!(kit.authority.revoke(instance, now()).await.is_err());
    assert_eq!(kit.verify(&key), Ok(caller), "so it can be asked again");
    kit.store.fail(false);
    kit.authority.withdraw(caller, now()).await.unwrap();
    assert_eq!(kit.verify(&key), Err(KeyError::Revoked));
}

#[tokio::test]
async fn a_relay_that_can_not_load_its_revocations_does_not_open() {
    let kit = Kit::new().await;
    kit.store.fail(true);
    let parts = Parts {
        store: kit.store.clone(),
        secrets: None,
        mode: EnrollmentMode::Open,
        entropy: Arc::new(SystemEntropy),
    };
    assert!(Authority::open(parts).await.is_err());
}

#[tokio::test]
async fn memory_follows_the_store_though_the_caller_hangs_up() {
    let (open, gate) = oneshot::channel::<()>();
    let (done, finished) = oneshot::channel::<()>();
    let mut work = Box::pin(to_the_end(async move {
        gate.await.unwrap();
        done.send(()).unwrap();
        Ok(())
    }));
    assert!(futures_util::poll!(work.as_mut()).is_pending());
    drop(work);
    open.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(20), finished)
        .await
        .unwrap()
        .unwrap();
}
