//! From configuration to provider clients, and the threads they live on.

use std::{io, sync::Arc};

use sovereign_relay_actors::ports::{Clock, Entropy, Providers};
use sovereign_relay_protocol::platform::Environment;
use url::Url;

use super::provider_runtime::ProviderRuntime;
use crate::{
    config::Config,
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

/// The clients, and how to end them.
pub(super) struct Built {
    pub(super) providers: Providers,
    apns: Vec<ApnsProvider>,
    fcm: Option<Arc<FcmProvider>>,
    wns: Option<Arc<WnsProvider>>,
}

impl Built {
    /// Clients that the caller brought along; it ends them itself.
    pub(super) fn brought(providers: Providers) -> Self {
        Self {
            providers,
            apns: Vec::new(),
            fcm: None,
            wns: None,
        }
    }

    /// Clients by configuration. One without credentials is made too: it has no scope, which answers
    /// `platform_not_configured`.
    pub(super) fn configured(
        config: &Config,
        runtimes: &Runtimes,
        clock: &Arc<dyn Clock>,
        entropy: &Arc<dyn Entropy>,
    ) -> Result<Self, ProviderError> {
        let transport = Transport::new(config.tls.extra_ca.as_deref())?;
        let apns = |environment, runtime: &ProviderRuntime| {
            let wanted = apns_config(config, environment);
            ApnsProvider::new(
                wanted,
                transport.clone(),
                clock.clone(),
                entropy.clone(),
                runtime.handle(),
            )
        };
        let production = apns(Environment::Production, &runtimes.apns_production)?;
        let sandbox = apns(Environment::Sandbox, &runtimes.apns_sandbox)?;
        let ports = || (clock.clone(), entropy.clone());
        let fcm = Arc::new(FcmProvider::new(
            fcm_config(config),
            ports(),
            runtimes.fcm.handle(),
        )?);
        let wns = Arc::new(WnsProvider::new(
            wns_config(config),
            ports(),
            runtimes.wns.handle(),
        )?);
        let providers = Providers {
            apns_production: Arc::new(production.clone()),
            apns_sandbox: Arc::new(sandbox.clone()),
            fcm: fcm.clone(),
            wns: wns.clone(),
            default_environment: config.apns.default_environment,
            channel_rule: config.wns.channel_rule.clone(),
        };
        Ok(Self {
            providers,
            apns: vec![production, sandbox],
            fcm: Some(fcm),
            wns: Some(wns),
        })
    }

    /// Ends all connections.
    pub(super) async fn close(self) {
        for apns in self.apns {
            apns.close().await;
        }
        if let Some(fcm) = self.fcm {
            fcm.close();
        }
        if let Some(wns) = self.wns {
            wns.close();
        }
    }
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
