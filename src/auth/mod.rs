//! Who asks: instance keys, enrollment, rotation, revocation, and the keys derived from the enrollment secret.
//!
//! ```text
//! http -> Authority::verify  -> keys (signature) -> revocations (in memory)          every request, no I/O
//!      -> Authority::enroll, rotate, withdraw -> Store -> revocations (in memory)    then the answer
//!      -> Authority::tickets (sessions API: sign; WebSocket endpoint: verify)        no I/O
//! admin -> Authority::revoke, suspend, ... -> Store -> revocations (in memory)
//! ```
//!
//! Invariant: a revocation is in the store before it is in memory, and in memory before it is acknowledged; so an
//! acknowledged one holds at once and after any crash.

pub mod authority;
pub mod derived;
pub mod error;
pub mod following;
mod hs256;
pub mod keys;
pub mod operator;
mod revocations;
pub mod tickets;

pub use authority::{Authority, Caller, Enrollment};
pub use derived::DerivedKeys;
pub use error::{EnrollError, KeyError, RotateError, WithdrawError};
pub use keys::{SecretError, Secrets};
pub use operator::{ImportError, Imported, InstanceView, InviteView, OperatorError, SuspensionView};
pub use tickets::{TicketClaims, TicketError, Tickets};
