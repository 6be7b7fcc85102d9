//! What runs for each fan-out and each turn of the worker finds its rows by an index, however many there are.

use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

use crate::store::{
    devices,
    dialect::Dialect::Sqlite,
    outbox::{lanes::DUE_LANES, sql},
    subscriptions, used,
};

#[tokio::test]
async fn no_statement_of_a_fan_out_or_of_the_worker_reads_a_whole_table() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    sqlx::raw_sql(include_str!("../../../migrations/sqlite/0001_push.sql"))
        .execute(&mut connection)
        .await
        .unwrap();
    for (statement, index) in [
        (devices::OF_USER.to_owned(), "push_device_tokens_of_user"),
        (devices::COUNT_OTHERS.to_owned(), "push_device_tokens_of_user"),
        (devices::PRUNE.to_owned(), "autoindex_push_device_tokens"),
        (
            used::note_use(Sqlite, "push_device_tokens", 3),
            "autoindex_push_device_tokens",
        ),
        (subscriptions::OF_USER.to_owned(), "push_subscriptions_of_user"),
        (
            subscriptions::COUNT_OTHERS.to_owned(),
            "push_subscriptions_of_user",
        ),
        (subscriptions::PRUNE.to_owned(), "autoindex_push_subscriptions"),
        (sql::claim(Sqlite), "push_outbox_due"),
        (DUE_LANES.to_owned(), "push_outbox_due"),
        (sql::drop_expired(Sqlite), "push_outbox_expiring"),
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

async fn plan(connection: &mut SqliteConnection, statement: &str) -> String {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let rows = sqlx::raw_sql(explain).fetch_all(connection).await.unwrap();
    let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
    steps.join("\n")
}
