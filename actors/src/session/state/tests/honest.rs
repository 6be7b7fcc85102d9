//! A client that follows the protocol, whatever the store does.

use proptest::prelude::*;

use super::*;

proptest! {
    /// A client that sends ahead, hears answers late, goes back to what was refused, and repeats old messages; a store
    /// that fails, is full, or stores and says it failed.
    #[test]
    fn an_honest_client_is_never_closed_and_what_is_acknowledged_is_stored(
        steps in prop::collection::vec((0u8..6, 0u64..4, 0u64..200), 1..300),
    ) {
        let mut bench = Bench::new(EndToEnd::Optional);
        let (mut sends, mut stored, mut acknowledged, mut refused) = (1, 0, 0, None);
        for (store, back, millis) in steps {
            bench.wait(Duration::from_millis(millis));
            // Every so often it hears of a refusal, or sends an old message again.
            if back == 0 {
                sends = refused.take().unwrap_or(sends);
            }
            let n = if back == 1 && acknowledged > 0 { acknowledged } else { sends };
            let answer = match bench.judge(n) {
                Verdict::Append => {
                    let is_new = n == stored + 1;
                    prop_assert!(n == stored + 1 || n == stored, "asked to store {n} after {stored}");
                    let outcome = match store {
                        0 => unavailable(),
                        1 if is_new => { stored = n; unavailable() }
                        2 if is_new => Ok(Appended::MailboxFull),
                        _ if is_new => { stored = n; Ok(Appended::Stored) }
                        _ => Ok(Appended::Duplicate),
                    };
                    bench.answer(n, outcome)
                }
                Verdict::Repeat(n) => Answer::Ack(n, false),
                Verdict::Skip => {
                    prop_assert!(refused.is_some_and(|refused| refused < n));
                    sends = sends.max(n + 1);
                    continue;
                }
                Verdict::Refuse(refusal) => {
                    prop_assert!(refusal.n > acknowledged);
                    Answer::Refuse(refusal)
                }
                Verdict::Close(code) => return Err(TestCaseError::fail(format!("closed: {code:?}"))),
            };
            sends = sends.max(n + 1);
            match answer {
                Answer::Ack(n, _) => {
                    prop_assert!(n <= stored && n >= acknowledged);
                    acknowledged = n;
                    refused = refused.filter(|refused| *refused > n);
                }
                Answer::Refuse(refusal) => refused = Some(refusal.n),
                Answer::Close(code) => return Err(TestCaseError::fail(format!("closed: {code:?}"))),
            }
        }
    }
}
