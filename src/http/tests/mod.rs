//! The public listener over real sockets.

mod batch;
mod bodies;
mod enrollment;
mod errors;
mod heads;
pub(crate) mod kit;
mod logs;
mod memory;
mod openapi;
mod push;
mod sessions;
mod upgrades;
pub(crate) mod wire;
