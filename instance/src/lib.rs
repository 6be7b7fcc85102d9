//! What a self-hosted instance embeds: device-token store, registration routes, encrypting fan-out.
//!
//! - [`store`]: who is registered, what is still to be sent, what became of it. SQLite or PostgreSQL.
//! - [`routes`]: where apps and browsers register; a host mounts them.
//! - [`web_push`]: sends to browsers.
//! - [`config`]: which relay, if any.

/// Which certificates relays are believed by.
pub use sovereign_relay_client::trust;

mod backoff;
pub mod clock;
pub mod config;
#[cfg(feature = "demo")]
pub mod demo;
mod entropy;
pub mod fan_out;
pub mod notification;
pub mod relay;
pub mod routes;
#[cfg(feature = "server")]
pub mod server;
pub mod signal;
pub mod store;
pub mod user;
pub mod web_push;
