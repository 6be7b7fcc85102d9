//! Which platforms can be pushed to, what the others lack, and what looks like a mistake.
//!
//! For `check-config` and the warnings at the start. A running relay asks its providers instead, which say the same.

use sovereign_relay_protocol::platform::{Environment, Platform};

use super::{Config, Off, setting};

impl Config {
    /// Whether a push to a platform that names no environment finds credentials; if not, why.
    pub fn platform(&self, platform: Platform) -> Result<(), Off> {
        self.platform_in(platform, self.apns.default_environment)
    }

    /// The same of a push that names an environment. Only Apple has two.
    pub fn platform_in(&self, platform: Platform, environment: Environment) -> Result<(), Off> {
        let (topic, setting) = match platform {
            Platform::Android => return self.fcm.account.as_ref().map(drop).map_err(Clone::clone),
            Platform::Windows => return self.wns.credential.as_ref().map(drop).map_err(Clone::clone),
            Platform::Ios => (&self.apns.ios_topic, &setting::APNS_BUNDLE_ID),
            Platform::Macos => (&self.apns.macos_topic, &setting::APNS_BUNDLE_ID_MACOS),
        };
        match (self.apns.key(environment), topic) {
            (Ok(_), Some(_)) => Ok(()),
            (Err(off), Some(_)) => Err(off.clone()),
            (Ok(_), None) => Err(Off::lacking(&[(setting, false)])),
            (Err(off), None) => Err(off.clone().and(setting)),
        }
    }
}

/// Platforms, and a TURN server, that somebody began to configure.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let others = [
        ("android", config.fcm.account.as_ref().err()),
        ("windows", config.wns.credential.as_ref().err()),
        ("TURN", config.signaling.turn.as_ref().err()),
    ];
    let begun = others
        .into_iter()
        .filter_map(|(name, off)| Some((name, off?)))
        .filter(|(_, off)| off.is_partial())
        .map(|(name, off)| is_off(name, off));
    of_apple(config).into_iter().chain(begun).collect()
}

/// Apple apps without a key, a key without an app, and a key for that environment alone which pushes have to name.
fn of_apple(config: &Config) -> Vec<String> {
    let apns = &config.apns;
    let has_topic = apns.ios_topic.is_some() || apns.macos_topic.is_some();
    if let (Err(production), Err(sandbox)) = (&apns.production_key, &apns.sandbox_key)
        && production == sandbox
    {
        let begun = production.is_partial() || has_topic;
        return begun.then(|| is_off("APNs", production)).into_iter().collect();
    }
    let environments = [
        (Environment::Production, "APNs production"),
        (Environment::Sandbox, "the APNs sandbox"),
    ];
    let keys = environments.into_iter().filter_map(|(environment, name)| {
        let off = apns.key(environment).as_ref().err()?;
        match apns.only_by_name() {
            Some(named) => Some(only_by_name(environment, off, named)),
            None => off.is_partial().then(|| is_off(name, off)),
        }
    });
    let app = (!has_topic).then(|| is_off("APNs", &Off::lacking(&[(&setting::APNS_BUNDLE_ID, false)])));
    keys.chain(app).collect()
}

/// An operator who gave one key expects pushes to go out with it.
fn only_by_name(default: Environment, off: &Off, named: Environment) -> String {
    format!(
        "Apple pushes that name no environment are refused: they are for {}, where {off}; APNS_USE_SANDBOX={} sends them \
         to {}, which has a key",
        default.as_str(),
        named == Environment::Sandbox,
        named.as_str(),
    )
}

fn is_off(name: &str, off: &Off) -> String {
    format!("{name} is off: {off}")
}
