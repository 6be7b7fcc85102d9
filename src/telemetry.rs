//! Logs and metrics of the process.
//!
//! Called once by the commands that run a relay. Logs go to standard error, one JSON object a line unless the
//! operator asks for text; `/metrics` renders what [`Metrics`] holds. Neither ever carries content: what may not be
//! logged is wrapped in types that print `REDACTED`.

use std::{io, sync::OnceLock, time::Duration};

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{FilterExt as _, filter_fn},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::config::{LogFormat, Logging};

pub mod names;

/// Upper bounds of all histograms of seconds: from a loopback answer to past the longest deadline.
const SECONDS_BUCKETS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
/// How often histograms are folded, so that they don't grow while nobody reads `/metrics`.
const UPKEEP: Duration = Duration::from_secs(5);

/// Starts logging. A second call in one process changes nothing.
pub fn init_logging(logging: &Logging) -> anyhow::Result<()> {
    let filter: EnvFilter = logging.filter.parse().context("RELAY_LOG is not a filter")?;
    // Without it, that standard error can't be written would be said on standard error, and panic.
    let lines = fmt::layer().log_internal_errors(false).with_writer(io::stderr);
    let lines = match logging.format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed(),
        LogFormat::Text => lines.with_ansi(false).boxed(),
    };
    // Fails only when logging already runs, as when a test starts a second relay.
    let _already_running = tracing_subscriber::registry()
        .with(lines.with_filter(filter.and(filter_fn(is_discreet))))
        .try_init();
    Ok(())
}

/// Whether a line may be written at any setting of `RELAY_LOG`. The libraries below print paths and headers when they
/// are asked for detail, and a path at APNs is a device token.
fn is_discreet(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("sovereign_relay") || *metadata.level() <= Level::INFO
}

/// The process's metrics. Clones are the same.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Makes `metrics::counter!` and the like count here. Later calls give the same.
    pub fn install() -> anyhow::Result<Self> {
        static INSTALLED: OnceLock<Result<Metrics, String>> = OnceLock::new();
        let installed = INSTALLED.get_or_init(|| build().map(Self).map_err(|error| error.to_string()));
        installed.clone().map_err(anyhow::Error::msg)
    }

    /// In the Prometheus text format.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Keeps histograms small, for ever. Whoever spawns it aborts it.
    pub async fn upkeep(self) {
        let mut turns = tokio::time::interval(UPKEEP);
        loop {
            turns.tick().await;
            self.0.run_upkeep();
        }
    }
}

fn build() -> Result<PrometheusHandle, metrics_exporter_prometheus::BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)?
        .install_recorder()?;
    names::describe();
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_rendered_and_installing_twice_is_harmless() {
        let first = Metrics::install().unwrap();
        metrics::counter!("relay_telemetry_test_total").increment(2);
        metrics::histogram!("relay_telemetry_test_seconds").record(0.004);
        let second = Metrics::install().unwrap();
        for rendered in [first.render(), second.render()] {
            assert!(rendered.contains("relay_telemetry_test_total 2"), "{rendered}");
            assert!(
                rendered.contains("relay_telemetry_test_seconds_bucket{le=\"0.005\"} 1"),
                "{rendered}"
            );
        }
    }
}
