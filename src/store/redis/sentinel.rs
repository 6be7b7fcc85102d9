//! Sentinels, and whom they name.
//!
//! A superseded master goes on as if nothing had happened until a Sentinel tells it, ten seconds and more: it takes
//! writes, which are lost, and publishes to itself, so that nothing falls silent. So whoever is connected asks again
//! each second. <https://redis.io/docs/latest/develop/reference/sentinel-clients/>

use std::time::Duration;

use redis::{
    Client, ConnectionAddr, ProtocolVersion, RedisConnectionInfo, RedisResult, TlsMode,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
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
    /// Whether by TLS, to all.
    pub(super) tls: bool,
}

impl Sentinels {
    /// The master now, which says so itself.
    pub(super) async fn master(&self) -> RedisResult<Client> {
        self.asking()?.async_get_client().await
    }

    /// Waits until another than this is the master.
    pub(super) async fn until_another_than(&self, master: &ConnectionAddr) {
        loop {
            sleep(ASK_AGAIN).await;
            // Without an answer the old one may still be right.
            if let Ok(Ok(client)) = timeout(ASK_AGAIN, self.master()).await
                && client.get_connection_info().addr() != master
            {
                return;
            }
        }
    }

    fn asking(&self) -> RedisResult<SentinelClient> {
        let mut builder =
            SentinelClientBuilder::new(self.places.clone(), &self.master, SentinelServerType::Master)?
                .set_client_to_redis_protocol(ProtocolVersion::RESP3)
                .set_client_to_redis_db(self.settings.db())
                .set_client_to_redis_tcp_settings(tcp());
        if let Some(username) = self.settings.username() {
            builder = builder.set_client_to_redis_username(username);
        }
        if let Some(password) = self.settings.password() {
            builder = builder.set_client_to_redis_password(password);
        }
        if self.tls {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        builder.build()
    }
}
