//! Sessions and connections over real sockets on loopback, against a relay's end that the test drives.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test binary has no users, and a helper that fails fails its test"
)]

mod ending;
mod hostile;
mod limits;
mod lost;
mod server;
mod steady;
mod tls;
