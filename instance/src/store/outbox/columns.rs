//! One row of the outbox as columns and back.

use sovereign_relay_protocol::{
    platform::{Environment, Platform, Priority},
    redacted::Redacted,
};
use sqlx::{
    Any,
    any::{AnyArguments, AnyRow},
    query::Query,
};

use super::{
    super::{
        row::{self, Unreadable},
        sql::integer,
    },
    Channel, OutboxRow,
};

/// In the order of [`bind`].
pub(super) const COLUMNS: &str = "id, notification_id, tenant_id, user_id, channel, target_id, target_created_at, \
     target_public_key, platform, address, relay_url, environment, sealed, priority, collapse_id, ttl_until, attempts, \
     first_attempt_at, next_attempt_at, leased_until";

/// How many [`COLUMNS`] there are.
pub(super) const WIDTH: usize = 20;

pub(super) fn bind<'q>(
    insert: Query<'q, Any, AnyArguments>,
    row: &OutboxRow,
) -> Query<'q, Any, AnyArguments> {
    insert
        .bind(row.id.to_string())
        .bind(row.notification_id.to_string())
        .bind(row.user.tenant.clone())
        .bind(row.user.id.clone())
        .bind(row.channel.as_str())
        .bind(row.target_id.to_string())
        .bind(integer(row.target_created_at))
        .bind(row.target_public_key.clone())
        .bind(row.platform.map(Platform::as_str))
        .bind(row.address.expose().to_owned())
        .bind(row.relay_url.clone())
        .bind(row.environment.map(Environment::as_str))
        .bind(row.sealed.expose().to_owned())
        .bind(row.priority.as_str())
        .bind(row.collapse_id.as_ref().map(|id| id.expose().to_owned()))
        .bind(integer(row.ttl_until))
        .bind(i64::from(row.attempts))
        .bind(row.first_attempt_at.map(integer))
        .bind(integer(row.next_attempt_at))
        .bind(integer(row.leased_until))
}

pub(super) fn read(row: &AnyRow) -> Result<OutboxRow, Unreadable> {
    Ok(OutboxRow {
        id: row::id(row, "id")?,
        notification_id: row::id(row, "notification_id")?,
        user: row::user(row)?,
        channel: row::parsed(row, "channel", Channel::parse)?,
        target_id: row::id(row, "target_id")?,
        target_created_at: row::number(row, "target_created_at")?,
        target_public_key: row::text(row, "target_public_key")?,
        platform: row::optional(row, "platform", Platform::parse)?,
        address: row::redacted(row, "address")?,
        relay_url: row::optional_text(row, "relay_url")?,
        environment: row::optional(row, "environment", Environment::parse)?,
        sealed: row::redacted(row, "sealed")?,
        priority: row::parsed(row, "priority", Priority::parse)?,
        collapse_id: row::optional_text(row, "collapse_id")?.map(Redacted::new),
        ttl_until: row::number(row, "ttl_until")?,
        attempts: row::small(row, "attempts")?,
        first_attempt_at: row::optional_number(row, "first_attempt_at")?,
        next_attempt_at: row::number(row, "next_attempt_at")?,
        leased_until: row::number(row, "leased_until")?,
    })
}
