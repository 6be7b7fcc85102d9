use std::collections::HashSet;

use proptest::prelude::*;
use sovereign_relay_protocol::platform::{Environment, Priority};

use super::*;
use crate::entropy::SystemEntropy;

fn keys() -> DerivedKeys {
    let secrets = Secrets::new(Redacted::new("an enrollment secret of 32 bytes."), Vec::new()).unwrap();
    DerivedKeys::new(Some(&secrets), &SystemEntropy)
}

fn keys_of(current: &str, previous: &[&str]) -> DerivedKeys {
    let previous = previous.iter().copied().map(Redacted::new).collect();
    let secrets = Secrets::new(Redacted::new(current), previous).unwrap();
    DerivedKeys::new(Some(&secrets), &SystemEntropy)
}

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn message() -> PushMessage {
    PushMessage {
        platform: Platform::Ios,
        device_token: Redacted::new("abcdef"),
        encrypted_payload: Redacted::new("sealed"),
        priority: Priority::High,
        ttl_seconds: 60,
        collapse_id: None,
        environment: None,
        idempotency_key: IdempotencyKey::parse("once"),
    }
}

fn identity(message: &PushMessage) -> u128 {
    keys()
        .idempotency(instance(1), &IdempotencyKey::parse("once").unwrap(), message)
        .current()
        .message
}

/// Computed with another program. A relay that hashes otherwise after an upgrade, or beside others, would not find
/// what was written before.
#[test]
fn hashes_are_what_they_always_were() {
    let keys = keys();
    let collapse = CollapseId::parse("mail").unwrap();
    assert_eq!(
        keys.collapse_tag(instance(7), &collapse).as_str(),
        "42UyG_y9O6SlWTQHBOiUtV"
    );
    let token = keys.token_hash(Platform::Ios, &Redacted::new("ABCDEF"));
    assert_eq!(token, TokenHash(0xb5af_c756_14a0_924d_071f_5ed9_6e8b_7dfd));
    assert_eq!(
        keys.address_hash("192.0.2.1".parse().unwrap()).host,
        0xec1b_e603_403d_9a1e
    );
}

#[test]
fn another_secret_gives_other_hashes_and_none_gives_those_of_this_process() {
    let other = Secrets::new(Redacted::new("another enrollment secret, 32 b."), Vec::new()).unwrap();
    let token = Redacted::new("abcdef");
    let of = |secrets: Option<&Secrets>| {
        DerivedKeys::new(secrets, &SystemEntropy).token_hash(Platform::Ios, &token)
    };
    assert_ne!(of(Some(&other)), keys().token_hash(Platform::Ios, &token));
    assert_ne!(of(None), of(None));
}

#[test]
fn a_token_is_one_token_however_apples_hexadecimal_is_spelled() {
    let hash = |platform, token: &str| keys().token_hash(platform, &Redacted::new(token));
    assert_eq!(hash(Platform::Ios, "aBcD"), hash(Platform::Ios, "AbCd"));
    assert_ne!(
        hash(Platform::Ios, "abcd"),
        hash(Platform::Macos, "abcd"),
        "another app"
    );
    assert_ne!(
        hash(Platform::Android, "aBcD"),
        hash(Platform::Android, "abcd"),
        "case counts at FCM"
    );
}

#[test]
fn no_two_purposes_and_no_two_instances_share_a_hash() {
    let keys = keys();
    let collapse = CollapseId::parse("mail").unwrap();
    assert_ne!(
        keys.collapse_tag(instance(1), &collapse),
        keys.collapse_tag(instance(2), &collapse)
    );
    let once = IdempotencyKey::parse("once").unwrap();
    let of = |number| keys.idempotency(instance(number), &once, &message());
    assert_ne!(of(1).current().key, of(2).current().key);
    assert_eq!(of(1).current().message, of(2).current().message);
    let parts: &[&[u8]] = &[b"same"];
    let all = [
        &keys.token,
        &keys.collapse,
        &keys.address,
        &keys.turn,
        &keys.shared.idempotency,
        &keys.shared.rendezvous,
    ];
    assert_eq!(
        all.map(|key| key.hash(parts))
            .into_iter()
            .collect::<HashSet<_>>()
            .len(),
        all.len()
    );
}

#[test]
fn parts_can_not_be_shifted_into_each_other() {
    let key = Key::new(b"secret", "label");
    let hashes: HashSet<[u8; 32]> = [
        &[b"ab".as_slice(), b"c"][..],
        &[b"a", b"bc"],
        &[b"abc"],
        &[b"abc", b""],
        &[b"", b"abc"],
    ]
    .into_iter()
    .map(|parts| key.hash(parts))
    .collect();
    assert_eq!(hashes.len(), 5);
}

#[test]
fn every_field_of_a_message_is_part_of_its_identity_but_its_key() {
    let same = PushMessage {
        idempotency_key: None,
        ..message()
    };
    assert_eq!(identity(&same), identity(&message()));
    let all = [
        message(),
        PushMessage {
            platform: Platform::Macos,
            ..message()
        },
        PushMessage {
            device_token: Redacted::new("abcdee"),
            ..message()
        },
        PushMessage {
            encrypted_payload: Redacted::new("sealee"),
            ..message()
        },
        PushMessage {
            priority: Priority::Normal,
            ..message()
        },
        PushMessage {
            ttl_seconds: 61,
            ..message()
        },
        PushMessage {
            collapse_id: CollapseId::parse("production"),
            ..message()
        },
        PushMessage {
            environment: Some(Environment::Production),
            ..message()
        },
        PushMessage {
            environment: Some(Environment::Sandbox),
            ..message()
        },
    ];
    assert_eq!(all.iter().map(identity).collect::<HashSet<_>>().len(), all.len());
}

