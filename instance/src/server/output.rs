//! The one place that writes to standard output and standard error.

use std::io::{self, Write as _};

use serde::Serialize;

use super::exit::CommandError;

/// Writes lines. A reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Err(_) | Ok(()) => Ok(()),
    }
}

/// Writes a value as JSON, for scripts.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CommandError> {
    print(&serde_json::to_string_pretty(value).map_err(CommandError::failed)?)
}

/// Says something to the person, not to the script.
pub(crate) fn tell(text: &str) {
    // When standard error is gone there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what went wrong.
pub(crate) fn complain(text: &str) {
    tell(&format!("sovereign-instance: {text}"));
}

/// Columns under headings, two spaces apart.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| visible(cell)))
        .collect();
    let all: Vec<_> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    let mut widths = [0; N];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    all.iter().map(line).collect()
}

/// Text of others, safe for a terminal: control characters, which it would obey, are replaced.
fn visible(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_cannot_drive_the_terminal() {
        let rows = [["a", "longer"], ["b\u{1b}[2J", ""]].map(|row| row.map(str::to_owned));
        let expected = "ID     NAME\na      longer\nb\u{fffd}[2J\n";
        assert_eq!(table(["ID", "NAME"], &rows), expected);
    }
}
