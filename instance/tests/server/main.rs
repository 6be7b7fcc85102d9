//! The reference server as an operator runs it: a real process, its commands, its page's routes, and the demo.
#![cfg(feature = "demo")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

mod commands;
mod demo;
mod documents;
mod kit;
mod serving;
