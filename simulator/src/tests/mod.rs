//! The simulators as a stranger sees them: through `h2` and `reqwest`, over TLS.

mod apns;
mod apns_faults;
mod apns_limits;
mod connections;
mod control;
mod fcm;
mod kit;
mod wns;
