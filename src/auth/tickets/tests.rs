use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;
use crate::{auth::keys::KeyRing, entropy::SystemEntropy};

const SECRET: &str = "an enrollment secret of 32 bytes.";
const OTHER: &str = "another enrollment secret, 32 b.";
/// Made with another program, under the same secret.
const TICKET: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJzaWQiOiJDUWtKQ1FrSkNRa0pDUWtKQ1FrSkNRIiwiaW5jIjoxODQ0Njc0NDA3MzcwOTU1MTYxNSwic2xvdCI6ImIiLCJleHAiOjE4MDAwMDAxMjAsImlucyI6IjA3MDcwNzA3LTA3MDctMDcwNy0wNzA3LTA3MDcwNzA3MDcwNyJ9.PcOe3nfJehouB2g_5KyrRKqVmcDGKVSLnuEQdUe28bg";

fn secrets(current: &str, previous: &[&str]) -> Secrets {
    let previous = previous.iter().map(|secret| Redacted::new(*secret)).collect();
    Secrets::new(Redacted::new(current), previous).unwrap()
}

fn tickets(current: &str, previous: &[&str]) -> Tickets {
    Tickets::new(Some(&secrets(current, previous)), &SystemEntropy)
}

fn claims() -> TicketClaims {
    TicketClaims {
        session: SessionId::from_bytes([9; 16]),
        incarnation: Incarnation(u64::MAX),
        slot: Slot::B,
        expires_at: UnixMillis(1_800_000_120_000),
        instance: InstanceId::from_bytes([7; 16]),
        may_turn: false,
    }
}

fn before_the_end() -> UnixMillis {
    UnixMillis(1_800_000_000_000)
}

fn verify(ticket: &str) -> Result<TicketClaims, TicketError> {
    tickets(SECRET, &[]).verify(ticket, before_the_end())
}

/// A replica of another version must understand the tickets of this one.
#[test]
fn a_ticket_is_what_it_always_was() {
    assert_eq!(tickets(SECRET, &[]).sign(&claims()).unwrap().expose(), TICKET);
    assert_eq!(verify(TICKET), Ok(claims()));
}

#[test]
fn a_ticket_that_says_nothing_of_turn_gives_none() {
    assert!(!verify(TICKET).unwrap().may_turn);
    let with_turn = TicketClaims {
        may_turn: true,
        ..claims()
    };
    let ticket = tickets(SECRET, &[]).sign(&with_turn).unwrap();
    assert_eq!(verify(ticket.expose()), Ok(with_turn));
}

#[test]
fn a_ticket_is_good_until_a_minute_after_the_end_of_its_session() {
    let tickets = tickets(SECRET, &[]);
    let ticket = tickets.sign(&claims()).unwrap();
    let end = claims().expires_at;
    for (after, outcome) in [
        (0, Ok(claims())),
        (60_000, Ok(claims())),
        (60_001, Err(TicketError::Expired)),
    ] {
        assert_eq!(tickets.verify(ticket.expose(), end.plus_millis(after)), outcome);
    }
    let far = UnixMillis(u64::MAX);
    assert_eq!(tickets.verify(ticket.expose(), far), Err(TicketError::Expired));
}

#[test]
fn a_fraction_of_a_second_is_rounded_up_so_that_no_ticket_ends_before_its_session() {
    let tickets = tickets(SECRET, &[]);
    let ticket = tickets
        .sign(&TicketClaims {
            expires_at: UnixMillis(1_800_000_119_001),
            ..claims()
        })
        .unwrap();
    assert_eq!(tickets.verify(ticket.expose(), before_the_end()), Ok(claims()));
}

#[test]
fn tickets_of_both_secrets_of_a_rotation_open_and_those_of_a_stranger_do_not() {
    let (old, new) = (tickets(SECRET, &[OTHER]), tickets(OTHER, &[SECRET]));
    for (signer, verifier) in [(&old, &new), (&new, &old)] {
        let ticket = signer.sign(&claims()).unwrap();
        assert_eq!(verifier.verify(ticket.expose(), before_the_end()), Ok(claims()));
    }
    let strange = tickets(OTHER, &[]).sign(&claims()).unwrap();
    assert_eq!(verify(strange.expose()), Err(TicketError::Invalid));
    assert_ne!(
        old.sign(&claims()).unwrap(),
        new.sign(&claims()).unwrap(),
        "only the current secret signs"
    );
}

#[test]
fn without_a_secret_each_process_has_a_key_of_its_own() {
    let of_process = || Tickets::new(None, &SystemEntropy);
    let (one, other) = (of_process(), of_process());
    let ticket = one.sign(&claims()).unwrap();
    assert_eq!(one.verify(ticket.expose(), before_the_end()), Ok(claims()));
    assert_eq!(
        other.verify(ticket.expose(), before_the_end()),
        Err(TicketError::Invalid)
    );
}

