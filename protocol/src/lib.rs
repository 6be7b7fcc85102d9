//! Bytes and JSON to types and back: everything an instance, a device and the relay have to agree on.
//!
//! Called by every other crate. Nothing here has a runtime, a clock, I/O or a panic: a parser gets bytes and
//! gives a type or an error, so each can be tested with golden, round-trip and mutated inputs.
//!
//! Where to look: [`push`] (one notification and its answer), [`enroll`] (instances and their keys),
//! [`error`] (stable codes), [`token`] (shapes of device tokens), [`envelope`] (what the providers are sent),
//! [`seal`] (the sealed payload that only the device can open), [`signal`] (signaling sessions and their frames),
//! [`limits`] (every number, with its reason), [`address`] (what is the public internet's).

pub mod address;
pub mod batch;
pub mod capabilities;
pub mod enroll;
pub mod envelope;
pub mod error;
pub mod id;
mod json;
pub mod limits;
pub mod platform;
pub mod push;
pub mod redacted;
pub mod seal;
pub mod signal;
pub mod time;
pub mod token;
