//! Puts the parts together: the one file that names concrete adapters.

use std::sync::Arc;

use crate::config::Config;

/// Renders the metrics in the Prometheus text format.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Runs the relay until it is told to stop. Needs a running actix system.
pub async fn run(_config: Config, _metrics: RenderMetrics) -> anyhow::Result<()> {
    anyhow::bail!("serving is not built yet")
}
