//! Sentinels, and whom they name.
//!
//! A superseded master goes on as if nothing had happened until a Sentinel tells it, ten seconds and more: it takes
//! writes, which are lost, and publishes to itself, so that nothing falls silent. So whoever is connected asks again
//! each second. <https://redis.io/docs/latest/develop/reference/sentinel-clients/>

use std::time::Duration;

use redis::{
    Client, ConnectionAddr, ProtocolVersion, RedisConnectionInfo, RedisResult, TlsCertificates, TlsMode,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use sovereign_relay_protocol::redacted::Redacted;
use tokio::time::{sleep, timeout};

use super::url::tcp;

/// Between two questions, and how long one may take.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Where to ask for which master.
#[derive(Clone)]
pub(super) struct Sentinels {
    /// Any of them.
    pub(super) places: Vec<ConnectionAddr>,
    /// The name under which they watch it.
    pub(super) master: String,
    /// How to speak to it.
    pub(super) settings: RedisConnectionInfo,
    /// How to speak to Sentinels.
    pub(super) login: Login,
    /// Whether by TLS, to all.
    pub(super) tls: bool,
}

/// What Sentinels want to hear first: nothing, a password (`requirepass`), or both.
#[derive(Clone, Default)]
pub(super) struct Login {
    pub(super) username: Option<Redacted>,
    pub(super) password: Option<Redacted>,
}

impl Sentinels {
    /// The master now, which says so itself. `certificates`: what to trust instead of the system's roots.
    pub(super) async fn master(&self, certificates: Option<TlsCertificates>) -> RedisResult<Client> {
        self.asking(certificates)?.async_get_client().await
    }

    /// Waits until another than this is the master.
    pub(super) async fn until_another_than(
        &self,
        master: &ConnectionAddr,
        certificates: Option<TlsCertificates>,
    ) {
        loop {
            sleep(ASK_AGAIN).await;
            // Without an answer the old one may still be right.
            if let Ok(Ok(client)) = timeout(ASK_AGAIN, self.master(certificates.clone())).await
                && client.get_connection_info().addr() != master
            {
                return;
            }
        }
    }

    fn asking(&self, certificates: Option<TlsCertificates>) -> RedisResult<SentinelClient> {
        let builder =
            SentinelClientBuilder::new(self.places.clone(), &self.master, SentinelServerType::Master)?
                .set_client_to_redis_protocol(ProtocolVersion::RESP3)
                .set_client_to_redis_db(self.settings.db())
                .set_client_to_redis_tcp_settings(tcp());
        let mut builder = self.logging_in(builder);
        if self.tls {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(certificates) = certificates {
            builder = builder
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates);
        }
        builder.build()
    }

    fn logging_in(&self, mut builder: SentinelClientBuilder) -> SentinelClientBuilder {
        if let Some(username) = self.settings.username() {
            builder = builder.set_client_to_redis_username(username);
        }
        if let Some(password) = self.settings.password() {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(username) = &self.login.username {
            builder = builder.set_client_to_sentinel_username(username.expose());
        }
        if let Some(password) = &self.login.password {
            builder = builder.set_client_to_sentinel_password(password.expose());
        }
        builder
    }
}
