//! From configuration to provider clients, and the threads they live on.

use std::{fmt, io, sync::Arc};

use sovereign_relay_actors::ports::{Clock, Entropy, Providers, PushProvider as _};
use sovereign_relay_protocol::platform::Environment;
use tracing::{error, info};
use url::Url;

use super::provider_runtime::ProviderRuntime;
use crate::{
    config::{Apns, Config},
    provider::{
        ClientError,
        apns::{ApnsConfig, ApnsConfigError, ApnsKey, ApnsProvider, Topics, Tuning},
        fcm::{FcmConfig, FcmError, FcmProvider},
        transport::{Endpoint, TlsError, Transport},
        wns::{WnsConfig, WnsProvider},
    },
};

/// A provider client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The roots of trust.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// APNs.
    #[error(transparent)]
    Apns(#[from] ApnsConfigError),
    /// FCM.
    #[error(transparent)]
    Fcm(#[from] FcmError),
    /// WNS.
    #[error(transparent)]
    Wns(#[from] ClientError),
}

/// A thread each.
pub(super) struct Runtimes {
    pub(super) apns_production: ProviderRuntime,
    pub(super) apns_sandbox: ProviderRuntime,
    pub(super) fcm: ProviderRuntime,
    pub(super) wns: ProviderRuntime,
}

impl Runtimes {
    pub(super) fn start() -> io::Result<Self> {
        Ok(Self {
            apns_production: ProviderRuntime::start("apns-production")?,
            apns_sandbox: ProviderRuntime::start("apns-sandbox")?,
            fcm: ProviderRuntime::start("fcm")?,
            wns: ProviderRuntime::start("wns")?,
        })
    }

    pub(super) async fn stop(self) {
        futures_util::join!(
            self.apns_production.stop(),
            self.apns_sandbox.stop(),
            self.fcm.stop(),
            self.wns.stop()
        );
    }
}

/// The providers, and the clients behind them.
pub(super) struct Built {
    pub(super) providers: Providers,
    /// `None`: the caller brought providers along; it reloads and ends them itself.
    clients: Option<Clients>,
}

impl Built {
    /// Providers that the caller brought along.
    pub(super) fn brought(providers: Providers) -> Self {
        Self {
            providers,
            clients: None,
        }
    }

    /// Clients by configuration.
    pub(super) fn configured(
        config: &Config,
        runtimes: &Runtimes,
        clock: &Arc<dyn Clock>,
        entropy: &Arc<dyn Entropy>,
    ) -> Result<Self, ProviderError> {
        let clients = Clients::new(config, runtimes, clock, entropy)?;
        Ok(Self {
            providers: clients.providers(),
            clients: Some(clients),
        })
    }

    /// Takes over new credentials. `false`: some were refused, and the old ones stay.
    pub(super) fn reload(&mut self, wanted: &Config) -> bool {
        self.clients.as_mut().is_none_or(|clients| clients.reload(wanted))
    }

    /// Ends all connections.
    pub(super) async fn close(self) {
        if let Some(clients) = self.clients {
            clients.close().await;
        }
    }
}

/// A client each. One without credentials is made too: it has no scope, which answers `platform_not_configured`.
struct Clients {
    apns_production: Apple,
    apns_sandbox: Apple,
    fcm: Arc<FcmProvider>,
    wns: Arc<WnsProvider>,
    /// What they work by.
    config: Config,
}

impl Clients {
    fn new(
        config: &Config,
        runtimes: &Runtimes,
        clock: &Arc<dyn Clock>,
        entropy: &Arc<dyn Entropy>,
    ) -> Result<Self, ProviderError> {
        let transport = Transport::new(config.tls.extra_ca.as_deref())?;
        let apns = |environment, runtime: &ProviderRuntime| {
            let wanted = apns_config(config, environment);
            let ports = (clock.clone(), entropy.clone());
            let client = ApnsProvider::new(wanted, transport.clone(), ports.0, ports.1, runtime.handle());
            client.map(|client| Apple {
                client,
                environment,
                applied: config.apns.clone(),
            })
        };
        let ports = || (clock.clone(), entropy.clone());
        Ok(Self {
            apns_production: apns(Environment::Production, &runtimes.apns_production)?,
            apns_sandbox: apns(Environment::Sandbox, &runtimes.apns_sandbox)?,
            fcm: Arc::new(FcmProvider::new(
                fcm_config(config),
                ports(),
                runtimes.fcm.handle(),
            )?),
            wns: Arc::new(WnsProvider::new(
                wns_config(config),
                ports(),
                runtimes.wns.handle(),
            )?),
            config: config.clone(),
        })
    }

    fn providers(&self) -> Providers {
        Providers {
            apns_production: Arc::new(self.apns_production.client.clone()),
            apns_sandbox: Arc::new(self.apns_sandbox.client.clone()),
            fcm: self.fcm.clone(),
            wns: self.wns.clone(),
            default_environment: self.config.apns.default_environment,
            channel_rule: self.config.wns.channel_rule.clone(),
        }
    }

    /// Each provider by itself: one whose credentials are as before keeps its connections and what its guard has
    /// learned, and one whose new credentials are no good keeps the old.
    fn reload(&mut self, wanted: &Config) -> bool {
        let mut next = self.config.clone();
        next.apns.take_credentials(&wanted.apns);
        let apns = [&mut self.apns_production, &mut self.apns_sandbox].map(|apple| apple.reload(&next));
        next.fcm.account.clone_from(&wanted.fcm.account);
        let fcm = next.fcm == self.config.fcm || told("fcm", self.fcm.reload(fcm_config(&next)));
        if fcm {
            self.config.fcm = next.fcm.clone();
        }
        next.wns.take_credentials(&wanted.wns);
        let wns = next.wns == self.config.wns || told("wns", self.wns.reload(wns_config(&next)));
        if wns {
            self.config.wns = next.wns;
        }
        apns == [true; 2] && fcm && wns
    }

    async fn close(self) {
        self.apns_production.client.close().await;
        self.apns_sandbox.client.close().await;
        self.fcm.close();
        self.wns.close();
    }
}

/// One environment of APNs.
struct Apple {
    client: ApnsProvider,
    environment: Environment,
    /// What it works by.
    applied: Apns,
}

impl Apple {
    fn reload(&mut self, next: &Config) -> bool {
        if self.applied.has_credentials_of(&next.apns, self.environment) {
            return true;
        }
        let wanted = apns_config(next, self.environment);
        let is_taken = told(self.client.name(), self.client.reload(wanted));
        if is_taken {
            self.applied = next.apns.clone();
        }
        is_taken
    }
}

/// Logs what came of one provider's reload, and says whether it worked.
fn told<E: fmt::Display>(provider: &'static str, reloaded: Result<(), E>) -> bool {
    match reloaded {
        Ok(()) => info!(provider, "credentials reloaded"),
        Err(ref error) => error!(provider, %error, "new credentials are no good, the old ones stay"),
    }
    reloaded.is_ok()
}

fn apns_config(config: &Config, environment: Environment) -> ApnsConfig {
    let key = config
        .apns
        .key(environment)
        .as_ref()
        .ok()
        .map(|credential| ApnsKey {
            pem: credential.key_pem.expose().into(),
            key_id: credential.key_id.clone(),
            team_id: credential.team_id.clone(),
        });
    ApnsConfig {
        environment,
        endpoint: endpoint(config.apns.endpoint(environment)),
        key,
        topics: Topics {
            ios: config.apns.ios_topic.clone(),
            macos: config.apns.macos_topic.clone(),
        },
        titles: config.apns.titles.clone(),
        tuning: Tuning::default(),
    }
}

fn fcm_config(config: &Config) -> FcmConfig {
    FcmConfig {
        account: config.fcm.account.as_ref().ok().cloned(),
        endpoint: config.fcm.endpoint.clone(),
        extra_ca: config.tls.extra_ca.clone(),
    }
}

fn wns_config(config: &Config) -> WnsConfig {
    WnsConfig {
        credential: config.wns.credential.as_ref().ok().cloned(),
        token_endpoint: config.wns.token_endpoint.clone(),
        extra_ca: config.tls.extra_ca.clone(),
        allow_test_endpoints: config.allow_test_endpoints,
    }
}

/// A URL that the configuration has checked to be scheme, host and port alone.
fn endpoint(url: &Url) -> Endpoint {
    let host = url.host_str().unwrap_or_default();
    Endpoint {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: url.port_or_known_default().unwrap_or(443),
        tls: url.scheme() == "https",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_keeps_host_port_and_scheme() {
        let of = |text: &str| endpoint(&text.parse().unwrap());
        let expected = |host: &str, port, tls| Endpoint {
            host: host.to_owned(),
            port,
            tls,
        };
        assert_eq!(
            of("https://api.push.apple.com"),
            expected("api.push.apple.com", 443, true)
        );
        assert_eq!(of("https://127.0.0.1:2197"), expected("127.0.0.1", 2197, true));
        assert_eq!(of("http://[::1]:8080"), expected("::1", 8080, false));
    }
}
