//! The public listener over real sockets.

mod batch;
mod bodies;
mod documented;
mod enrollment;
mod errors;
mod heads;
pub(crate) mod kit;
mod logs;
mod memory;
mod openapi;
// Elsewhere the loopback network has one address.
#[cfg(target_os = "linux")]
mod peers;
mod pipelined;
mod push;
mod sessions;
mod upgrades;
pub(crate) mod wire;
