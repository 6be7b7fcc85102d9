//! Room for one more: how many devices or browsers a user has, and which of them were unused longest.
//!
//! Called by each registration, so it must stay cheap for a user who has very many. They are counted in the index of
//! users, without a look at the rows; only when the limit is reached are the user's rows read, and in the database. No
//! index is kept in the order of use: each delivery would have to write it.

use sqlx::{Any, Transaction};
use uuid::Uuid;

use super::{StoreError, dialect::Dialect, outbox, sql::statement};
use crate::user::User;

/// A table of registrations, and its column by which two of them are the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) table: &'static str,
    pub(super) address: &'static str,
}

/// Whose room, and the address that is to have it.
#[derive(Clone, Copy)]
pub(super) struct Newcomer<'a> {
    pub(super) user: &'a User,
    pub(super) address: &'a str,
}

/// Removes those that were unused longest, until this one fits within `limit`, which is one at least. Nothing that waits
/// for them is sent any more. Which they were. Nobody adds one until the transaction ends.
pub(super) async fn make(
    dialect: Dialect,
    transaction: &mut Transaction<'_, Any>,
    kind: Kind,
    newcomer: Newcomer<'_>,
    limit: u32,
) -> Result<Vec<Uuid>, StoreError> {
    dialect.lock_user(transaction, newcomer.user).await?;
    let others: i64 = sqlx::query_scalar(statement(count_others(kind)))
        .bind(&newcomer.user.tenant)
        .bind(&newcomer.user.id)
        .bind(newcomer.address)
        .fetch_one(&mut **transaction)
        .await?;
    let beyond = others.saturating_add(1).saturating_sub(i64::from(limit.max(1)));
    if beyond <= 0 {
        return Ok(Vec::new());
    }
    let removed: Vec<String> = sqlx::query_scalar(statement(drop_unused(kind)))
        .bind(&newcomer.user.tenant)
        .bind(&newcomer.user.id)
        .bind(newcomer.address)
        .bind(beyond)
        .fetch_all(&mut **transaction)
        .await?;
    outbox::drop_target(dialect, transaction, &removed).await?;
    Ok(removed.iter().filter_map(|id| Uuid::parse_str(id).ok()).collect())
}

/// `$1` tenant, `$2` user, `$3` address. To leave that one out of the count, each row would have to be read.
pub(super) fn count_others(Kind { table, address }: Kind) -> String {
    format!(
        "SELECT (SELECT COUNT(*) FROM {table} WHERE tenant_id = $1 AND user_id = $2) - \
         (SELECT COUNT(*) FROM {table} WHERE {address} = $3 AND tenant_id = $1 AND user_id = $2)"
    )
}

/// `$1` tenant, `$2` user, `$3` address, `$4` how many. Materialized, as for the outbox' claims; whose they are is asked
/// again, for another user may take one over meanwhile.
pub(super) fn drop_unused(Kind { table, address }: Kind) -> String {
    format!(
        "WITH unused AS MATERIALIZED (\
         SELECT id FROM {table} WHERE tenant_id = $1 AND user_id = $2 AND {address} <> $3 \
         ORDER BY CASE WHEN last_used_at > created_at THEN last_used_at ELSE created_at END, created_at, id LIMIT $4) \
         DELETE FROM {table} WHERE tenant_id = $1 AND user_id = $2 AND id IN (SELECT id FROM unused) RETURNING id"
    )
}
