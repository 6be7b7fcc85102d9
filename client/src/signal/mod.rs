//! x
mod core;
pub mod event;
