//! Settings of the reference server: flags, then the environment, then defaults that run on one machine.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, builder::FalseyValueParser};

use super::exit::CommandError;
use crate::config::RelayChoice;

/// Where the database is made when nothing else is said.
const DATABASE_FILE: &str = "instance.sqlite";

/// What every command needs: the database.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreSettings {
    /// Folder of the embedded database; made when missing, for this user's eyes only
    #[arg(
        long,
        global = true,
        env = "SOVEREIGN_DATA_DIR",
        value_name = "FOLDER",
        default_value = "sovereign-data"
    )]
    pub(crate) data_dir: PathBuf,
    /// A PostgreSQL database instead: postgres://user:password@host/name
    #[arg(
        long,
        global = true,
        env = "SOVEREIGN_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub(crate) database_url: Option<String>,
}

/// What commands need that talk to the relay.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RelaySettings {
    /// The relay: a URL, or `off` for no native push and no signaling; unset, the relay of the project.
    /// `relay set` and `relay off` are stronger
    #[arg(long, env = "SOVEREIGN_RELAY_URL", value_name = "URL|off")]
    pub(crate) relay_url: Option<String>,
    /// An invite, when the relay takes new instances by invite only
    #[arg(
        long,
        env = "SOVEREIGN_RELAY_INVITE",
        value_name = "INVITE",
        hide_env_values = true
    )]
    pub(crate) relay_invite: Option<String>,
    /// Certificates (PEM) to trust besides the system's, for a relay or push service of your own
    #[arg(long, env = "SOVEREIGN_CA_FILE", value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// The name under which the relay's operator knows this instance
    #[arg(long, env = "SOVEREIGN_INSTANCE_NAME", value_name = "NAME")]
    pub(crate) instance_name: Option<String>,
    /// How push services reach you: mailto:... or https://...; the relay's operator is told an address alone
    #[arg(long, env = "SOVEREIGN_CONTACT", value_name = "URI")]
    pub(crate) contact: Option<String>,
    /// Allow channels and endpoints on this machine and without TLS: for simulators only
    #[arg(long, env = "SOVEREIGN_ALLOW_TEST_ENDPOINTS", value_parser = FalseyValueParser::new())]
    pub(crate) allow_test_endpoints: bool,
}

/// What the server needs besides.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListenSettings {
    /// Where to listen. Browsers allow push on https and localhost alone: put a proxy with a certificate in front
    #[arg(
        long,
        env = "SOVEREIGN_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8090"
    )]
    pub(crate) listen: SocketAddr,
    /// What to log: a level, or a filter such as `info,sovereign_instance=debug`
    #[arg(long, env = "SOVEREIGN_LOG", value_name = "FILTER", default_value = "info")]
    pub(crate) log: String,
    /// How to log
    #[arg(long, env = "SOVEREIGN_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// How log lines look.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

impl StoreSettings {
    /// The database's URL; the folder of an embedded one is there after this call.
    pub(crate) fn url(&self) -> Result<String, CommandError> {
        if let Some(url) = self.database_url.as_deref().filter(|url| !url.is_empty()) {
            return Ok(url.to_owned());
        }
        make_private(&self.data_dir)
            .map_err(|error| CommandError::failed(format!("{}: {error}", self.data_dir.display())))?;
        let file = self.data_dir.join(DATABASE_FILE);
        let text = file.to_str().ok_or_else(|| {
            CommandError::usage(format!("{}: the folder's name must be UTF-8", file.display()))
        })?;
        Ok(format!("sqlite:{text}"))
    }
}

impl RelaySettings {
    /// Unset, off, or a relay.
    pub(crate) fn choice(&self) -> Result<RelayChoice, CommandError> {
        RelayChoice::from_setting(self.relay_url.as_deref())
            .map_err(|error| CommandError::usage(format!("SOVEREIGN_RELAY_URL: {error}")))
    }
}

#[cfg(unix)]
fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}
