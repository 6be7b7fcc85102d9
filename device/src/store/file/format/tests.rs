//! The format: cheap to guess at here, so that every bit can be tried.

use proptest::prelude::*;

use super::*;

const CHEAP: Cost = Cost {
    memory_kib: 8,
    passes: 1,
    lanes: 1,
};

fn passphrase() -> Redacted {
    Redacted::new("correct horse")
}

fn entry() -> Entry {
    Zeroizing::new(b"what is kept".to_vec())
}

fn error_of(file: &[u8]) -> String {
    format!("{:?}", open(file, &passphrase()).unwrap_err())
}

/// With a check that fits, as an attacker would make it.
fn rechecked(mut file: Vec<u8>) -> Vec<u8> {
    let length = file.len() - CHECK_BYTES;
    let check = check(&file[..length]);
    file[length..].copy_from_slice(&check);
    file
}

#[test]
fn what_was_sealed_opens_under_the_same_passphrase_alone() {
    let file = seal(&entry(), &passphrase(), CHEAP).unwrap();
    assert_eq!(open(&file, &passphrase()).unwrap(), entry());
    for wrong in ["correct hors", "Correct horse", "correct horse "] {
        let error = open(&file, &Redacted::new(wrong)).unwrap_err();
        assert!(matches!(error, StoreError::WrongPassphrase), "{error}");
    }
    assert!(!file.windows(12).any(|window| window == b"what is kept"));
}

#[test]
fn the_same_entry_is_sealed_differently_each_time() {
    let one = seal(&entry(), &passphrase(), CHEAP).unwrap();
    let other = seal(&entry(), &passphrase(), CHEAP).unwrap();
    assert_ne!(one[20..36], other[20..36], "salt");
    assert_ne!(one[36..48], other[36..48], "nonce");
}

#[test]
fn a_file_cut_at_any_byte_is_damaged() {
    let file = seal(&entry(), &passphrase(), CHEAP).unwrap();
    for length in 0..file.len() {
        assert_eq!(error_of(&file[..length]), "Damaged", "{length}");
    }
    let longer = [file.as_slice(), b"x"].concat();
    assert_eq!(error_of(&longer), "Damaged");
}

#[test]
fn a_file_with_any_bit_flipped_is_damaged_or_foreign_or_newer() {
    let file = seal(&entry(), &passphrase(), CHEAP).unwrap();
    for bit in 0..file.len() * 8 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let expected = match (bit / 8, flipped[7]) {
            (0..7, _) => "Foreign",
            (7, version) if version > VERSION => "Newer",
            _ => "Damaged",
        };
        assert_eq!(error_of(&flipped), expected, "bit {bit}");
    }
}

#[test]
fn no_bit_changed_on_purpose_opens() {
    let file = seal(&entry(), &passphrase(), CHEAP).unwrap();
    // Costs apart, which the next test has: a flipped bit there can ask for hours.
    for bit in (20 * 8)..(file.len() - CHECK_BYTES) * 8 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(error_of(&rechecked(flipped)), "WrongPassphrase", "bit {bit}");
    }
}

#[test]
fn a_file_that_asks_for_more_than_was_ever_written_is_damaged_and_costs_nothing() {
    let file = seal(&entry(), &passphrase(), CHEAP).unwrap();
    for (at, number) in [(8, u32::MAX), (12, 17), (16, 17), (8, 0), (12, 0), (16, 0)] {
        let mut changed = file.clone();
        changed[at..at + 4].copy_from_slice(&number.to_be_bytes());
        assert_eq!(error_of(&rechecked(changed)), "Damaged", "{number} at {at}");
    }
    let mut cheaper = file.clone();
    cheaper[12..16].copy_from_slice(&2_u32.to_be_bytes());
    assert_eq!(
        error_of(&rechecked(cheaper)),
        "WrongPassphrase",
        "costs are part of the seal"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(open(&bytes, &passphrase()).is_err());
        let named = [b"SRDKEYF\x01".as_slice(), &bytes].concat();
        prop_assert!(parse(&named).is_err());
    }
}
