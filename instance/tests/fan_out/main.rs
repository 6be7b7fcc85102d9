//! Fan-out over real sockets: the real relay with simulators of APNs, FCM and WNS behind it, and a real push service.
//! `kit` holds what the tests are made of; each other file is one theme, each test name a sentence.
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "a test binary has no public interface"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking, and real sockets need the real time"
)]

mod delivery;
mod keys;
mod killed;
mod kit;
mod lossy;
mod many;
mod signaling;
mod trouble;
