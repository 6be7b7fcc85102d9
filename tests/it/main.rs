//! Black box: the real binary as a process, real sockets, and simulators of APNs, FCM and WNS that can be told to
//! misbehave. `support/` holds the kit; each other file is one theme, each test name a sentence.
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
#![allow(
    clippy::too_many_lines,
    reason = "a story is read from its beginning to its end, and a table by rows"
)]

mod batch;
mod browser;
mod cases_provider;
mod chaos;
mod command_line;
mod compatible;
mod configuration;
mod conventions;
mod crash;
mod deploy;
mod documents;
mod enrollment;
mod error_codes;
mod hang_ups;
mod instance_fan_out;
mod interoperability;
mod life;
mod limits;
mod load;
mod load_generator;
mod memory;
mod metrics;
mod operator;
mod panics;
mod playground;
mod privacy;
mod provider_trouble;
mod proxies;
mod readme;
mod reload;
mod replicas;
mod request_ids;
mod runtime;
mod sessions;
mod shared_pushes;
mod shared_servers;
mod shared_sessions;
mod signaling;
mod support;
mod turn;
mod verdicts;
