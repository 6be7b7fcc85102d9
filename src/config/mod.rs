//! What the operator wants: one struct per concern, checked as a whole before anything is bound or connected.
//!
//! `main` and the CLI call [`Config::load`]; [`crate::app`] is composed from the result. Flow: [`source`] finds a
//! text (flag, environment, file), [`value`] and [`endpoint`] parse it, each concern's `load` puts its struct
//! together. The names are in [`setting`], the defaults in [`crate::defaults`].
//!
//! Invariant: a bad value stops the start with one line naming it. A missing credential only switches its platform
//! off, and the reason is kept. No secret is ever part of an error or a `Debug` form.

pub mod apns;
pub mod availability;
mod endpoint;
pub mod enrollment;
pub mod error;
pub mod fcm;
pub mod listen;
pub mod operation;
mod platforms;
pub mod setting;
pub mod signaling;
pub mod source;
#[cfg(test)]
pub(crate) mod tests;
pub mod texts;
mod value;
pub mod wns;

pub(crate) use self::value::duration_flag;
pub use self::{
    apns::{Apns, ApnsCredential},
    availability::Off,
    enrollment::{Enrollment, EnrollmentMode},
    error::ConfigError,
    fcm::{Fcm, ServiceAccount},
    listen::Listen,
    operation::{Admin, Limits, LogFormat, Logging, Proxies, Storage, Timeouts, Tls},
    signaling::Signaling,
    source::{File, Flags, Sources},
    texts::Texts,
    wns::{Wns, WnsCredential, WnsIdentity},
};

/// Everything.
#[derive(Clone, Debug)]
pub struct Config {
    /// The public listener.
    pub listen: Listen,
    /// The admin listener.
    pub admin: Admin,
    /// Who may enroll.
    pub enrollment: Enrollment,
    /// Apple.
    pub apns: Apns,
    /// Android.
    pub fcm: Fcm,
    /// Windows.
    pub wns: Wns,
    /// Signaling.
    pub signaling: Signaling,
    /// Limits of instances.
    pub limits: Limits,
    /// Times.
    pub timeouts: Timeouts,
    /// Where state is kept.
    pub storage: Storage,
    /// Whose `X-Forwarded-For` is believed.
    pub proxies: Proxies,
    /// Outgoing TLS.
    pub tls: Tls,
    /// Logs.
    pub logging: Logging,
    /// Provider URLs may point at simulators.
    pub allow_test_endpoints: bool,
    /// What stood where, for the next reading to be compared with.
    pub texts: Texts,
    /// What the operator should know, a sentence each. Logged at start and shown by `check-config`.
    pub warnings: Vec<String>,
}

impl Config {
    /// From flags, the environment and the file that one of them names.
    pub fn load(flags: &Flags, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::from_sources(&Sources::open(flags, environment)?)
    }

    /// From sources that were opened before.
    pub fn from_sources(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let allow_test = sources
            .parse(&setting::ALLOW_TEST_ENDPOINTS, value::switch)?
            .unwrap_or_default();
        let tls = Tls::load(sources)?;
        let (listen, admin) = listeners(sources)?;
        let mut config = Self {
            listen,
            admin,
            enrollment: Enrollment::load(sources)?,
            apns: Apns::load(sources, allow_test)?,
            fcm: Fcm::load(sources, allow_test)?,
            wns: Wns::load(sources, allow_test)?,
            signaling: Signaling::load(sources)?,
            limits: Limits::load(sources)?,
            timeouts: Timeouts::load(sources)?,
            storage: Storage::load(sources, &tls)?,
            proxies: Proxies::load(sources)?,
            texts: Texts::read(sources, tls.extra_ca.as_deref())?,
            tls,
            logging: Logging::load(sources)?,
            allow_test_endpoints: allow_test,
            warnings: Vec::new(),
        };
        config.warnings = warnings(&config, sources);
        Ok(config)
    }

    /// Warns of variables that look like settings and are none, of all `names` in the environment.
    pub fn warn_of_unknown(&mut self, names: impl Iterator<Item = String>) {
        self.warnings.extend(source::unknown_variables(names));
    }
}

fn listeners(sources: &Sources<'_>) -> Result<(Listen, Admin), ConfigError> {
    let (listen, admin) = (Listen::load(sources)?, Admin::load(sources)?);
    if listen::collide(listen.address, admin.listen) {
        return Err(ConfigError::SameAddress {
            first: setting::LISTEN.name,
            second: setting::ADMIN_LISTEN.name,
            address: admin.listen,
        });
    }
    Ok((listen, admin))
}

fn warnings(config: &Config, sources: &Sources<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn_if = |condition: bool, text: &str| {
        if condition {
            warnings.push(text.to_owned());
        }
    };
    warn_if(
        config.allow_test_endpoints,
        "RELAY_ALLOW_TEST_ENDPOINTS is on: provider credentials may go to any address; never in production",
    );
    warn_if(
        config.proxies.by_default,
        "RELAY_TRUSTED_PROXIES is not set: X-Forwarded-For is believed from loopback and private addresses; \
         name your proxy, or none",
    );
    warn_if(
        config.listen.public_url.is_none(),
        "RELAY_PUBLIC_URL is not set: peers are sent to the Host that each request names, over ws:// unless a trusted \
         proxy says X-Forwarded-Proto: https",
    );
    warn_if(
        config.enrollment.has_short_secret(),
        "an enrollment secret has less than 32 bytes: whoever enrolls can try to guess it offline",
    );
    warn_if(
        config.enrollment.has_secret_that_can_not_become_previous(),
        "RELAY_ENROLLMENT_SECRET has a comma in it, or whitespace at an end, and so can't stand in \
         RELAY_ENROLLMENT_SECRET_PREVIOUS: the day it is changed, every key signed with it is refused and its instances \
         enroll again",
    );
    warn_if(
        config.storage.redis.is_some() && config.enrollment.secret.is_none(),
        "RELAY_ENROLLMENT_SECRET is not set, and replicas make none of their own: every key is answered not_configured",
    );
    warn_if(
        !config.admin.listen.ip().is_loopback(),
        "RELAY_ADMIN_LISTEN is not a loopback address: /metrics is open to whoever reaches it",
    );
    for name in sources.exposed_secrets() {
        warnings.push(format!(
            "{name} stands on the command line, where every process can read it: use {name}_FILE"
        ));
    }
    warnings.extend(signaling::cut(
        sources,
        &config.signaling.door,
        config.listen.connections,
    ));
    warnings.extend(platforms::warnings(config));
    warnings
}
