//! Statements about many rows at once, and numbers as databases keep them.
//!
//! sqlx's `QueryBuilder` writes `?` for a database that is only known at run time, which PostgreSQL doesn't read;
//! hence these few lines.

use std::fmt::Write as _;

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

use super::dialect::Dialect;

/// Rows of one statement. The widest table has 20 columns, and SQLite takes 32,766 values.
pub(super) const CHUNK: usize = 1000;

/// A statement made of this crate's own text and of placeholders; values are always bound.
pub(super) fn statement(sql: String) -> SqlStr {
    AssertSqlSafe(sql).into_sql_str()
}

/// `($1,$2),($3,$4)`: `rows` tuples of `columns` placeholders, after `bound` that the statement has already.
///
/// For SQLite `(?,?),(?,?)`: it would take `$1` for a name, and search all names for each. There the statement must have
/// no numbered ones beside these.
pub(super) fn tuples(dialect: Dialect, bound: usize, rows: usize, columns: usize) -> String {
    let mut text = String::with_capacity(rows * columns * 7);
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { "),(" });
        for column in 0..columns {
            text.push_str(if column == 0 { "" } else { "," });
            let number = bound + row * columns + column + 1;
            // A `String` takes whatever is written.
            let _ = match dialect {
                Dialect::Sqlite => write!(text, "?"),
                Dialect::Postgres => write!(text, "${number}"),
            };
        }
    }
    text.push(')');
    text
}

/// A moment or a count as the database keeps it.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_as_each_database_reads_them_fast() {
        let numbered = |bound, rows, columns| tuples(Dialect::Postgres, bound, rows, columns);
        assert_eq!(numbered(0, 2, 2), "($1,$2),($3,$4)");
        assert_eq!(numbered(3, 1, 3), "($4,$5,$6)");
        assert_eq!(numbered(0, 3, 1), "($1),($2),($3)");
        assert_eq!(tuples(Dialect::Sqlite, 3, 2, 2), "(?,?),(?,?)");
    }

    #[test]
    fn a_number_too_large_is_the_largest() {
        assert_eq!(integer(7), 7);
        assert_eq!(integer(u64::MAX), i64::MAX);
    }
}
