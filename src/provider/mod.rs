//! The providers' clients, all three of the same shape: `mod` (the port), `client` (the wire), `token`
//! (credentials), `error` (answers to outcomes).

pub mod apns;
pub mod fcm;
pub mod oauth;
pub mod transport;
pub mod wns;