#[test]
fn a_push_has_one_name_for_each_secret_whichever_is_the_current_one() {
    const OLD: &str = "an enrollment secret of 32 bytes.";
    const NEW: &str = "another enrollment secret, 32 b.";
    let identity = |current, previous: &[&str]| {
        let once = IdempotencyKey::parse("once").unwrap();
        keys_of(current, previous).idempotency(instance(1), &once, &message())
    };
    let (old, new) = (identity(OLD, &[]), identity(NEW, &[]));
    assert_ne!(old.current().key, new.current().key);
    assert_ne!(old.current().message, new.current().message);
    for (before, after) in [(identity(OLD, &[NEW]), identity(NEW, &[OLD])), (old, new)] {
        assert_eq!(before.current(), identity(OLD, &[]).current());
        assert_eq!(after.current(), identity(NEW, &[]).current());
    }
    let names = |identity: &Idempotency| identity.names().collect::<Vec<_>>();
    let both = names(&identity(OLD, &[NEW]));
    assert_eq!(both.len(), 2);
    assert_eq!(both, names(&identity(NEW, &[OLD])));
    assert_eq!(both, names(&identity(OLD, &[NEW, OLD, NEW])), "each once");
}

#[test]
fn addresses_are_told_apart_as_limits_need_it() {
    let keys = keys();
    let hash = |address: &str| keys.address_hash(address.parse().unwrap());
    assert_eq!(hash("192.0.2.1"), hash("::ffff:192.0.2.1"), "mapped");
    assert_eq!(hash("192.0.2.1").site, None);
    assert_ne!(hash("192.0.2.1"), hash("192.0.2.2"));
    let one = hash("2001:db8:1:1::1");
    assert_eq!(one, hash("2001:db8:1:1:ffff:ffff:ffff:ffff"), "one /64");
    let neighbour = hash("2001:db8:1:2::1");
    assert_ne!(one.host, neighbour.host);
    assert_eq!(one.site, neighbour.site, "one /48");
    assert_ne!(one.site, hash("2001:db8:2:1::1").site);
    let zero = hash("2001:db8::");
    assert_ne!(Some(zero.host), zero.site, "a /64 is not its /48");
}

#[test]
fn invites_are_hashed_alike_under_every_secret() {
    let hash = invite_hash(&Redacted::new("invite"));
    assert_eq!(hash, invite_hash(&Redacted::new("invite")));
    assert_ne!(hash, invite_hash(&Redacted::new("invitf")));
}

proptest! {
    #[test]
    fn different_parts_give_different_hashes(
        a in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..4),
        b in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..4),
    ) {
        let key = Key::new(b"secret", "label");
        let hash = |parts: &[Vec<u8>]| key.hash(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        prop_assert_eq!(hash(&a) == hash(&b), a == b);
    }
}

/// Computed with another program, like those above.
#[test]
fn names_of_sessions_slots_and_connections_are_what_they_always_were() {
    let keys = keys();
    let session = SessionId::from_bytes([9; 16]);
    assert_eq!(
        keys.session_id(&Redacted::new("a".repeat(43))).to_string(),
        "guyEFs3ykDFGTfYqtuVgng"
    );
    assert_eq!(keys.turn_user(session, Slot::A), "kVT9J1Nv7xCA8Uq6B4pnGA");
    assert_eq!(
        keys.connection_hash(session, ConnectionId::from_bytes([5; 16])),
        ConnectionHash(0x0e82_f95a_62e4_31e4_dc94_0d62_f94c_7d15)
    );
}

#[test]
fn each_rendezvous_slot_and_connection_has_a_name_of_its_own() {
    let keys = keys();
    let names = ["a", "b"].map(|name| keys.session_id(&Redacted::new(name.repeat(43))));
    assert_ne!(names[0], names[1]);
    let users: HashSet<String> = names
        .iter()
        .flat_map(|session| Slot::BOTH.map(|slot| keys.turn_user(*session, slot)))
        .collect();
    assert_eq!(users.len(), 4);
    let connections: HashSet<ConnectionHash> = names
        .iter()
        .flat_map(|session| {
            [1, 2].map(|byte| keys.connection_hash(*session, ConnectionId::from_bytes([byte; 16])))
        })
        .collect();
    assert_eq!(connections.len(), 4);
}

#[test]
fn a_client_that_resumes_is_known_under_another_enrollment_secret() {
    let other = Secrets::new(Redacted::new("another enrollment secret, 32 b."), Vec::new()).unwrap();
    let other = DerivedKeys::new(Some(&other), &SystemEntropy);
    let (session, connection) = (SessionId::from_bytes([9; 16]), ConnectionId::from_bytes([5; 16]));
    assert_eq!(
        other.connection_hash(session, connection),
        keys().connection_hash(session, connection)
    );
    assert_ne!(
        other.turn_user(session, Slot::A),
        keys().turn_user(session, Slot::A)
    );
    let name = Redacted::new("a".repeat(43));
    assert_ne!(other.session_id(&name), keys().session_id(&name));
}
