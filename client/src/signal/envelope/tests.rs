use proptest::prelude::*;
use serde_json::Value;

use super::*;

const SESSION: SessionId = SessionId::from_bytes([9; 16]);

fn secret() -> SessionSecret {
    SessionSecret::from_bytes([7; 32])
}

fn sealing(slot: Slot, r: u8) -> Sealing {
    Sealing::new(&secret(), SESSION, slot, [r; 16])
}

fn opening(peer: Slot) -> Opening {
    Opening::new(secret(), SESSION, peer)
}

fn note(number: usize) -> Message {
    Message::Other {
        kind: "note".to_owned(),
        negotiation: String::new(),
        value: Value::from(number),
    }
}

fn offer(negotiation: &str) -> Message {
    Message::Offer {
        negotiation: negotiation.to_owned(),
        sdp: "v=0".to_owned(),
    }
}

fn answer(negotiation: &str) -> Message {
    Message::Answer {
        negotiation: negotiation.to_owned(),
        sdp: "v=0".to_owned(),
    }
}

fn seal(sealing: &Sealing, message: &Message) -> Opaque {
    sealing
        .seal(message, &SessionLimits::default(), |sealed| sealed)
        .unwrap()
}

#[test]
fn an_answer_to_an_earlier_offer_is_reported_and_the_right_one_taken() {
    let (ours, theirs) = (sealing(Slot::A, 1), sealing(Slot::B, 2));
    let mut opening = opening(Slot::B);
    let early = seal(&theirs, &answer("n0"));
    assert_eq!(
        opening.open(&early, &ours).message,
        Err(Rejection::StaleAnswer),
        "never offered"
    );
    seal(&ours, &offer("n1"));
    seal(&ours, &offer("n2"));
    let stale = seal(&theirs, &answer("n1"));
    assert_eq!(opening.open(&stale, &ours).message, Err(Rejection::StaleAnswer));
    let right = seal(&theirs, &answer("n2"));
    assert_eq!(opening.open(&right, &ours).message, Ok(answer("n2")));
}

#[test]
fn what_the_peer_sealed_in_another_form_is_reported() {
    let mut sealer = Sealer::new(&secret(), SESSION, Slot::B, [2; 16]);
    let opened = opening(Slot::B).open(&sealer.seal("{}").unwrap(), &sealing(Slot::A, 1));
    assert_eq!(opened.message, Err(Rejection::Form));
}

#[test]
fn messages_that_a_relay_drops_are_counted_but_not_those_of_before_our_time() {
    let (ours, first, second) = (sealing(Slot::A, 1), sealing(Slot::B, 2), sealing(Slot::B, 3));
    let mut opening = opening(Slot::B);
    let mut missing = |sealed: &Opaque| opening.open(sealed, &ours).missing;
    let notes: Vec<_> = (0..6).map(|number| seal(&first, &note(number))).collect();
    assert_eq!(
        missing(&notes[2]),
        0,
        "an earlier page load of ours had the first two"
    );
    assert_eq!(missing(&notes[3]), 0);
    assert_eq!(missing(&notes[5]), 1);
    seal(&second, &note(0));
    assert_eq!(
        missing(&seal(&second, &note(1))),
        1,
        "a new page load begins with its first"
    );
}

#[test]
fn a_message_that_is_too_large_is_refused_and_spoils_nothing() {
    let (ours, theirs) = (sealing(Slot::A, 1), sealing(Slot::B, 2));
    let large = Message::Other {
        kind: "note".to_owned(),
        negotiation: String::new(),
        value: Value::from("x".repeat(16_384)),
    };
    let usual = SessionLimits::default();
    assert_eq!(theirs.seal(&large, &usual, |_| ()), Err(SealError::TooLarge));
    let small = SessionLimits {
        frame_bytes: 471,
        ..usual
    };
    assert_eq!(theirs.seal(&note(0), &small, |_| ()), Err(SealError::TooLarge));
    let opened = opening(Slot::B).open(&seal(&theirs, &note(1)), &ours);
    assert_eq!((opened.missing, opened.message), (0, Ok(note(1))));
}

/// What a hostile relay does with the next message of the true sequence, or instead of it.
#[derive(Clone, Debug)]
enum Malice {
    Pass,
    Drop,
    Repeat(usize),
    Edit(usize, u8),
    Reflect,
    Splice,
    Swap(usize),
}

fn malice() -> impl Strategy<Value = Malice> {
    prop_oneof![
        4 => Just(Malice::Pass),
        1 => Just(Malice::Drop),
        2 => (0..20usize).prop_map(Malice::Repeat),
        2 => (0..400usize, 1..255u8).prop_map(|(at, with)| Malice::Edit(at, with)),
        1 => Just(Malice::Reflect),
        1 => Just(Malice::Splice),
        2 => (1..5usize).prop_map(Malice::Swap),
    ]
}

fn edited(sealed: &Opaque, at: usize, with: u8) -> Opaque {
    let mut bytes = sealed.expose().as_bytes().to_vec();
    let index = at % bytes.len();
    bytes[index] = b' ' + (bytes[index].wrapping_add(with)) % 95;
    Opaque::new(String::from_utf8(bytes).unwrap())
}

proptest! {
    #[test]
    fn of_what_a_hostile_relay_presents_only_a_part_of_the_true_sequence_is_taken(
        plan in prop::collection::vec(malice(), 1..40)
    ) {
        let (ours, theirs) = (sealing(Slot::A, 1), sealing(Slot::B, 2));
        let elsewhere = Sealing::new(&secret(), SessionId::from_bytes([8; 16]), Slot::B, [2; 16]);
        let truth: Vec<_> = (0..plan.len() + 5).map(|number| seal(&theirs, &note(number))).collect();
        let mut presented = Vec::new();
        for (next, malice) in plan.iter().enumerate() {
            match *malice {
                Malice::Pass => presented.push(truth[next].clone()),
                Malice::Drop => {}
                Malice::Repeat(back) => presented.push(truth[next.saturating_sub(back + 1)].clone()),
                Malice::Edit(at, with) => presented.push(edited(&truth[next], at, with)),
                Malice::Reflect => presented.push(seal(&ours, &note(next))),
                Malice::Splice => presented.push(seal(&elsewhere, &note(next))),
                Malice::Swap(ahead) => presented.extend([truth[next + ahead].clone(), truth[next].clone()]),
            }
        }
        let mut opening = opening(Slot::B);
        let mut rejected = 0;
        let mut missing = 0;
        let mut taken = Vec::new();
        for sealed in &presented {
            let opened = opening.open(sealed, &ours);
            missing += opened.missing;
            match opened.message {
                Ok(message) => taken.push(truth.iter().position(|true_one| true_one == sealed)
                    .filter(|number| note(*number) == message)),
                Err(_) => rejected += 1,
            }
        }
        let taken: Option<Vec<usize>> = taken.into_iter().collect();
        let taken = taken.expect("nothing is taken that the peer did not seal");
        prop_assert!(taken.is_sorted_by(|before, after| before < after), "in order, each once");
        prop_assert_eq!(taken.len() + rejected, presented.len(), "the rest is reported");
        if let (Some(first), Some(last)) = (taken.first(), taken.last()) {
            prop_assert_eq!(missing as usize, last - first + 1 - taken.len(), "what was dropped shows");
        }
    }
}
