//! Why a configuration is refused: always one line that names the setting and never shows a secret.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use thiserror::Error;

use super::setting;
use crate::defaults;

/// Where a value came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The environment.
    Environment,
    /// The TOML file.
    File,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "configuration file",
        })
    }
}

/// The configuration can't be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ConfigError {
    /// A value makes no sense.
    #[error("{name} ({origin}): {problem}")]
    Value {
        /// The setting.
        name: String,
        /// Where it was found.
        origin: Origin,
        /// What is wrong, without the value of a secret.
        problem: String,
    },
    /// Two settings exclude each other.
    #[error("{first} and {second} are both set: {problem}")]
    Conflict {
        /// One.
        first: String,
        /// The other.
        second: String,
        /// Why that is no good, and what to do.
        problem: &'static str,
    },
    /// Two times that are each allowed leave a stop too little.
    #[error(
        "{} ({grace:?}) and {} ({deadline:?}) are longer together than the {:?} that a stop leaves them: lower one",
        setting::DRAIN_GRACE.name, setting::PUSH_DEADLINE.name, defaults::STOP_TIME_FOR_PUSHES
    )]
    StopTooLong {
        /// Between the stop signal and the last accepted request.
        grace: Duration,
        /// Of a push that begins at its end.
        deadline: Duration,
    },
    /// Two amounts that are each allowed don't go together.
    #[error(
        "{part} ({part_bytes} bytes) does not fit into {whole} ({whole_bytes} bytes): lower the first or raise the second"
    )]
    DoesNotFit {
        /// What has to fit.
        part: &'static str,
        /// So much.
        part_bytes: usize,
        /// Into what.
        whole: &'static str,
        /// So much.
        whole_bytes: usize,
    },
    /// Two listeners at one place.
    #[error("{first} and {second} are both {address}: give one of them another port")]
    SameAddress {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Where the second is.
        address: SocketAddr,
    },
    /// A default needs something that is not there.
    #[error("{name} is not set, and {problem}")]
    Missing {
        /// The setting.
        name: &'static str,
        /// Why the default does not do.
        problem: &'static str,
    },
    /// A built-in default does not hold: a fault of the relay, or of a name that was put into it.
    #[error("the default of {name} {problem}")]
    BuiltIn {
        /// The setting.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The TOML file can't be read.
    #[error("configuration file {path}: {problem}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// One line.
        problem: String,
    },
    /// The TOML file has a key that is no setting.
    #[error("configuration file: `{key}` is not a setting{}", hint(nearest))]
    UnknownKey {
        /// The key.
        key: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
}

impl ConfigError {
    /// Whether it is a mistake on the command line.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Value {
                origin: Origin::Flag,
                ..
            }
        )
    }
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|key| format!("; did you mean `{key}`?"))
        .unwrap_or_default()
}
