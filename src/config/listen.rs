//! Where the relay listens, and with how many threads.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
};

use url::Url;

use super::{error::ConfigError, setting, source::Sources, value};
use crate::defaults;

/// The public listener.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Address and port.
    pub address: SocketAddr,
    /// The URL instances know the relay by; without one it is taken from each request.
    pub public_url: Option<Url>,
    /// HTTP threads; `None` = one per CPU.
    pub workers: Option<NonZeroUsize>,
    /// Connections at the same time, if there are file descriptors for so many.
    pub connections: usize,
    /// Of those, how many one address may have; `None` = [`defaults::CONNECTIONS_ADDRESS_PART`] of them.
    pub connections_per_address: Option<usize>,
    /// Threads of the instances' actors; `None` = one per CPU.
    pub arbiters: Option<NonZeroUsize>,
}

impl Listen {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let connections = sources.parse(
            &setting::CONNECTIONS,
            value::number(defaults::CONNECTIONS_MIN..=defaults::CONNECTIONS_MAX),
        )?;
        let per_address = sources.parse(
            &setting::CONNECTIONS_PER_ADDRESS,
            value::number(1..=defaults::CONNECTIONS_MAX),
        )?;
        Ok(Self {
            address: address(sources)?,
            public_url: sources.parse(&setting::PUBLIC_URL, parse_public_url)?,
            workers: sources.parse(&setting::WORKERS, value::threads)?,
            connections: connections
                .and_then(|connections| usize::try_from(connections).ok())
                .unwrap_or(defaults::CONNECTIONS),
            connections_per_address: per_address.and_then(|connections| usize::try_from(connections).ok()),
            arbiters: sources.parse(&setting::ARBITERS, value::threads)?,
        })
    }

    /// How many of so many connections one address may have.
    pub(crate) fn of_an_address(&self, connections: usize) -> usize {
        self.connections_per_address
            .unwrap_or_else(|| connections.div_ceil(defaults::CONNECTIONS_ADDRESS_PART))
    }
}

/// `RELAY_LISTEN` beats `PORT`, but for `--port` where no flag says `RELAY_LISTEN`: that moves the listener to another port
/// of its address, since a flag beats whatever stands elsewhere, and opens it to nobody else. `HOSTNAME` is not read:
/// containers set it to their own id.
fn address(sources: &Sources<'_>) -> Result<SocketAddr, ConfigError> {
    let listen = sources.parse(&setting::LISTEN, value::address)?;
    let port = sources.parse(&setting::PORT, value::port)?;
    let is_flag = |setting| sources.is_flag(setting);
    match (listen, port) {
        (Some(listen), Some(port)) if is_flag(&setting::PORT) && !is_flag(&setting::LISTEN) => {
            Ok(SocketAddr::new(listen.ip(), port))
        }
        (Some(listen), _) => Ok(listen),
        (None, Some(port)) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)),
        (None, None) => Ok(defaults::LISTEN),
    }
}

/// Whether two listeners can't both be bound: the same port of the same address, or of all.
pub(crate) fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let takes_all =
        |all: SocketAddr, part: SocketAddr| all.ip().is_unspecified() && (all.is_ipv6() || part.is_ipv4());
    let shared = one.ip() == other.ip() || takes_all(one, other) || takes_all(other, one);
    // Of port 0, each gets another.
    shared && one.port() == other.port() && one.port() != 0
}

fn parse_public_url(text: &str) -> Result<Url, String> {
    const PROBLEM: &str = "must be a URL like https://relay.example, without a path, user name or query";
    let url = Url::parse(text.trim()).map_err(|_| PROBLEM.to_owned())?;
    let bare = matches!(url.scheme(), "https" | "http")
        && url.host().is_some()
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    bare.then_some(url).ok_or_else(|| PROBLEM.to_owned())
}
