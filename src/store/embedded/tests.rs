use std::{fs, path::PathBuf};

use redb::Database;
use sovereign_relay_actors::idempotency::Remembered;
use sovereign_relay_protocol::{
    push::{PushAnswer, Reason},
    redacted::Redacted,
};
use tempfile::TempDir;

use super::{
    tables::{GROUPS, META, SCHEMA, SCHEMA_VERSION},
    *,
};
use crate::store::{
    contract::store_contract,
    revocation::{Cause, Gone, State},
};

mod crash;
mod full_disk;
mod secrets;

store_contract!(ready);

async fn ready() -> (Arc<dyn Store>, TempDir) {
    fresh()
}

fn fresh() -> (Arc<dyn Store>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Arc::new(open(&directory).unwrap()), directory)
}

fn open(directory: &TempDir) -> Result<EmbeddedStore, OpenError> {
    EmbeddedStore::open(DataDir::open(directory.path())?)
}

fn file(directory: &TempDir) -> PathBuf {
    directory.path().join(DATABASE)
}

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn revoked() -> Entry {
    Entry {
        kids: vec![Kid([1; 6])],
        state: State::Gone(Gone {
            at: UnixMillis(1),
            cause: Cause::Revoked,
        }),
    }
}

fn enrollment(number: u8) -> NewEnrollment {
    NewEnrollment {
        instance: instance(number),
        name: Some(Redacted::new("Home")),
        contact: None,
        at: UnixMillis(1000),
        address: 1,
        fresh_group: 2,
        invite: None,
    }
}

#[test]
fn the_verification_at_the_start_is_told_once() {
    let (store, directory) = fresh();
    drop(store);
    let log = tempfile::NamedTempFile::new().unwrap();
    let lines = tracing_subscriber::fmt()
        .with_writer(Arc::new(log.reopen().unwrap()))
        .finish();
    tracing::subscriber::with_default(lines, || open(&directory).map(drop)).unwrap();
    let told = fs::read_to_string(log.path()).unwrap();
    assert_eq!(told.matches("the store is being verified").count(), 1, "{told}");
}

#[tokio::test]
async fn groups_that_lapsed_while_the_node_was_down_are_all_forgotten_at_its_start_and_later_ones_step_by_step()
 {
    const MANY: u64 = 60_000;
    let directory = tempfile::tempdir().unwrap();
    let with_groups = async |store: &EmbeddedStore| {
        let insert = |transaction: &WriteTransaction| {
            let mut groups = transaction.open_table(GROUPS)?;
            for address in 0..MANY {
                groups.insert(address, (1, 1000))?;
            }
            Ok(())
        };
        store.write(insert).await.unwrap();
    };
    let store = open(&directory).unwrap();
    with_groups(&store).await;
    drop(store);
    let store = open(&directory).unwrap();
    let forgotten = async || store.purge(UnixMillis(1000), vec![]).await.unwrap().groups as u64;
    assert_eq!(forgotten().await, MANY);
    with_groups(&store).await;
    let (first, second) = (forgotten().await, forgotten().await);
    assert!(first < MANY && second < MANY, "{first}, {second}");
    assert_eq!(first + second, MANY);
}

#[tokio::test]
async fn everything_is_there_after_a_restart_counters_too() {
    let (store, directory) = fresh();
    store.enroll(enrollment(1)).await.unwrap();
    store.set_limit(instance(1), Some(60)).await.unwrap();
    store
        .join_revocations(vec![(instance(2), revoked())], false)
        .await
        .unwrap();
    store.note_use(instance(1), 5, UnixMillis(2000)).await.unwrap();
    let before = store.record(instance(1)).await.unwrap();
    drop(store);
    let store = open(&directory).unwrap();
    assert_eq!(store.record(instance(1)).await.unwrap(), before);
    assert_eq!(before.unwrap().sent, 5);
    assert_eq!(store.revocations().await.unwrap(), [(instance(2), revoked())]);
}

#[tokio::test]
async fn one_directory_serves_one_process() {
    let (store, directory) = fresh();
    assert!(matches!(open(&directory), Err(OpenError::Locked(_))));
    drop(store);
    assert!(open(&directory).is_ok());
}

