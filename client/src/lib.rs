//! Client of Sovereign Relay: pushes, and signaling connections that survive lost networks.
//!
//! - [`http`]: enroll an instance, push, make sessions. `examples/push.rs`.
//! - [`signal`]: join a session and talk to the other peer, sealed end to end. `examples/signal.rs`.
//! - [`trust`]: which certificates both believe.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use sovereign_relay_client::{http::Relay, protocol::enroll::EnrollRequest, trust::Trust};
//!
//! let relay = Relay::new("https://relay.example", &Trust::system()?)?;
//! let enrollment = relay.enroll(&EnrollRequest::default(), None).await?;
//! let instance = relay.instance(enrollment.instance_key);
//! # Ok(())
//! # }
//! ```
//!
//! Keys, tickets, secrets and content print nothing and are in no error.

mod clock;
mod entropy;
pub mod http;
pub mod signal;
pub mod trust;

/// The types of the wire, which this crate's calls take and give.
pub use sovereign_relay_protocol as protocol;

#[cfg(test)]
mod tests {
    /// The examples are run against the relay by its own tests.
    #[test]
    fn the_readme_shows_the_examples_as_they_are_run() {
        let examples = [
            ("examples/signal.rs", include_str!("../examples/signal.rs")),
            ("examples/push.rs", include_str!("../examples/push.rs")),
        ];
        let mut shown = include_str!("../README.md").split("<!-- ").skip(1);
        for (path, source) in examples {
            let block = shown.next().and_then(|rest| rest.strip_prefix(path)).unwrap();
            let code = block.strip_prefix(" -->\n```rust\n").unwrap();
            let (code, _) = code.split_once("```").unwrap();
            for function in code.split_inclusive("\n}\n") {
                assert!(source.contains(function.trim_start()), "{path}: {function}");
            }
        }
        assert_eq!(shown.next(), None);
    }
}
