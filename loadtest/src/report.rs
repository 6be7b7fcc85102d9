//! Figures as a table for `docs/PERFORMANCE.md`, or as JSON.

use std::io::{self, Write as _};

use serde::Serialize;

/// One measurement.
pub(crate) trait Row: Serialize {
    /// The table's head. The first two columns are words, the others figures.
    const COLUMNS: &'static [&'static str];

    /// As many.
    fn cells(&self) -> Vec<String>;
}

/// Prints all measurements of a run.
pub(crate) fn print<R: Row>(rows: &[R], json: bool) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::json!({ "rows": rows }))?;
        return Ok(());
    }
    let figures = R::COLUMNS.len().saturating_sub(2);
    writeln!(out, "| {} |", R::COLUMNS.join(" | "))?;
    writeln!(out, "|---|---|{}", "---:|".repeat(figures))?;
    for row in rows {
        writeln!(out, "| {} |", row.cells().join(" | "))?;
    }
    Ok(())
}

/// A line beside the figures; not among them, since those may be read by a program.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(io::stderr().lock(), "{line}")?)
}

/// A figure, or a dash where there is none.
pub(crate) fn or_dash(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| "-".to_owned())
}
