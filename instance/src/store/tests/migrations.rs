//! Opening: an empty database, one that is up to date, one that a host has used before, and what is none.

use sqlx::{AnyConnection, Connection as _, Executor as _};

use crate::{
    store::{
        Store, StoreError,
        testing::{Place, new_device, registered},
    },
    user::User,
};

pub(super) mod contract {
    contract!(
        opening_again_changes_nothing,
        many_that_open_at_once_all_succeed,
        devices_that_a_host_had_registered_are_kept,
        a_host_that_uses_sqlx_keeps_its_own_count_of_migrations,
        rows_go_with_the_hosts_user,
    );
}

const USERS_ON_SQLITE: &str = include_str!("../../../migrations/users/sqlite.sql");
const USERS_ON_POSTGRES: &str = include_str!("../../../migrations/users/postgres.sql");

async fn opening_again_changes_nothing(place: Place) {
    let device = registered(&place.store, &new_device(&User::new("ann"), "token"), 100).await;
    for _ in 0..2 {
        let store = place.again().await;
        assert_eq!(
            store.devices_of(&device.user).await.unwrap(),
            std::slice::from_ref(&device)
        );
        store.close().await;
    }
}

async fn many_that_open_at_once_all_succeed(place: Place) {
    wipe(&place).await;
    let stores = futures_util::future::join_all((0..6).map(|_| place.again())).await;
    registered(&stores[0], &new_device(&User::new("ann"), "token"), 100).await;
    for store in stores {
        assert_eq!(store.devices_of(&User::new("ann")).await.unwrap().len(), 1);
        store.close().await;
    }
}

/// The table as instances had it before this crate, with a column of the host's own.
async fn devices_that_a_host_had_registered_are_kept(place: Place) {
    wipe(&place).await;
    let mut connection = AnyConnection::connect(&place.url).await.unwrap();
    let older = "CREATE TABLE push_device_tokens (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL DEFAULT 'default', \
         user_id TEXT NOT NULL, platform TEXT NOT NULL, device_token TEXT NOT NULL UNIQUE, public_key TEXT NOT NULL, \
         relay_url TEXT NOT NULL, created_at INTEGER NOT NULL, last_used_at INTEGER, label TEXT);
         INSERT INTO push_device_tokens VALUES ('0198c0de-0000-4000-8000-000000000000', 'default', 'ann', 'ios', \
         'token', 'key', 'https://relay.example', 100, NULL, 'phone')";
    connection.execute(older).await.unwrap();
    connection.close().await.unwrap();
    let store = place.again().await;
    let devices = store.devices_of(&User::new("ann")).await.unwrap();
    assert_eq!((devices.len(), devices[0].created_at), (1, 100));
    assert_eq!(devices[0].environment, None);
    let moved = registered(&store, &new_device(&User::new("ben"), "token"), 200).await;
    assert_eq!(moved.id, devices[0].id);
    store.close().await;
}

async fn a_host_that_uses_sqlx_keeps_its_own_count_of_migrations(place: Place) {
    wipe(&place).await;
    let mut connection = AnyConnection::connect(&place.url).await.unwrap();
    let count = "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY); INSERT INTO _sqlx_migrations VALUES (77)";
    connection.execute(count).await.unwrap();
    place.again().await.close().await;
    let versions: Vec<i64> = sqlx::query_scalar("SELECT version FROM _sqlx_migrations")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(versions, [77]);
    connection.close().await.unwrap();
}

async fn rows_go_with_the_hosts_user(place: Place) {
    let mut connection = AnyConnection::connect(&place.url).await.unwrap();
    let users = "CREATE TABLE users (id TEXT PRIMARY KEY); INSERT INTO users VALUES ('ann'), ('ben')";
    connection.execute(users).await.unwrap();
    let follow = if place.url.starts_with("sqlite") {
        USERS_ON_SQLITE
    } else {
        USERS_ON_POSTGRES
    };
    connection.execute(follow).await.unwrap();
    for name in ["ann", "ben"] {
        registered(&place.store, &new_device(&User::new(name), name), 100).await;
    }
    connection
        .execute("DELETE FROM users WHERE id = 'ann'")
        .await
        .unwrap();
    connection.close().await.unwrap();
    assert_eq!(place.store.devices_of(&User::new("ann")).await.unwrap(), []);
    assert_eq!(place.store.devices_of(&User::new("ben")).await.unwrap().len(), 1);
}

/// Back to an empty database.
async fn wipe(place: &Place) {
    let mut connection = AnyConnection::connect(&place.url).await.unwrap();
    let tables = [
        "push_device_tokens",
        "push_subscriptions",
        "push_relays",
        "push_outbox",
        "push_delivery_log",
        "push_settings",
        "_sovereign_push_migrations",
    ];
    for table in tables {
        let drop = format!("DROP TABLE {table}");
        connection.execute(sqlx::AssertSqlSafe(drop)).await.unwrap();
    }
    connection.close().await.unwrap();
}

#[tokio::test]
async fn the_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let store = Store::connect(&format!("sqlite:{}", directory.path().join("push.db").display()))
        .await
        .unwrap();
    registered(&store, &new_device(&User::new("ann"), "token"), 100).await;
    let files: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(files.len(), 3, "the database, its log, its index");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.file_name());
    }
    store.close().await;
}

#[tokio::test]
async fn what_names_no_database_is_refused_without_showing_the_address() {
    for url in [
        "",
        "push.db",
        "mysql://user:password@localhost/push",
        "sqlite::memory:",
        "sqlite:",
    ] {
        let error = Store::connect(url).await.unwrap_err();
        assert!(matches!(error, StoreError::Address), "{url}: {error:?}");
    }
    let missing = Store::connect("sqlite:/nowhere/at/all/push.db")
        .await
        .unwrap_err();
    assert!(matches!(missing, StoreError::File(_)), "{missing:?}");
    let nobody = Store::connect("postgres://user:password@127.0.0.1:1/push")
        .await
        .unwrap_err();
    let shown = format!("{nobody} {nobody:?}");
    assert!(
        matches!(nobody, StoreError::Database(_)) && !shown.contains("password"),
        "{shown}"
    );
}
