//! `check-config`: what a relay with these settings would do, without starting it.
//!
//! It prints names, addresses and reasons, never a secret: a secret is "set" or "not set", and the report is built
//! from fields that are public by type.

use serde::Serialize;
use sovereign_relay_actors::instance::signal::TurnFor;
use sovereign_relay_protocol::{
    capabilities::PerPlatform,
    platform::{Environment, Platform},
};
use url::Url;

mod signal_limits;

use self::signal_limits::SignalLimits;
use super::{AllFlags, exit::CommandError, load_config, output};
use crate::{
    config::{Config, Flags, WnsIdentity},
    store::embedded::{self, OpenError, OwnSecrets},
};

/// `check-config`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: AllFlags<false>,
}

/// Exit 0: it would start. 1: it would not, and why.
pub(crate) fn run(args: &Args) -> Result<(), CommandError> {
    match report(&args.settings.flags) {
        Ok(report) if args.json => output::print_json(&report),
        Ok(report) => output::print(&report.to_text()),
        Err(error) => {
            if args.json {
                output::print_json(&Refusal {
                    ok: false,
                    error: error.to_string(),
                })?;
            }
            Err(error)
        }
    }
}

/// A relay that runs on the data directory is what most who ask have: it is told, and is no fault.
fn report(flags: &Flags) -> Result<Report, CommandError> {
    let config = load_config(flags)?;
    let mut report = Report::of(&config);
    match check_data_dir(&config) {
        Ok(()) => Ok(report),
        Err(locked @ OpenError::Locked(_)) => {
            report
                .warnings
                .push(format!("{locked}: a second one would not start"));
            Ok(report)
        }
        Err(error) => Err(CommandError::failed(error)),
    }
}

/// Replicas keep nothing there.
fn check_data_dir(config: &Config) -> Result<(), OpenError> {
    if config.storage.redis.is_some() {
        return Ok(());
    }
    let own = OwnSecrets {
        enrollment: config.enrollment.secret.is_none(),
        admin_token: config.admin.token.is_none(),
    };
    embedded::check(&config.storage.data_dir, own)
}

#[derive(Serialize)]
struct Refusal {
    ok: bool,
    error: String,
}

/// What would happen.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    ok: bool,
    listen: String,
    public_url: Option<String>,
    admin_listen: String,
    admin_token: Origin,
    enrollment: &'static str,
    enrollment_secret: Origin,
    previous_secrets: usize,
    data_dir: String,
    redis: bool,
    trusted_proxies: Vec<String>,
    outgoing_proxy: Option<&'static str>,
    pushes_per_minute: u32,
    push_deadline_ms: u128,
    drain_grace_ms: u128,
    platforms: PerPlatform<Switch>,
    signaling: Switch,
    signaling_limits: SignalLimits,
    turn: Switch,
    test_endpoints: bool,
    warnings: Vec<String>,
}

/// Where a secret comes from.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Origin {
    Configured,
    KeptInDataDir,
    /// Replicas keep none of their own.
    NotSet,
}

/// On or off, and what there is to say about it.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Switch {
    on: bool,
    /// Off, but not for pushes that name this environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_for_environment: Option<&'static str>,
    detail: String,
}

impl Report {
    /// Reads it off a configuration.
    pub(crate) fn of(config: &Config) -> Self {
        let shared = config.storage.redis.is_some();
        let origin = |set: bool| match (set, shared) {
            (true, _) => Origin::Configured,
            (false, false) => Origin::KeptInDataDir,
            (false, true) => Origin::NotSet,
        };
        Self {
            ok: true,
            listen: config.listen.address.to_string(),
            public_url: config.listen.public_url.as_ref().map(Url::to_string),
            admin_listen: config.admin.listen.to_string(),
            admin_token: origin(config.admin.token.is_some()),
            enrollment: config.enrollment.mode.as_str(),
            enrollment_secret: origin(config.enrollment.secret.is_some()),
            previous_secrets: config.enrollment.previous_secrets.len(),
            data_dir: config.storage.data_dir.display().to_string(),
            redis: shared,
            trusted_proxies: config.proxies.trusted.iter().map(ToString::to_string).collect(),
            outgoing_proxy: config.proxies.outgoing,
            pushes_per_minute: config.limits.pushes_per_minute,
            push_deadline_ms: config.timeouts.push_deadline.as_millis(),
            drain_grace_ms: config.timeouts.drain_grace.as_millis(),
            platforms: PerPlatform {
                ios: platform(config, Platform::Ios),
                android: platform(config, Platform::Android),
                macos: platform(config, Platform::Macos),
                windows: platform(config, Platform::Windows),
            },
            signaling: Switch::new(true, signaling(config)),
            signaling_limits: SignalLimits::of(config),
            turn: turn(config),
            test_endpoints: config.allow_test_endpoints,
            warnings: config.warnings.clone(),
        }
    }

