//! What the operator tunes: limits, times, storage, proxies, the admin listener, logs.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;
use sovereign_relay_protocol::{limits as public_limits, redacted::Redacted};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::{enrollment::parse_secret, error::ConfigError, setting, source::Sources, value};
use crate::{defaults, provider::transport::parse_bundle, store::redis::url::RedisUrl};

/// Limits of instances where nothing else is set for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Pushes a minute, and the burst.
    pub pushes_per_minute: u32,
}

impl Limits {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let parse = value::number(1..=defaults::PUSHES_PER_MINUTE_MAX);
        let pushes = sources.parse(&setting::PUSHES_PER_MINUTE, parse)?;
        Ok(Self {
            pushes_per_minute: pushes.unwrap_or(public_limits::PUSHES_PER_MINUTE),
        })
    }
}

/// Times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// One push, retries included.
    pub push_deadline: Duration,
    /// Between the stop signal and the last accepted request.
    pub drain_grace: Duration,
}

impl Timeouts {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let push_deadline = sources.parse(
            &setting::PUSH_DEADLINE,
            value::duration(defaults::PUSH_DEADLINE_MIN..=defaults::PUSH_DEADLINE_MAX),
        )?;
        let drain_grace = sources.parse(
            &setting::DRAIN_GRACE,
            value::duration(Duration::ZERO..=defaults::DRAIN_GRACE_MAX),
        )?;
        let times = Self {
            push_deadline: push_deadline.unwrap_or(defaults::PUSH_DEADLINE),
            drain_grace: drain_grace.unwrap_or(defaults::DRAIN_GRACE),
        };
        times
            .fit_a_stop()
            .then_some(times)
            .ok_or(ConfigError::StopTooLong {
                grace: times.drain_grace,
                deadline: times.push_deadline,
            })
    }

    /// Whether a push that begins at the very end of the grace is answered before its connection is cut.
    fn fit_a_stop(self) -> bool {
        self.drain_grace + self.push_deadline <= defaults::STOP_TIME_FOR_PUSHES
    }
}

/// Where state is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Storage {
    /// Folder of the embedded store. It may not exist yet.
    pub data_dir: PathBuf,
    /// What replicas share. `None`: this is the only one.
    pub redis: Option<RedisUrl>,
}

impl Storage {
    pub(crate) fn load(sources: &Sources<'_>, tls: &Tls) -> Result<Self, ConfigError> {
        let named = sources.parse(&setting::DATA_DIR, parse_folder)?;
        let data_dir = named.or_else(system_data_dir).or_else(|| user_data_dir(sources));
        let redis = sources.parse(&setting::REDIS_URL, RedisUrl::parse)?;
        let redis = redis.map(|url| url.trusting(tls.extra_ca.as_deref()));
        data_dir.map(|data_dir| Self { data_dir, redis }).ok_or(ConfigError::Missing {
            name: setting::DATA_DIR.name,
            problem: "neither /var/lib/sovereign-relay can be written nor is there a HOME to keep state in",
        })
    }
}

/// A folder, or what may become one.
fn parse_folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let nearest = path.ancestors().find_map(|path| fs::metadata(path).ok());
    match nearest {
        Some(found) if !found.is_dir() => Err("must be a folder, and there is a file".to_owned()),
        Some(_) | None => Ok(path),
    }
}

/// The system's folder, when a package or a container made it and gave it to us.
fn system_data_dir() -> Option<PathBuf> {
    let folder = PathBuf::from(defaults::SYSTEM_DATA_DIR);
    // Permission bits don't tell (root, read-only mounts): only trying does.
    let probe = folder.join(format!(".writable-{}", std::process::id()));
    fs::write(&probe, []).ok()?;
    fs::remove_file(&probe).ok()?;
    Some(folder)
}

/// `$XDG_STATE_HOME`, or `~/.local/state` (XDG Base Directory Specification, which ignores relative paths).
fn user_data_dir(sources: &Sources<'_>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        sources
            .variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state =
        absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join(defaults::USER_DATA_DIR))
}

