//! What a self-hosted instance embeds: device-token store, registration routes, encrypting fan-out.
//!
//! - [`store`]: who is registered, what is still to be sent, what became of it. SQLite or PostgreSQL.
//! - [`config`]: which relay, if any.

pub mod clock;
pub mod config;
mod entropy;
pub mod store;
pub mod user;
