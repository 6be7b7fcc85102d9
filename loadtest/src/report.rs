//! Figures as a table for `docs/PERFORMANCE.md`, or as JSON.

use std::io::{self, Write as _};

use serde::Serialize;

/// One measurement.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) target: &'static str,
    pub(crate) pace: String,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) failed: u64,
    /// Processor time of the relay a push, user and system.
    pub(crate) cpu_micros: Option<f64>,
    pub(crate) resident_kib: Option<u64>,
}

/// All measurements of a run.
#[derive(Default, Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn print(&self, json: bool) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(self)?)?;
            return Ok(());
        }
        writeln!(
            out,
            "| target | load | pushes/s | p50 ms | p99 ms | failed | relay CPU us/push | relay RSS MiB |"
        )?;
        writeln!(out, "|---|---|---:|---:|---:|---:|---:|---:|")?;
        for row in &self.rows {
            let cpu = row
                .cpu_micros
                .map_or("-".to_owned(), |micros| format!("{micros:.0}"));
            let resident = row
                .resident_kib
                .map_or("-".to_owned(), |kib| (kib / 1024).to_string());
            writeln!(
                out,
                "| {} | {} | {:.0} | {:.2} | {:.2} | {} | {cpu} | {resident} |",
                row.target, row.pace, row.per_second, row.p50_ms, row.p99_ms, row.failed
            )?;
        }
        Ok(())
    }
}
