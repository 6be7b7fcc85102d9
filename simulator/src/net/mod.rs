//! Sockets: a TLS listener whose connections can be frozen and cut (`server`, `gate`), the frame of the HTTP
//! simulators (`http`) and the counters they share (`gauge`).

pub(crate) mod gate;
pub(crate) mod gauge;
pub(crate) mod http;
pub(crate) mod server;
