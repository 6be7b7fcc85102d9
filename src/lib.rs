//! Sovereign Relay: adapters and composition around the decisions in `actors/`.
//!
//! In the order data flows: [`cli`] and [`config`] say what is wanted, [`app`] puts the parts together, [`http`]
//! takes requests in, [`auth`] says who asks, [`signaling`] makes and ends sessions and [`turn`] gives out credentials
//! of a TURN server, [`limit`] and [`store`] keep what must be shared or outlive a restart,
//! [`provider`] talks to APNs, FCM and WNS, [`telemetry`] and [`shutdown`] are for the operator.

pub mod admin;
pub mod app;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod defaults;
mod descriptors;
pub mod entropy;
pub mod http;
pub mod limit;
#[cfg(feature = "playground")]
pub mod playground;
pub mod provider;
pub mod shutdown;
pub mod signaling;
mod steady;
pub mod store;
pub mod telemetry;
pub mod turn;
pub mod ws;
