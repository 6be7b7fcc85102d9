//! A Valkey in Redis' place, in every run of the tests. The kit says how to run all others with it.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_a_valkey_as_they_share_a_redis() {
    let valkey = Server::start_program("valkey-server");
    assert!(valkey.answer(&["INFO", "server"]).contains("server_name:valkey"));
    let replicas = Replicas::of(&valkey.url()).await;
    replicas.talk_while(async |_| {}).await;
}
