#![doc = include_str!("../README.md")]
//!
//! # Where to look
//! [`key`] (the pair, made once), [`store`] (where it is kept), [`notification`] (what opening gives), [`token`] (what
//! the operating system calls this device), [`instance`] (registering it). What an app in Swift or Kotlin calls is
//! `device/ffi`, over this crate.
//!
//! Invariant: no function gives the private key. A store that a host writes itself is handed the entry to keep; nothing
//! else ever sees it.

mod entropy;
pub mod instance;
pub mod key;
pub mod notification;
mod record;
pub mod store;
pub mod token;

pub use key::{Keys, KeysError};
pub use notification::{Notification, OpenError};
pub use store::{Store, StoreError};
pub use token::DeviceToken;