#[tokio::test]
async fn a_database_that_something_else_holds_is_called_locked() {
    let (store, directory) = fresh();
    drop(store);
    let _other = Database::open(file(&directory)).unwrap();
    assert!(matches!(open(&directory), Err(OpenError::Locked(_))));
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_the_database() {
    use std::os::unix::fs::PermissionsExt;

    let (store, directory) = fresh();
    let mode = || fs::metadata(file(&directory)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    drop(store);
    fs::set_permissions(file(&directory), fs::Permissions::from_mode(0o644)).unwrap();
    let _store = open(&directory).unwrap();
    assert_eq!(mode(), 0o600);
}

#[tokio::test]
async fn a_newer_schema_stops_the_start_and_is_left_alone() {
    let (store, directory) = fresh();
    drop(store);
    let database = Database::open(file(&directory)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(META)
        .unwrap()
        .insert(SCHEMA, SCHEMA_VERSION + 1)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let refused = open(&directory).err().unwrap();
    assert!(
        matches!(
            refused,
            OpenError::Newer {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{refused}"
    );
    assert!(refused.to_string().contains("start the newer relay again"));
}

#[tokio::test]
async fn what_is_no_database_of_ours_stops_the_start_with_a_clear_error() {
    let (store, directory) = fresh();
    drop(store);
    let whole = fs::read(file(&directory)).unwrap();
    let wrong = [
        Vec::new(),
        b"text".to_vec(),
        vec![0; whole.len()],
        whole[..whole.len() / 2].to_vec(),
    ];
    for bytes in wrong {
        fs::write(file(&directory), &bytes).unwrap();
        let refused = open(&directory)
            .err()
            .unwrap_or_else(|| panic!("{} bytes were opened", bytes.len()));
        assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
        assert!(
            refused.to_string().contains("restore it from a backup"),
            "{refused}"
        );
        assert_eq!(
            fs::read(file(&directory)).unwrap().len(),
            bytes.len(),
            "the evidence is left alone"
        );
    }
}

#[tokio::test]
async fn a_byte_altered_anywhere_is_noticed_at_start_or_changes_nothing() {
    let (store, directory) = fresh();
    for number in 0..60 {
        store.enroll(enrollment(number)).await.unwrap();
        store
            .join_revocations(vec![(instance(number), revoked())], false)
            .await
            .unwrap();
    }
    let (records, entries) = (
        store.records(None, 100).await.unwrap(),
        store.revocations().await.unwrap(),
    );
    drop(store);
    let whole = fs::read(file(&directory)).unwrap();
    let mut noticed = 0;
    for at in (0..whole.len()).step_by(whole.len() / 150) {
        let mut altered = whole.clone();
        altered[at] ^= 0x55;
        fs::write(file(&directory), &altered).unwrap();
        let Ok(store) = open(&directory) else {
            noticed += 1;
            continue;
        };
        assert_eq!(store.records(None, 100).await.unwrap(), records, "byte {at}");
        assert_eq!(store.revocations().await.unwrap(), entries, "byte {at}");
    }
    assert!(noticed > 0);
}

#[tokio::test]
async fn a_half_made_database_of_a_crashed_first_start_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(file(&directory).with_extension("new"), b"half").unwrap();
    let store = open(&directory).unwrap();
    store.enroll(enrollment(1)).await.unwrap();
    assert!(!file(&directory).with_extension("new").exists());
}

#[tokio::test]
async fn one_unreadable_value_fails_its_own_caller_only() {
    let (_, directory) = fresh();
    spoil_record(&directory, instance(1));
    let store = open(&directory).unwrap();
    let all = (1..=40).map(|number| store.set_limit(instance(number), Some(7)));
    let outcomes = futures_util::future::join_all(all).await;
    let failed: Vec<usize> = (0..40).filter(|at| outcomes[*at].is_err()).collect();
    assert_eq!(failed, [0]);
    assert!(store.record(instance(1)).await.is_err());
    store.purge(UnixMillis(u64::MAX), vec![]).await.unwrap();
    assert_eq!(
        store.record(instance(2)).await.unwrap().unwrap().per_minute,
        Some(7)
    );
    assert!(store.fault().is_none(), "the store itself works");
}

fn spoil_record(directory: &TempDir, instance: InstanceId) {
    let database = Database::open(file(directory)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(tables::RECORDS)
        .unwrap()
        .insert(instance.as_bytes(), b"{".as_slice())
        .unwrap();
    transaction.commit().unwrap();
}

#[tokio::test]
async fn many_writes_at_once_are_all_answered_and_all_there() {
    let (store, directory) = fresh();
    let all = (0..3000_u32).map(|number| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        store.join_revocations(vec![(InstanceId::from_bytes(id), revoked())], false)
    });
    assert!(
        futures_util::future::join_all(all)
            .await
            .iter()
            .all(Result::is_ok)
    );
    drop(store);
    assert_eq!(open(&directory).unwrap().revocations().await.unwrap().len(), 3000);
}

#[tokio::test]
async fn a_write_begun_before_the_store_is_dropped_is_finished_and_a_later_one_refused() {
    let (store, directory) = fresh();
    let begun = store.set_limit(instance(1), Some(7));
    let mut begun = std::pin::pin!(begun);
    assert!(futures_util::poll!(begun.as_mut()).is_pending());
    let late = store.set_limit(instance(2), Some(7));
    drop(store);
    begun.await.unwrap();
    assert!(late.await.is_err());
    let store = open(&directory).unwrap();
    assert_eq!(
        store.record(instance(1)).await.unwrap().unwrap().per_minute,
        Some(7)
    );
}

#[tokio::test]
async fn outcomes_are_kept_until_they_end_and_replaced_by_the_next_stops() {
    let outcome = |key: u128, until: u64| KeptOutcome {
        key,
        until: UnixMillis(until),
        outcome: Remembered {
            message: u128::MAX - key,
            answer: PushAnswer::invalid_token(Reason::Unregistered, UnixMillis(1_700_000_000_000)),
        },
    };
    let (_, directory) = fresh();
    let store = open(&directory).unwrap();
    assert_eq!(store.kept_outcomes().await.unwrap(), []);
    store.keep_outcomes(vec![outcome(9, 9)]).await.unwrap();
    store
        .keep_outcomes(vec![outcome(1, 1000), outcome(2, 2000)])
        .await
        .unwrap();
    drop(store);
    let store = open(&directory).unwrap();
    assert_eq!(
        store.kept_outcomes().await.unwrap(),
        [outcome(1, 1000), outcome(2, 2000)]
    );
    store.purge(UnixMillis(1000), Vec::new()).await.unwrap();
    assert_eq!(store.kept_outcomes().await.unwrap(), [outcome(2, 2000)]);
}
