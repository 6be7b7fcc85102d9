//! The one place that writes to standard output and standard error.

use std::io::{self, Write as _};

use serde::Serialize;

use super::exit::CommandError;

/// Writes lines. A reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| end_line(&mut out, text))
        .and_then(|()| out.flush());
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
    tell(&format!("sovereign-relay: {text}"));
}

fn end_line(out: &mut impl io::Write, text: &str) -> io::Result<()> {
    if text.ends_with('\n') {
        Ok(())
    } else {
        out.write_all(b"\n")
    }
}

/// Columns under headings, two spaces apart. Control characters, which a terminal would obey, are replaced.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let heading_row: Vec<String> = headings.iter().map(|&heading| heading.to_owned()).collect();
    let clean_rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| visible(cell)).collect())
        .collect();
    let all_rows: Vec<_> = std::iter::once(&heading_row).chain(&clean_rows).collect();
    let width = |column: usize| {
        all_rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |row: &&Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    all_rows.iter().map(line).collect()
}

/// Text of others, safe for a terminal.
pub(crate) fn visible(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_ends_without_blanks() {
        let rows = vec![
            vec!["a".to_owned(), "longer".to_owned()],
            vec!["bcd".to_owned(), String::new()],
        ];
        assert_eq!(table(&["ID", "NAME"], &rows), "ID   NAME\na    longer\nbcd\n");
    }

    #[test]
    fn what_others_named_themselves_cannot_drive_the_terminal() {
        let rows = vec![vec!["\u{1b}[2Jx".to_owned()]];
        assert!(!table(&["NAME"], &rows).contains('\u{1b}'));
    }
}
