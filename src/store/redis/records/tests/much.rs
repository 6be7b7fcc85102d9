//! A log that is longer than one read.

use super::*;

#[tokio::test]
async fn more_changes_than_one_read_gives_come_in_parts() {
    let (store, _guard) = open().await;
    let begin = store.position().await.unwrap();
    let entries: Vec<_> = (0..2500_u32)
        .map(|number| {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&number.to_be_bytes());
            (InstanceId::from_bytes(id), gone(1))
        })
        .collect();
    store.join_revocations(entries.clone(), false).await.unwrap();
    let (mut position, mut heard) = (begin, Vec::new());
    loop {
        let (next, changes) = seen(store.changes_since(&position).await.unwrap());
        if changes.is_empty() {
            break;
        }
        position = next;
        heard.extend(changes);
    }
    let expected: Vec<_> = entries
        .into_iter()
        .map(|(instance, entry)| Change::Revoked(instance, entry))
        .collect();
    assert_eq!(heard, expected);
}

#[tokio::test]
async fn what_is_not_understood_hides_nothing_that_comes_after_it_however_much_it_is() {
    let (store, (_server, wired)) = open().await;
    let begin = store.position().await.unwrap();
    for _ in 0..2500 {
        let mut add = redis::cmd("XADD");
        add.arg(store.keys.changes())
            .arg("*")
            .arg("of a newer relay")
            .arg("");
        let _: String = wired.redis().send(&add).await.unwrap();
    }
    let (end, changes) = seen(store.changes_since(&begin).await.unwrap());
    assert_eq!((changes, &end), (vec![], &store.position().await.unwrap()));
    store.set_limit(instance(1), Some(60)).await.unwrap();
    let (_, changes) = seen(store.changes_since(&begin).await.unwrap());
    assert_eq!(changes, [Change::Standing(instance(1))]);
}
