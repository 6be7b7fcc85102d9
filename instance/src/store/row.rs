//! Columns to types.

use sovereign_relay_protocol::redacted::Redacted;
use sqlx::{Row as _, any::AnyRow};
use tracing::warn;
use uuid::Uuid;

use crate::user::User;

/// A column that does not hold what this crate writes: another program has been at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unreadable(&'static str);

/// Reads each row. One that can't be read is left out, so that it doesn't take the others with it.
pub(super) fn readable<T>(
    table: &'static str,
    rows: &[AnyRow],
    read: impl Fn(&AnyRow) -> Result<T, Unreadable>,
) -> Vec<T> {
    let log = |Unreadable(column)| warn!(table, column, "a row that another program wrote is left out");
    rows.iter()
        .filter_map(|row| read(row).map_err(log).ok())
        .collect()
}

pub(super) fn text(row: &AnyRow, column: &'static str) -> Result<String, Unreadable> {
    row.try_get(column).map_err(|_| Unreadable(column))
}

pub(super) fn optional_text(row: &AnyRow, column: &'static str) -> Result<Option<String>, Unreadable> {
    row.try_get(column).map_err(|_| Unreadable(column))
}

pub(super) fn redacted(row: &AnyRow, column: &'static str) -> Result<Redacted, Unreadable> {
    text(row, column).map(Redacted::new)
}

pub(super) fn number(row: &AnyRow, column: &'static str) -> Result<u64, Unreadable> {
    optional_number(row, column)?.ok_or(Unreadable(column))
}

pub(super) fn optional_number(row: &AnyRow, column: &'static str) -> Result<Option<u64>, Unreadable> {
    let number: Option<i64> = row.try_get(column).map_err(|_| Unreadable(column))?;
    number
        .map(|number| u64::try_from(number).map_err(|_| Unreadable(column)))
        .transpose()
}

pub(super) fn small(row: &AnyRow, column: &'static str) -> Result<u32, Unreadable> {
    u32::try_from(number(row, column)?).map_err(|_| Unreadable(column))
}

pub(super) fn id(row: &AnyRow, column: &'static str) -> Result<Uuid, Unreadable> {
    parsed(row, column, |text| Uuid::parse_str(text).ok())
}

/// A word of a closed set.
pub(super) fn parsed<T>(
    row: &AnyRow,
    column: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, Unreadable> {
    parse(&text(row, column)?).ok_or(Unreadable(column))
}

/// A word of a closed set, or none.
pub(super) fn optional<T>(
    row: &AnyRow,
    column: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Unreadable> {
    optional_text(row, column)?
        .map(|text| parse(&text).ok_or(Unreadable(column)))
        .transpose()
}

pub(super) fn user(row: &AnyRow) -> Result<User, Unreadable> {
    Ok(User::of_tenant(text(row, "tenant_id")?, text(row, "user_id")?))
}
