//! Where a test's servers listen if they can't say which port they got, or are to come back at the same one.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the ports that connections get.
const FIRST_PORT: u16 = 3478;

/// An address and a port that no other test has, nor a connection of one: all of 127.0.0.0/8 is this machine's.
pub(crate) fn own_place() -> SocketAddrV4 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, 64 | (high & 63), middle, low);
    SocketAddrV4::new(address, FIRST_PORT + TAKEN.fetch_add(1, Ordering::Relaxed))
}
