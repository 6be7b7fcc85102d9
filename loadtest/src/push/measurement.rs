//! A row of `push`'s tables.

use serde::Serialize;

use crate::{
    report::{self, Row},
    run::Measured,
};

/// One measurement.
#[derive(Serialize)]
pub(super) struct Measurement {
    target: String,
    pace: String,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    failed: u64,
    /// Processor time of the relay a push, user and system.
    cpu_micros: Option<f64>,
    resident_kib: Option<u64>,
}

impl Measurement {
    pub(super) fn new(target: impl Into<String>, pace: impl ToString, measured: &Measured) -> Self {
        Self {
            target: target.into(),
            pace: pace.to_string(),
            per_second: measured.per_second(),
            p50_ms: measured.millis(0.5),
            p99_ms: measured.millis(0.99),
            failed: measured.failed,
            cpu_micros: None,
            resident_kib: None,
        }
    }

    pub(super) fn with_process(self, measured: &Measured, cpu_seconds: f64, resident_kib: u64) -> Self {
        let pushes = measured.latency.len().max(1) as f64;
        Self {
            cpu_micros: Some(cpu_seconds * 1e6 / pushes),
            resident_kib: Some(resident_kib),
            ..self
        }
    }
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "target",
        "load",
        "pushes/s",
        "p50 ms",
        "p99 ms",
        "failed",
        "relay CPU us/push",
        "relay RSS MiB",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.target.clone(),
            self.pace.clone(),
            format!("{:.0}", self.per_second),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
            self.failed.to_string(),
            report::or_dash(self.cpu_micros.map(|micros| format!("{micros:.0}"))),
            report::or_dash(self.resident_kib.map(|kib| (kib / 1024).to_string())),
        ]
    }
}
