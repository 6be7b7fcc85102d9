//! Signaling from outside: what peers are promised, kept by the real relay over real sockets.
//!
//! - [`returning`]: lost networks, takeovers, page reloads, and who may come back how often.
//! - [`waiting`]: messages that wait, are refused, or are too many; readers that stall; what one tenant costs others.
//! - [`cut`]: connections killed between storing and acknowledging, a thousand times.
//! - [`ending`]: nothing is delivered after an end was acknowledged.
//! - [`hostile`]: bytes, frames, fields and tickets that are wrong.
//! - [`limits`]: the operator's numbers in place of the defaults.
//! - [`clients`]: the Rust and the TypeScript client talk to each other; the examples run.
//!
//! What takes minutes is told to a clock of the test elsewhere: heartbeats over nine minutes in the endpoint's
//! `heartbeat` module, `left` after the grace and the end at expiry in the session actor's tests, a network that
//! swallows everything in the tests of both clients, as is what a hostile relay can do to sealed messages. What the
//! sessions API and the operator do to connected peers, tickets of an earlier session at the same rendezvous and TURN
//! credentials are in `sessions`; that tickets are found in no log, in `privacy`; thousands of resumes more, in the
//! endpoint's own tests.

mod clients;
mod cut;
mod ending;
mod hostile;
mod limits;
mod returning;
mod waiting;