#[test]
fn an_instance_key_is_no_ticket_and_a_ticket_no_instance_key() {
    let ring = KeyRing::new(&secrets(SECRET, &[]));
    let key = ring.sign(claims().instance, 0, 1_800_000_000).unwrap();
    assert_eq!(verify(key.expose()), Err(TicketError::Invalid));
    assert_eq!(ring.verify(&Redacted::new(TICKET)), None);
}

#[test]
fn other_algorithms_and_other_claims_under_the_right_key_open_nothing() {
    let key = jsonwebtoken::EncodingKey::from_secret(key_of(SECRET.as_bytes()).as_slice()).unwrap();
    let wire = serde_json::to_value(Wire::from(&claims())).unwrap();
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        let ticket = jsonwebtoken::encode(&Header::new(algorithm), &wire, &key).unwrap();
        assert_eq!(verify(&ticket), Err(TicketError::Invalid));
    }
    for (claim, value) in [
        ("sid", serde_json::json!("short")),
        ("inc", serde_json::json!(-1)),
        ("slot", serde_json::json!("c")),
        ("exp", serde_json::json!("1800000120")),
        ("ins", serde_json::json!(null)),
        ("trn", serde_json::json!("yes")),
    ] {
        let mut wrong = wire.clone();
        wrong[claim] = value;
        let ticket = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &wrong, &key).unwrap();
        assert_eq!(verify(&ticket), Err(TicketError::Invalid), "{claim}");
    }
    let (_, rest) = TICKET.split_once('.').unwrap();
    let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
    let (body, _) = rest.rsplit_once('.').unwrap();
    for ticket in [format!("{unsigned}.{rest}"), format!("{unsigned}.{body}.")] {
        assert_eq!(verify(&ticket), Err(TicketError::Invalid));
    }
}

#[test]
fn what_is_too_long_is_not_looked_at_and_the_longest_real_ticket_fits_twice() {
    let longest = tickets(SECRET, &[])
        .sign(&TicketClaims {
            expires_at: UnixMillis(u64::MAX),
            may_turn: true,
            ..claims()
        })
        .unwrap();
    assert!(longest.len() * 3 / 2 < TICKET_BYTES, "{}", longest.len());
    let padded = format!("{TICKET}{}", "=".repeat(TICKET_BYTES));
    assert_eq!(verify(&padded), Err(TicketError::Invalid));
}

fn any_claims() -> impl Strategy<Value = TicketClaims> {
    let slot = prop_oneof![Just(Slot::A), Just(Slot::B)];
    (
        any::<[u8; 16]>(),
        any::<u64>(),
        slot,
        0..u64::MAX / 2000,
        any::<[u8; 16]>(),
        any::<bool>(),
    )
        .prop_map(
            |(session, incarnation, slot, seconds, instance, may_turn)| TicketClaims {
                session: SessionId::from_bytes(session),
                incarnation: Incarnation(incarnation),
                slot,
                expires_at: UnixMillis(seconds * 1000),
                instance: InstanceId::from_bytes(instance),
                may_turn,
            },
        )
}

proptest! {
    #[test]
    fn every_ticket_says_what_was_signed(claims in any_claims()) {
        let tickets = tickets(SECRET, &[]);
        let ticket = tickets.sign(&claims).unwrap();
        prop_assert_eq!(tickets.verify(ticket.expose(), claims.expires_at), Ok(claims));
    }

    #[test]
    fn a_ticket_with_any_other_character_is_refused(place in 0..TICKET.len(), other in any::<char>()) {
        let mut characters: Vec<char> = TICKET.chars().collect();
        prop_assume!(characters[place] != other);
        characters[place] = other;
        let changed: String = characters.into_iter().collect();
        prop_assert_eq!(verify(&changed), Err(TicketError::Invalid));
    }

    #[test]
    fn a_ticket_that_is_cut_or_longer_is_refused(place in 0..TICKET.len(), more in "[A-Za-z0-9_.=-]{1,20}") {
        prop_assert_eq!(verify(&TICKET[..place]), Err(TicketError::Invalid));
        let inserted = format!("{}{more}{}", &TICKET[..place], &TICKET[place..]);
        prop_assert_eq!(verify(&inserted), Err(TicketError::Invalid));
        prop_assert_eq!(verify(&format!("{TICKET}{more}")), Err(TicketError::Invalid));
    }

    #[test]
    fn any_text_at_all_is_refused_in_peace(text in ".{0,600}") {
        prop_assert_eq!(verify(&text), Err(TicketError::Invalid));
    }
}
