//! PostgreSQL's writers wait for each other's rows, in one order of the rows, so that no two wait for ever.

use std::{pin::Pin, time::Duration};

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _};
use tokio::time::{interval, timeout};
use uuid::Uuid;

use crate::{
    store::{
        Device, OutboxRow, Settled, Store, StoreError,
        testing::{Place, new_device, postgres::Server, registered, waiting},
    },
    user::User,
};

const DEADLINE: Duration = Duration::from_secs(60);
const NOTIFICATION: Uuid = Uuid::from_u128(7);

type Work = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

#[tokio::test]
async fn no_two_writers_wait_for_each_other() {
    let server = Server::start();
    let place = async |name| Place::open(server.database(name).await).await;
    a_publication_and_whoever_drops_its_rows(place("publication").await).await;
    a_settlement_and_whoever_drops_its_rows(place("settlement").await).await;
    the_end_of_a_user_and_a_registration(place("end").await).await;
}

async fn a_publication_and_whoever_drops_its_rows(place: Place) {
    let mut rows = rows(&device(&place).await);
    place.store.stage(9, &mut rows, 100).await.unwrap();
    let publish = |store: Store| async move { store.publish(NOTIFICATION, 150).await.map(|_| ()) };
    let publication = Box::pin(publish(place.store.clone()));
    meet(place, [outbox_row(1), outbox_row(2)], publication).await;
}

async fn a_settlement_and_whoever_drops_its_rows(place: Place) {
    let rows = rows(&device(&place).await);
    place.store.enqueue(&rows).await.unwrap();
    let [two, one] = rows.map(|row| row.claim());
    let again = Settled::Retry {
        at: 200,
        forgotten: false,
    };
    let store = place.store.clone();
    let settlement = async move { store.settle(&[(two, Settled::Done), (one, again)], &[]).await };
    meet(place, [outbox_row(1), outbox_row(2)], Box::pin(settlement)).await;
}

async fn the_end_of_a_user_and_a_registration(place: Place) {
    let device = device(&place).await;
    place.store.enqueue(&rows(&device)).await.unwrap();
    let store = place.store.clone();
    let end = async move { store.forget_user(&device.user).await };
    meet(
        place,
        [
            format!("push_device_tokens WHERE id = '{}'", device.id),
            outbox_row(1),
        ],
        Box::pin(end),
    )
    .await;
}

async fn device(place: &Place) -> Device {
    registered(&place.store, &new_device(&User::new("ann"), "token"), 50).await
}

/// A table is read as it was written: the later one first.
fn rows(device: &Device) -> [OutboxRow; 2] {
    [2, 1].map(|number| OutboxRow {
        id: Uuid::from_u128(number),
        notification_id: NOTIFICATION,
        ..waiting(device, 100)
    })
}

fn outbox_row(number: u128) -> String {
    format!("push_outbox WHERE id = '{}'", Uuid::from_u128(number))
}

/// Another writer has the first row when `work` begins, and takes the second when `work` waits.
async fn meet(place: Place, [first, second]: [String; 2], work: Work) {
    let lock = |row: &str| AssertSqlSafe(format!("SELECT id FROM {row} FOR UPDATE"));
    let mut other = AnyConnection::connect(&place.url).await.unwrap();
    let mut locking = other.begin().await.unwrap();
    locking.execute(lock(&first)).await.unwrap();
    let work = tokio::spawn(work);
    somebody_waits(&place).await;
    locking.execute(lock(&second)).await.unwrap();
    locking.commit().await.unwrap();
    timeout(DEADLINE, work).await.unwrap().unwrap().unwrap();
    other.close().await.unwrap();
    place.store.close().await;
}

/// Returns when a statement waits for a row that another has locked, which lasts until that one ends.
async fn somebody_waits(place: &Place) {
    let count = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let looks = async {
        let mut looks = interval(Duration::from_millis(5));
        loop {
            looks.tick().await;
            let waiting = sqlx::query_scalar(count).fetch_one(&place.store.pool).await;
            if waiting.is_ok_and(|waiting: i64| waiting > 0) {
                return;
            }
        }
    };
    timeout(DEADLINE, looks).await.unwrap();
}
