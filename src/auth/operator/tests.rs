use serde_json::json;

use super::*;
use crate::auth::{
    KeyError,
    authority::tests::kit::{HOUR, Kit, SECRET, at},
};

fn now() -> Now {
    at(Duration::ZERO)
}

fn export(entries: &serde_json::Value) -> Vec<u8> {
    json!({"format": EXPORT_FORMAT, "version": 1, "entries": entries})
        .to_string()
        .into_bytes()
}

#[tokio::test]
async fn a_revoked_instance_is_refused_at_once_and_still_shown() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    kit.authority.revoke(instance, now()).await.unwrap();
    assert_eq!(kit.verify(&key), Err(KeyError::Revoked));
    let shown = kit.authority.show(instance).await.unwrap().unwrap();
    assert_eq!(
        (shown.ended, shown.enrolled_at),
        (Some(Cause::Revoked), Some(now().unix))
    );
}

#[tokio::test]
async fn an_instance_nobody_knows_can_be_revoked_beforehand() {
    let kit = Kit::new().await;
    let unknown = InstanceId::from_bytes([9; 16]);
    assert!(kit.authority.show(unknown).await.unwrap().is_none());
    kit.authority.revoke(unknown, now()).await.unwrap();
    assert_eq!(
        kit.authority.show(unknown).await.unwrap().unwrap().ended,
        Some(Cause::Revoked)
    );
}

#[tokio::test]
async fn suspensions_limits_and_turn_are_set_shown_and_taken_back() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    let suspension = Suspension {
        until: Some(at(HOUR).unix),
        reason: "looping".to_owned(),
    };
    kit.authority.suspend(instance, suspension).await.unwrap();
    kit.authority.set_limit(instance, Some(60)).await.unwrap();
    kit.authority.set_turn(instance, Some(false)).await.unwrap();
    assert!(kit.verify(&key).is_ok(), "a suspension is no revocation");
    let shown = kit.authority.show(instance).await.unwrap().unwrap();
    assert_eq!(shown.turn, Some(false));
    assert_eq!(
        (shown.per_minute, shown.suspension.unwrap().reason.as_str()),
        (Some(60), "looping")
    );
    kit.authority.resume(instance).await.unwrap();
    kit.authority.set_limit(instance, None).await.unwrap();
    kit.authority.set_turn(instance, None).await.unwrap();
    let listed = kit.authority.list(None, 10).await.unwrap();
    assert!(listed.len() == 1 && listed[0].suspension.is_none() && listed[0].per_minute.is_none());
    assert_eq!(listed[0].turn, None);
}

#[tokio::test]
async fn a_view_is_camel_case_json_and_survives_it() {
    let kit = Kit::new().await;
    let (instance, _) = kit.enroll().await;
    let shown = kit.authority.show(instance).await.unwrap().unwrap();
    let json = serde_json::to_value(&shown).unwrap();
    assert_eq!(json["instanceId"], instance.to_string());
    assert_eq!(json["enrolledAt"], now().unix.to_rfc3339());
    assert!(serde_json::from_value::<InstanceView>(json).unwrap() == shown);
}

#[tokio::test]
async fn an_invite_is_shown_once_and_listed_by_an_id_that_does_not_tell_it() {
    let kit = Kit::new().await;
    let (invite, view) = kit.authority.create_invite(HOUR, now()).await.unwrap();
    assert_eq!((invite.len(), view.id.len()), (43, 12));
    assert_eq!((view.created_at, view.expires_at), (now().unix, at(HOUR).unix));
    assert_eq!(kit.authority.list_invites(now()).await.unwrap(), [view]);
    assert_eq!(kit.authority.list_invites(at(HOUR)).await.unwrap(), []);
}

#[tokio::test]
async fn an_export_revokes_at_another_relay_and_can_be_imported_twice() {
    let (from, to) = (Kit::new().await, Kit::new().await);
    let (instance, key) = from.enroll().await;
    from.authority.revoke(instance, now()).await.unwrap();
    assert!(to.verify(&key).is_ok(), "the same secret, another list");
    let exported = from.authority.export_revocations();
    for ended in [vec![instance], vec![]] {
        let imported = to.authority.import_revocations(&exported).await.unwrap();
        assert_eq!(imported, Imported { entries: 1, ended });
        assert_eq!(to.verify(&key), Err(KeyError::Revoked));
    }
    assert_eq!(to.authority.export_revocations(), exported);
    let to = to.restart(&[SECRET]).await;
    assert_eq!(to.verify(&key), Err(KeyError::Revoked), "imported for good");
}

#[tokio::test]
async fn an_import_allows_nothing_that_is_refused_here() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    kit.authority.revoke(instance, now()).await.unwrap();
    let lenient = json!([{"instanceId": instance, "kids": [],
        "rotated": {"newest": 1, "issuedAt": 1, "used": true, "grace": [{"generation": 0, "until": "9999-01-01T00:00:00Z"}]}}]);
    kit.authority.import_revocations(&export(&lenient)).await.unwrap();
    assert_eq!(kit.verify(&key), Err(KeyError::Revoked));
}

#[tokio::test]
async fn what_is_no_export_is_refused_and_changes_nothing() {
    let kit = Kit::new().await;
    let (instance, key) = kit.enroll().await;
    let gone = json!({"at": "2027-01-01T00:00:00Z", "cause": "revoked"});
    let senseless = json!([{"instanceId": instance, "kids": [], "gone": gone},
        {"instanceId": instance, "kids": [], "rotated": {"newest": 1, "issuedAt": 1, "used": true,
            "grace": [{"generation": 5, "until": "2027-01-01T00:00:00Z"}]}}]);
    let newer = json!({"format": EXPORT_FORMAT, "version": 2, "entries": []})
        .to_string()
        .into_bytes();
    let other = json!({"format": "something", "version": 1, "entries": []})
        .to_string()
        .into_bytes();
    let bad_id = export(&json!([{"instanceId": "x", "kids": [], "gone": gone}]));
    for json in [
        b"".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        newer,
        other,
        bad_id,
        export(&senseless),
    ] {
        let refused = kit.authority.import_revocations(&json).await;
        assert!(
            matches!(refused, Err(ImportError::Malformed(_))),
            "{}",
            String::from_utf8_lossy(&json)
        );
    }
    assert!(kit.verify(&key).is_ok());
}
