//! The client against the simulator, over real sockets and TLS.

mod connections;
mod kit;
mod outcomes;
mod tokens;
