//! The routes over real sockets, on a real SQLite file.

mod devices;
mod kit;
#[cfg(feature = "server")]
mod logs;
mod refusals;
mod subscriptions;