/// Whose `X-Forwarded-For` is believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proxies {
    /// Peers.
    pub trusted: Vec<IpNet>,
    /// Nobody was named, so loopback and private ranges are believed.
    pub by_default: bool,
    /// The variable that names a proxy for the way out, if any. The provider clients read it themselves.
    pub outgoing: Option<&'static str>,
}

/// Where HTTP clients look for an outgoing proxy.
const OUTGOING: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

impl Proxies {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let named = sources.parse(&setting::TRUSTED_PROXIES, parse_networks)?;
        let by_default = named.is_none();
        let built_in = || {
            defaults::TRUSTED_PROXIES
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect()
        };
        let outgoing = OUTGOING.into_iter().find(|name| sources.variable(name).is_some());
        Ok(Self {
            trusted: named.unwrap_or_else(built_in),
            by_default,
            outgoing,
        })
    }
}

fn parse_networks(text: &str) -> Result<Vec<IpNet>, String> {
    if text.trim() == "none" {
        return Ok(Vec::new());
    }
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            part.parse::<IpNet>()
                .or_else(|_| part.parse::<IpAddr>().map(IpNet::from))
        })
        .collect::<Result<_, _>>()
        .map_err(|_| "must be addresses or CIDR ranges with commas, like 10.0.0.0/8,::1, or none".to_owned())
}

/// The admin listener.
#[derive(Clone, Debug)]
pub struct Admin {
    /// Address and port.
    pub listen: SocketAddr,
    /// What the CLI shows. `None`: the relay makes one and keeps it in its data folder.
    pub token: Option<Redacted>,
}

impl Admin {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            listen: sources
                .parse(&setting::ADMIN_LISTEN, value::address)?
                .unwrap_or(defaults::ADMIN_LISTEN),
            token: sources.parse(&setting::ADMIN_TOKEN, parse_secret)?,
        })
    }
}

/// How the targets of all lines of the relay begin.
const OUR_TARGETS: &str = "sovereign_relay";

/// What is logged and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logging {
    /// A tracing filter.
    pub filter: String,
    /// JSON lines or text.
    pub format: LogFormat,
}

/// Form of the log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people.
    Text,
}

impl Logging {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            filter: sources
                .parse(&setting::LOG, parse_filter)?
                .unwrap_or_else(|| defaults::LOG.to_owned()),
            format: sources
                .parse(&setting::LOG_FORMAT, parse_format)?
                .unwrap_or_default(),
        })
    }
}

/// A word without a level is taken for a target: of `inof`, which nothing has, the log would stay empty for ever.
fn parse_filter(text: &str) -> Result<String, String> {
    let parsed: Result<EnvFilter, _> = text.parse();
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let is_filter = parsed.is_ok() && words.clone().all(is_level_or_target);
    let speaks = words.clone().any(is_ours) || words.count() == 0;
    (is_filter && speaks).then(|| text.to_owned()).ok_or_else(|| {
        "must be error, warn, info, debug, trace or off, or a tracing filter with one of them or with a target of the \
         relay, like info,sovereign_relay=debug"
            .to_owned()
    })
}

fn is_level_or_target(word: &str) -> bool {
    word.contains(['=', '[', ']']) || is_ours(word)
}

fn is_ours(word: &str) -> bool {
    word.parse::<LevelFilter>().is_ok() || word.starts_with(OUR_TARGETS) || word.starts_with('[')
}

fn parse_format(text: &str) -> Result<LogFormat, String> {
    match text.trim() {
        "json" => Ok(LogFormat::Json),
        "text" => Ok(LogFormat::Text),
        _ => Err("must be json or text".to_owned()),
    }
}

/// What outgoing TLS trusts besides the system's roots.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tls {
    /// PEM bundle.
    pub extra_ca: Option<String>,
}

impl Tls {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let extra_ca = sources.parse(&setting::EXTRA_CA_FILE, |path| {
            let text = fs::read_to_string(path).map_err(|error| format!("can't read {path}: {error}"))?;
            parse_bundle(&text).map_err(|problem| format!("{path}: {problem}"))?;
            Ok(text)
        })?;
        Ok(Self { extra_ca })
    }
}