    /// For people.
    pub(crate) fn to_text(&self) -> String {
        let mut lines = vec![
            line("listen", &self.listen),
            line(
                "public url",
                self.public_url.as_deref().unwrap_or("taken from each request"),
            ),
            line(
                "admin",
                &format!("{} (token {})", self.admin_listen, self.admin_token.words()),
            ),
            line(
                "enrollment",
                &format!("{} (secret {})", self.enrollment, self.enrollment_secret.words()),
            ),
            line("data", self.place()),
            line("proxies", &self.proxies_in_words()),
            line("way out", &self.way_out()),
            line(
                "limit",
                &format!("{} pushes a minute for each instance", self.pushes_per_minute),
            ),
            line(
                "deadline",
                &format!(
                    "{} ms for a push, {} ms to drain",
                    self.push_deadline_ms, self.drain_grace_ms
                ),
            ),
        ];
        lines.extend(self.switches().map(|(name, switch)| line(name, &switch.words())));
        lines.extend(
            self.signaling_limits
                .in_words()
                .map(|(name, words)| line(name, &words)),
        );
        lines.extend(self.warnings.iter().map(|warning| line("warning", warning)));
        lines.concat()
    }

    fn switches(&self) -> [(&'static str, &Switch); 6] {
        [
            ("ios", &self.platforms.ios),
            ("android", &self.platforms.android),
            ("macos", &self.platforms.macos),
            ("windows", &self.platforms.windows),
            ("signaling", &self.signaling),
            ("turn", &self.turn),
        ]
    }

    fn place(&self) -> &str {
        if self.redis {
            "in Redis, shared by replicas"
        } else {
            &self.data_dir
        }
    }

    fn way_out(&self) -> String {
        let through = |name| format!("through the proxy that {name} names (NO_PROXY excepts hosts)");
        self.outgoing_proxy.map_or_else(|| "direct".to_owned(), through)
    }

    fn proxies_in_words(&self) -> String {
        if self.trusted_proxies.is_empty() {
            "none".to_owned()
        } else {
            self.trusted_proxies.join(", ")
        }
    }
}

impl Switch {
    fn new(on: bool, detail: String) -> Self {
        Self {
            on,
            on_for_environment: None,
            detail,
        }
    }

    fn words(&self) -> String {
        format!("{:<3}  {}", if self.on { "on" } else { "off" }, self.detail)
    }
}

impl Origin {
    fn words(self) -> &'static str {
        match self {
            Self::Configured => "set",
            Self::KeptInDataDir => "kept in the data folder",
            Self::NotSet => "not set",
        }
    }
}

fn line(name: &str, value: &str) -> String {
    format!("{name:<11} {value}\n")
}

fn platform(config: &Config, platform: Platform) -> Switch {
    match config.platform(platform) {
        Ok(()) => Switch::new(true, detail(config, platform)),
        Err(off) => only_by_name(config, platform).unwrap_or_else(|| Switch::new(false, off.to_string())),
    }
}

/// Apple without a key where pushes go by themselves, and with one where they go when they say so.
fn only_by_name(config: &Config, platform: Platform) -> Option<Switch> {
    let named = config.apns.only_by_name().filter(|_| platform.is_apple())?;
    config.platform_in(platform, named).ok()?;
    let (environment, detail) = (named.as_str(), detail(config, platform));
    Some(Switch {
        on: false,
        on_for_environment: Some(environment),
        detail: format!("but for pushes that name the environment {environment}: {detail}"),
    })
}

fn detail(config: &Config, platform: Platform) -> String {
    match platform {
        Platform::Ios => apple(config, config.apns.ios_topic.as_deref()),
        Platform::Macos => apple(config, config.apns.macos_topic.as_deref()),
        Platform::Android => {
            let project = config
                .fcm
                .account
                .as_ref()
                .map(|account| account.project_id.as_str());
            format!(
                "project {} at {}",
                project.unwrap_or_default(),
                config.fcm.endpoint
            )
        }
        Platform::Windows => {
            let kind = config
                .wns
                .credential
                .as_ref()
                .map(|credential| match &credential.identity {
                    WnsIdentity::PackageSid(_) => "package SID",
                    WnsIdentity::Entra { .. } => "Entra application",
                });
            format!(
                "{}, channels under {}",
                kind.unwrap_or_default(),
                config.wns.channel_rule.host_suffix
            )
        }
    }
}

fn signaling(config: &Config) -> String {
    let origins = &config.signaling.allowed_origins;
    let pages = if origins.is_empty() {
        "pages of any origin".to_owned()
    } else {
        format!("pages of {}", origins.join(", "))
    };
    let place = match config.storage.redis {
        None => "in memory, which a restart ends",
        Some(_) => "in Redis, for all replicas",
    };
    format!("sessions {place}; {pages}")
}

fn turn(config: &Config) -> Switch {
    let given_to = match config.signaling.turn_for {
        TurnFor::None => "for nobody: RELAY_TURN_FOR is none",
        TurnFor::Allowed => "for instances that `instances turn allow` named",
        TurnFor::All => "for every instance but those that `instances turn deny` named",
    };
    match &config.signaling.turn {
        Err(off) => Switch::new(false, off.to_string()),
        Ok(servers) => Switch::new(
            config.signaling.turn_for != TurnFor::None,
            format!("{}; {given_to}", servers.turn.join(", ")),
        ),
    }
}

fn apple(config: &Config, topic: Option<&str>) -> String {
    let environment = |environment: Environment| match config.apns.key(environment) {
        Ok(credential) => {
            format!(
                "{} with key {} at {}",
                environment.as_str(),
                credential.key_id,
                config.apns.endpoint(environment)
            )
        }
        Err(off) => format!("{} off: {}", environment.as_str(), off),
    };
    format!(
        "topic {}; {}; {}; default {}",
        topic.unwrap_or_default(),
        environment(Environment::Production),
        environment(Environment::Sandbox),
        config.apns.default_environment.as_str()
    )
}
