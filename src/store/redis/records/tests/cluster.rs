//! Each script on a real cluster: its keys are in one slot, and it is known to the node that runs it.

use super::*;
use crate::store::redis::{kit::Cluster, link::tests::PATIENCE, url::RedisUrl};

store_contract!(@ on_a_cluster:
    an_invite_serves_one_of_many_enrollments_at_once,
    uses_add_up_and_time_does_not_go_back,
    records_come_in_pages_in_the_order_of_ids,
    a_withdrawal_erases_the_record,
    a_swap_needs_the_entry_it_expected,
    the_operators_word_and_a_running_suspension_outlive_the_record,
    what_has_expired_is_forgotten,
    an_entry_goes_long_after_its_last_secret,
);

async fn link() -> (RedisLink, Cluster) {
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.unwrap();
    let link = RedisLink::open(
        RedisUrl::parse(&cluster.url()).unwrap().patient(),
        "test".to_owned(),
    );
    assert!(link.is_up_within(PATIENCE).await);
    (link, cluster)
}

async fn on_a_cluster() -> (Arc<dyn Store>, (RedisLink, Cluster)) {
    let (link, cluster) = link().await;
    (Arc::new(link.records()), (link, cluster))
}

#[tokio::test]
async fn changes_are_followed_replicas_counted_and_words_kept() {
    let (link, _cluster) = link().await;
    let store = link.records();
    let begin = store.position().await.unwrap();
    store.set_turn(instance(1), Some(true)).await.unwrap();
    let (_, changes) = seen(store.changes_since(&begin).await.unwrap());
    assert_eq!(changes, [Change::Standing(instance(1))]);
    assert_eq!(store.beat("one").await.unwrap().replicas, 1);
    assert_eq!(store.read_words("one").await.unwrap(), 0);
}
