//! What `deploy/` holds, each file tried with the program that it is for.

mod caddy_reload;
mod compose;
mod drain;
mod files;
mod http2;
mod proxy;
mod refusals;
mod rolling;
