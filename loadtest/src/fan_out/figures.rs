//! What a process says of its own work, in one line of JSON on its standard output.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tokio::{io::AsyncReadExt as _, time::Instant};

use crate::process::{Process, Usage};

/// From the moment that all was ready to the last outcome.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    /// Resident memory before the work.
    pub(crate) resident_kib: u64,
    /// The most that was ever resident.
    pub(crate) peak_kib: u64,
}

/// The beginning of the work.
pub(crate) struct Began {
    at: Instant,
    usage: Usage,
}

impl Began {
    #[allow(
        clippy::disallowed_methods,
        reason = "measuring time is what this program is for"
    )]
    pub(crate) fn now() -> anyhow::Result<Self> {
        Ok(Self {
            usage: Usage::own()?,
            at: Instant::now(),
        })
    }

    /// The work is done.
    pub(crate) fn figures(&self) -> anyhow::Result<Figures> {
        let elapsed: Duration = self.at.elapsed();
        let usage = Usage::own()?;
        Ok(Figures {
            seconds: elapsed.as_secs_f64(),
            cpu_seconds: usage.cpu_seconds - self.usage.cpu_seconds,
            resident_kib: self.usage.resident_kib,
            peak_kib: usage.peak_kib,
        })
    }
}

impl Figures {
    /// Starts this program again with these arguments, and reads what it prints.
    pub(crate) async fn of(arguments: &[String]) -> anyhow::Result<Self> {
        let (process, mut output) = Process::own(arguments)?;
        let mut text = String::new();
        output.read_to_string(&mut text).await?;
        process.succeeded().await?;
        serde_json::from_str(&text).context("the process printed no figures")
    }

    pub(super) fn print(&self) -> anyhow::Result<()> {
        Ok(writeln!(io::stdout().lock(), "{}", serde_json::to_string(self)?)?)
    }
}
