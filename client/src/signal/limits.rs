//! What a relay's limits leave to a message. Called before a message is put in line (`connection`, `session`) and again
//! by the outbox, when a welcome brings other limits than the message was measured by.
//!
//! Invariant: what fits here passes in both directions: the frame that brings a message to the peer is longer than the
//! one that brought it to the relay, and both are held to `frameBytes`.

use sovereign_relay_protocol::signal::{
    frame::{Opaque, ServerFrame},
    seal::PADDED_BYTES,
    session::SessionLimits,
};

/// The longest frame around a message without content.
const AROUND: usize = r#"{"t":"msg","seq":18446744073709551615,"gen":4294967295,"d":""}"#.len();
/// Most bytes of one in JSON: `\u0000`.
const ESCAPED: usize = 6;
/// What sealing puts before the ciphertext: `e1.`, 16 bytes in base64url, and the longest counter.
const SEALED_HEAD: usize = "e1.".len() + 22 + ".18446744073709551615.".len();
/// What AES-GCM adds to a plaintext.
const TAG: usize = 16;

/// Whether content can pass.
pub(super) fn fits(content: &Opaque, limits: &SessionLimits) -> bool {
    if content.len() > limits.mailbox_bytes || content.len().saturating_add(AROUND) > limits.frame_bytes {
        return false;
    }
    content.len().saturating_mul(ESCAPED) <= limits.frame_bytes - AROUND
        || delivered(content) <= limits.frame_bytes
}

/// Whether a plaintext of so many bytes can pass once it is padded and sealed.
pub(super) fn fits_sealed(plaintext: usize, limits: &SessionLimits) -> bool {
    let padded = PADDED_BYTES.into_iter().find(|padded| plaintext <= *padded);
    padded.is_some_and(|padded| {
        let sealed = SEALED_HEAD + (padded + TAG).saturating_mul(4).div_ceil(3);
        sealed <= limits.mailbox_bytes && sealed + AROUND <= limits.frame_bytes
    })
}

fn delivered(content: &Opaque) -> usize {
    let frame = ServerFrame::Message {
        seq: u64::MAX,
        generation: u32::MAX,
        content: content.clone(),
    };
    frame.to_text().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sovereign_relay_protocol::signal::{
        frame::ClientFrame,
        id::{SessionId, Slot},
        seal::{Sealer, SessionSecret},
    };

    use super::*;

    fn frame_bytes(frame_bytes: usize) -> SessionLimits {
        SessionLimits {
            frame_bytes,
            ..SessionLimits::default()
        }
    }

    #[test]
    fn the_frame_that_delivers_counts_with_its_longest_numbers() {
        assert_eq!(delivered(&Opaque::new("")), AROUND);
        let limits = frame_bytes(1000);
        assert!(fits(&Opaque::new("x".repeat(1000 - AROUND)), &limits));
        assert!(!fits(&Opaque::new("x".repeat(1001 - AROUND)), &limits));
        let quotes = (1000 - AROUND) / 2;
        assert!(fits(&Opaque::new("\"".repeat(quotes)), &limits));
        assert!(!fits(&Opaque::new("\"".repeat(quotes + 1)), &limits));
        assert!(!fits(&Opaque::new(""), &frame_bytes(AROUND - 1)));
    }

    #[test]
    fn what_no_mailbox_would_ever_hold_does_not_fit() {
        let limits = SessionLimits {
            mailbox_bytes: 400,
            ..SessionLimits::default()
        };
        assert!(fits(&Opaque::new("x".repeat(400)), &limits));
        assert!(!fits(&Opaque::new("x".repeat(401)), &limits));
        assert!(!fits_sealed(1, &limits));
    }

    #[test]
    fn the_longest_padding_that_fits_bounds_a_plaintext() {
        for (bytes, longest) in [(471, 0), (472, 256), (8 * 1024, 4096), (24 * 1024, 16384)] {
            let limits = frame_bytes(bytes);
            assert!(!fits_sealed(longest + 1, &limits), "{bytes}");
            assert!(longest == 0 || fits_sealed(longest, &limits), "{bytes}");
        }
        assert!(!fits_sealed(16385, &frame_bytes(1 << 20)));
    }

    proptest! {
        #[test]
        fn what_fits_is_never_a_longer_frame_than_allowed(text in "[a-z\"\\\\\u{0}\u{1f980}\n]{0,300}", bytes in 50usize..900) {
            let content = Opaque::new(text);
            let fitting = fits(&content, &frame_bytes(bytes));
            prop_assert_eq!(fitting, delivered(&content) <= bytes);
            let said = ClientFrame::Message { n: u64::MAX, content }.to_text();
            prop_assert!(!fitting || said.len() <= bytes);
        }

        #[test]
        fn a_sealed_message_that_fits_by_its_length_fits_as_it_is(length in 0usize..17_000, bytes in 300usize..30_000) {
            let limits = frame_bytes(bytes);
            let secret = SessionSecret::from_bytes([7; 32]);
            let mut sealer = Sealer::new(&secret, SessionId::from_bytes([9; 16]), Slot::A, [2; 16]);
            if fits_sealed(length, &limits) {
                prop_assert!(fits(&sealer.seal(&"x".repeat(length)).unwrap(), &limits));
            }
        }
    }
}
