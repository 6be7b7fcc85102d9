//! When devices and browsers were last told something.

use sqlx::{Any, Transaction};
use uuid::Uuid;

use super::{
    StoreError, devices,
    dialect::Dialect,
    sql::{CHUNK, integer, statement, tuples},
    subscriptions,
};

/// Deliveries: the id and `created_at` of each device and browser as it was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used<'a> {
    /// Native devices.
    pub devices: &'a [(Uuid, u64)],
    /// Browsers.
    pub browsers: &'a [(Uuid, u64)],
    /// When.
    pub at: u64,
}

/// Those that were registered again since are left as they are.
pub(super) async fn note(
    dialect: Dialect,
    transaction: &mut Transaction<'_, Any>,
    used: &Used<'_>,
) -> Result<(), StoreError> {
    for (table, rows) in [
        (devices::TABLE, used.devices),
        (subscriptions::TABLE, used.browsers),
    ] {
        for chunk in rows.chunks(CHUNK) {
            let update = statement(note_use(dialect, table, chunk.len()));
            let mut update = sqlx::query(update).bind(integer(used.at));
            for (id, created_at) in chunk {
                update = update.bind(id.to_string()).bind(integer(*created_at));
            }
            update.execute(&mut **transaction).await?;
        }
    }
    Ok(())
}

/// Whoever has a row locked is noting the same, or is replacing it.
pub(super) fn note_use(dialect: Dialect, table: &str, rows: usize) -> String {
    let lock = dialect.skip_locked_of(table);
    let (now, used) = (tuples(dialect, 0, 1, 1), tuples(dialect, 1, rows, 2));
    format!(
        "UPDATE {table} SET last_used_at = {now} WHERE id IN (SELECT {table}.id FROM {table} \
         JOIN (VALUES {used}) AS used ON id = used.column1 AND created_at = used.column2{lock})"
    )
}
