//! The endpoint over real sockets, with sessions in memory.

use serde_json::json;
use sovereign_relay_protocol::signal::close::CloseCode;

mod conversation;
mod handshake;
mod hostile;
mod interleavings;
mod kit;
mod memory;
