//! Whole relays with their real actors, lanes and store, on free loopback ports; only the providers are doubles.

mod admin;
mod kit;
mod life;
