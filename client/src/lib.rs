//! x
mod clock;
mod entropy;
pub mod signal;
