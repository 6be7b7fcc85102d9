//! What runs for each fan-out and each turn of the worker finds its rows by an index, however many there are.

use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

use crate::store::{
    devices,
    dialect::Dialect::Sqlite,
    outbox::{lanes::DUE_LANES, sql},
    room, subscriptions, used,
};

#[tokio::test]
async fn no_statement_of_a_fan_out_or_of_the_worker_reads_a_whole_table() {
    let mut connection = tables().await;
    for (statement, index) in [
        (devices::OF_USER.to_owned(), "push_device_tokens_of_user"),
        (devices::PRUNE.to_owned(), "autoindex_push_device_tokens"),
        (
            used::note_use(Sqlite, "push_device_tokens", 3),
            "autoindex_push_device_tokens",
        ),
        (subscriptions::OF_USER.to_owned(), "push_subscriptions_of_user"),
        (subscriptions::PRUNE.to_owned(), "autoindex_push_subscriptions"),
        (sql::claim(Sqlite), "push_outbox_due"),
        (DUE_LANES.to_owned(), "push_outbox_due"),
        (sql::drop_expired(Sqlite), "push_outbox_expiring"),
        (sql::publish(Sqlite), "push_outbox_of_notification"),
        (sql::drop_moved(), "push_outbox_of_notification"),
        (sql::retry(Sqlite, 3), "autoindex_push_outbox"),
        (
            sql::delete_where(Sqlite, "id IN ($1,$2,$3)"),
            "autoindex_push_outbox",
        ),
        (
            sql::delete_where(Sqlite, "target_id IN ($1,$2)"),
            "push_outbox_of_target",
        ),
        (
            sql::delete_where(Sqlite, "tenant_id = $1 AND user_id = $2"),
            "push_outbox_of_user",
        ),
    ] {
        let plan = plan(&mut connection, &statement).await;
        assert!(plan.contains(index), "{statement}\n{plan}");
        assert!(!plan.contains("SCAN push_"), "{statement}\n{plan}");
    }
}

/// A user may have thousands, where the operator allows it, and each of them registers with every start of its app.
#[tokio::test]
async fn a_registration_counts_the_others_in_an_index_and_reads_the_users_rows_at_the_limit_alone() {
    let mut connection = tables().await;
    for (kind, of_user, of_address) in [
        (
            devices::KIND,
            "push_device_tokens_of_user",
            "sqlite_autoindex_push_device_tokens_2 (device_token=?)",
        ),
        (
            subscriptions::KIND,
            "push_subscriptions_of_user",
            "sqlite_autoindex_push_subscriptions_2 (endpoint=?)",
        ),
    ] {
        let count = plan(&mut connection, &room::count_others(kind)).await;
        assert!(
            count.contains(&format!("USING COVERING INDEX {of_user} ")),
            "{count}"
        );
        assert!(count.contains(&format!("USING INDEX {of_address}")), "{count}");
        let drop = plan(&mut connection, &room::drop_unused(kind)).await;
        assert!(drop.contains(&format!("USING INDEX {of_user} ")), "{drop}");
        assert!(
            !format!("{count}\n{drop}").contains("SCAN push_"),
            "{count}\n{drop}"
        );
    }
}

/// As the migrations make them.
async fn tables() -> SqliteConnection {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    for migration in [
        include_str!("../../../migrations/sqlite/0001_push.sql"),
        include_str!("../../../migrations/sqlite/0002_environment.sql"),
    ] {
        sqlx::raw_sql(migration).execute(&mut connection).await.unwrap();
    }
    connection
}

async fn plan(connection: &mut SqliteConnection, statement: &str) -> String {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let rows = sqlx::raw_sql(explain).fetch_all(connection).await.unwrap();
    let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
    steps.join("\n")
}
