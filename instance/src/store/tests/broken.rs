//! SQLite ends a transaction by itself when the disk is full or fails. The library doesn't learn of it and takes the
//! connection to be in that transaction for ever.

use crate::store::testing::{new_device, registered, sqlite};
use crate::user::User;

#[tokio::test]
async fn a_transaction_that_the_database_ended_by_itself_costs_its_connection_and_nothing_after_it() {
    let (_directory, store) = sqlite().await;
    for _ in 0..20 {
        let mut transaction = store.begin().await.unwrap();
        // What a full disk does.
        sqlx::query("ROLLBACK").execute(&mut *transaction).await.unwrap();
        drop(transaction);
    }
    for number in 0..20 {
        let device = new_device(&User::new("ann"), &number.to_string());
        registered(&store, &device, 7).await;
    }
}
