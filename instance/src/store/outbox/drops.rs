//! What waits for a device, a browser or a user that is gone is not sent any more.

use sqlx::{Any, Transaction};

use super::{
    super::{
        StoreError,
        dialect::Dialect,
        sql::{CHUNK, statement, tuples},
    },
    sql,
};
use crate::user::User;

/// Drops what waits for targets that are gone.
pub(in crate::store) async fn drop_target(
    dialect: Dialect,
    transaction: &mut Transaction<'_, Any>,
    targets: &[String],
) -> Result<(), StoreError> {
    for chunk in targets.chunks(CHUNK) {
        let ids = tuples(dialect, 0, 1, chunk.len());
        let delete = statement(sql::delete_where(dialect, &format!("target_id IN {ids}")));
        let delete = chunk
            .iter()
            .fold(sqlx::query(delete), |delete, id| delete.bind(id));
        delete.execute(&mut **transaction).await?;
    }
    Ok(())
}

/// Drops what waits for a target, unless it is for this user and sealed for this key.
pub(in crate::store) async fn drop_unless(
    dialect: Dialect,
    transaction: &mut Transaction<'_, Any>,
    target: &str,
    (user, public_key): (&User, &str),
) -> Result<(), StoreError> {
    let other = "target_id = $1 AND NOT (tenant_id = $2 AND user_id = $3 AND target_public_key = $4)";
    sqlx::query(statement(sql::delete_where(dialect, other)))
        .bind(target)
        .bind(&user.tenant)
        .bind(&user.id)
        .bind(public_key)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Drops what waits for a user.
pub(in crate::store) async fn drop_user(
    dialect: Dialect,
    transaction: &mut Transaction<'_, Any>,
    user: &User,
) -> Result<(), StoreError> {
    sqlx::query(statement(sql::delete_where(
        dialect,
        "tenant_id = $1 AND user_id = $2",
    )))
    .bind(&user.tenant)
    .bind(&user.id)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
