//! The client against the simulator, over real sockets and TLS.

mod connections;
mod kit;
mod outages;
mod outcomes;
mod tokens;
mod useless;
