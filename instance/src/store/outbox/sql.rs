//! The statements of the outbox that differ by dialect or by number of rows.

use super::{
    super::{dialect::Dialect, sql::tuples},
    columns::COLUMNS,
};

/// 1 where the row's user still has the device or browser, with the key that it is sealed for; otherwise 0.
pub(in crate::store) const IS_MEANT: &str = "CASE WHEN \
     EXISTS (SELECT 1 FROM push_device_tokens AS device WHERE device.id = push_outbox.target_id \
     AND device.tenant_id = push_outbox.tenant_id AND device.user_id = push_outbox.user_id \
     AND device.public_key = push_outbox.target_public_key) OR \
     EXISTS (SELECT 1 FROM push_subscriptions AS browser WHERE browser.id = push_outbox.target_id \
     AND browser.tenant_id = push_outbox.tenant_id AND browser.user_id = push_outbox.user_id \
     AND browser.p256dh = push_outbox.target_public_key) THEN 1 ELSE 0 END";

/// `$1` now, `$2` end of the lease, `$3` limit. Materialized, since PostgreSQL may otherwise run the limited `SELECT`
/// more than once.
pub(in crate::store) fn claim(dialect: Dialect) -> String {
    let lock = dialect.skip_locked();
    format!(
        "WITH due AS MATERIALIZED (\
         SELECT id FROM push_outbox WHERE next_attempt_at <= $1 AND leased_until <= $1 AND ttl_until > $1 \
         ORDER BY next_attempt_at LIMIT $3{lock}) \
         UPDATE push_outbox SET attempts = attempts + 1, first_attempt_at = COALESCE(first_attempt_at, $1), \
         next_attempt_at = $2, leased_until = $2 WHERE id IN (SELECT id FROM due) RETURNING {COLUMNS}"
    )
}

/// `$1` notification.
pub(in crate::store) fn drop_moved() -> String {
    format!("DELETE FROM push_outbox WHERE notification_id = $1 AND {IS_MEANT} = 0 RETURNING id")
}

/// `$1` now, `$2` limit.
pub(in crate::store) fn drop_expired(dialect: Dialect) -> String {
    let lock = dialect.skip_locked();
    format!(
        "WITH expired AS MATERIALIZED (\
         SELECT id FROM push_outbox WHERE ttl_until <= $1 AND leased_until <= $1 \
         ORDER BY ttl_until LIMIT $2{lock}) \
         DELETE FROM push_outbox WHERE id IN (SELECT id FROM expired) RETURNING {COLUMNS}"
    )
}

/// `$1` now, `$2` notification, `$3` staged.
pub(in crate::store) fn publish(dialect: Dialect) -> String {
    let lock = dialect.lock_in_order();
    format!(
        "UPDATE push_outbox SET leased_until = 0, next_attempt_at = $1 WHERE id IN (\
         SELECT id FROM push_outbox WHERE notification_id = $2 AND leased_until = $3{lock})"
    )
}

/// `$1` staged, `$2` before, `$3` limit.
pub(in crate::store) fn drop_staged(dialect: Dialect) -> String {
    let lock = dialect.skip_locked();
    format!(
        "WITH staged AS MATERIALIZED (\
         SELECT id FROM push_outbox WHERE leased_until = $1 AND next_attempt_at < $2 LIMIT $3{lock}) \
         DELETE FROM push_outbox WHERE id IN (SELECT id FROM staged) RETURNING {COLUMNS}"
    )
}

/// Of each row its id, the end of its lease, when it is due again, and 1 if the attempt is forgotten.
pub(in crate::store) fn retry(dialect: Dialect, rows: usize) -> String {
    let again = tuples(dialect, 0, rows, 4);
    format!(
        "UPDATE push_outbox SET next_attempt_at = again.column3, leased_until = 0, \
         first_attempt_at = CASE WHEN again.column4 = 1 THEN NULL ELSE first_attempt_at END \
         FROM (VALUES {again}) AS again WHERE id = again.column1 AND leased_until = again.column2"
    )
}

/// Locks rows in their order, where a transaction is going to change them by more than one statement.
pub(in crate::store) fn lock(dialect: Dialect, rows: usize) -> String {
    let (ids, lock) = (tuples(dialect, 0, 1, rows), dialect.lock_in_order());
    format!("SELECT id FROM push_outbox WHERE id IN {ids}{lock}")
}

pub(in crate::store) fn delete_where(dialect: Dialect, condition: &str) -> String {
    let lock = dialect.lock_in_order();
    format!("DELETE FROM push_outbox WHERE id IN (SELECT id FROM push_outbox WHERE {condition}{lock})")
}
