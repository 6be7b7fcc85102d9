//! The providers' clients, all three of the same shape: `mod` (the port), `client` or `message` (the wire), `token`
//! (credentials), `error` (answers to outcomes).
//!
//! APNs has its own HTTP/2 connections on [`transport`]. FCM and WNS are one [`http_provider`], each with its own
//! requests and its own reading of answers ([`answer`]), on an HTTP client ([`http`]), the loop of one push ([`call`]),
//! the keeper of access tokens ([`oauth`]) and the operator's alarms ([`alarm`]).

mod alarm;
mod answer;
pub mod apns;
mod call;
pub mod fcm;
mod http;
mod http_provider;
mod oauth;
mod retry_after;
pub mod transport;
pub mod wns;

pub use self::http::ClientError;
