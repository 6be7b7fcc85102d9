//! Opens the database and brings its tables up to date.

use std::{fs::OpenOptions, io::ErrorKind, path::Path, str::FromStr as _, sync::LazyLock, time::Duration};

use sqlx::{
    AnyConnection, AnyPool, Connection as _, Executor as _,
    any::{AnyConnectOptions, AnyPoolOptions},
    migrate::Migrator,
    sqlite::SqliteConnectOptions,
};

use super::{Store, StoreError, dialect::Dialect};

/// SQLite has one writer; a few more can read meanwhile.
const SQLITE_CONNECTIONS: u32 = 4;
/// A tenth of what PostgreSQL takes by default: the host and other processes need some, too.
const POSTGRES_CONNECTIONS: u32 = 10;
/// For a free connection, and then the caller is told.
const CONNECTION_WAIT: Duration = Duration::from_secs(15);
/// The write-ahead log lets readers go on while one writes, and is a property of the file.
const SQLITE_FILE: &str = "PRAGMA journal_mode = WAL";
/// `FULL`: a commit that was acknowledged is on the disk. Writers wait for each other rather than fail.
const SQLITE_CONNECTION: &str =
    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 15000";

/// The host may use sqlx for tables of its own, and both keep count in a table.
const MIGRATIONS_TABLE: &str = "_sovereign_push_migrations";

static SQLITE: LazyLock<Migrator> = LazyLock::new(|| named(sqlx::migrate!("./migrations/sqlite")));
static POSTGRES: LazyLock<Migrator> = LazyLock::new(|| named(sqlx::migrate!("./migrations/postgres")));

pub(super) async fn connect(url: &str) -> Result<Store, StoreError> {
    let dialect = dialect_of(url)?;
    if dialect == Dialect::Sqlite {
        make_file(url)?;
    }
    sqlx::any::install_default_drivers();
    let options = AnyConnectOptions::from_str(url).map_err(|_| StoreError::Address)?;
    migrate(dialect, &options).await?;
    let pool = pool(dialect, options).await?;
    Ok(Store { pool, dialect })
}

fn dialect_of(url: &str) -> Result<Dialect, StoreError> {
    match url.split_once(':') {
        Some(("sqlite", _)) => Ok(Dialect::Sqlite),
        Some(("postgres" | "postgresql", _)) => Ok(Dialect::Postgres),
        _ => Err(StoreError::Address),
    }
}

/// Makes a missing file that only its owner may read, which SQLite then copies for the files beside it. A file that is
/// there already keeps the mode that the host gave it.
fn make_file(url: &str) -> Result<(), StoreError> {
    let options = SqliteConnectOptions::from_str(url).map_err(|_| StoreError::Address)?;
    let path = options.get_filename();
    // Each connection would have its own.
    if path
        .to_str()
        .is_none_or(|path| path.is_empty() || path.starts_with("file:"))
    {
        return Err(StoreError::Address);
    }
    match create_private(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(StoreError::File(error)),
        _ => Ok(()),
    }
}

fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// On a connection of its own: what a failed migration leaves locked is given back with it.
async fn migrate(dialect: Dialect, options: &AnyConnectOptions) -> Result<(), StoreError> {
    let mut connection = AnyConnection::connect_with(options).await?;
    match dialect {
        Dialect::Sqlite => {
            connection.execute(SQLITE_CONNECTION).await?;
            connection.execute(SQLITE_FILE).await?;
            // sqlx locks nothing here: two processes that start at once would both apply the first migration.
            let mut transaction = connection.begin_with(dialect.begin()).await?;
            SQLITE.run_direct(None, &mut *transaction, false).await?;
            transaction.commit().await?;
        }
        Dialect::Postgres => POSTGRES.run_direct(None, &mut connection, false).await?,
    }
    Ok(connection.close().await?)
}

async fn pool(dialect: Dialect, options: AnyConnectOptions) -> Result<AnyPool, StoreError> {
    let pool = AnyPoolOptions::new().acquire_timeout(CONNECTION_WAIT);
    let pool = match dialect {
        Dialect::Sqlite => pool
            .max_connections(SQLITE_CONNECTIONS)
            .after_connect(|connection, _| {
                Box::pin(async move { connection.execute(SQLITE_CONNECTION).await.map(|_| ()) })
            })
            // One whose transaction SQLite ended by itself, for want of disk, is counted as in it for ever.
            .before_acquire(|connection, _| {
                let is_free = !connection.is_in_transaction();
                Box::pin(async move { Ok(is_free) })
            }),
        Dialect::Postgres => pool.max_connections(POSTGRES_CONNECTIONS),
    };
    Ok(pool.connect_with(options).await?)
}

fn named(mut migrator: Migrator) -> Migrator {
    migrator.dangerous_set_table_name(MIGRATIONS_TABLE);
    migrator
}
