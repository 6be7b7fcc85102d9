//! What can go wrong when simulators are started or commanded.

use std::path::PathBuf;

/// Why a simulator could not be started or commanded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulatorError {
    /// Keys or certificates could not be made.
    #[error("could not make keys and certificates")]
    Certificate(#[from] rcgen::Error),
    /// The TLS configuration was refused.
    #[error("could not configure TLS")]
    Tls(#[from] rustls::Error),
    /// A key could not be used to verify JWTs.
    #[error("could not read a key made here")]
    Key(#[from] jsonwebtoken::errors::Error),
    /// No port could be bound.
    #[error("could not listen on loopback")]
    Listen(#[from] std::io::Error),
    /// The CA certificate could not be written.
    #[error("could not write the CA certificate to {path}")]
    WriteCa {
        /// Where to.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The simulator was stopped.
    #[error("the simulator is stopped")]
    Stopped,
}
