//! Gauges that are read when somebody asks, rather than kept up to date.

use super::{push_half::PushHalf, signaling::SignalHalf};
use crate::http::services::Services;

/// What is counted only when somebody asks.
pub(super) fn gauges(
    push: &PushHalf,
    signal: &SignalHalf,
    services: &Services,
) -> impl Fn() + Send + Sync + use<> {
    let (registry, bodies) = (push.registry.clone(), services.bodies.clone());
    let signal = signal.gauges();
    move || {
        let snapshot = registry.snapshot();
        metrics::gauge!("relay_instance_actors").set(count(snapshot.actors));
        metrics::gauge!("relay_pushes_in_flight").set(count(snapshot.in_flight));
        metrics::gauge!("relay_request_body_bytes").set(count(bodies.held()));
        metrics::counter!("relay_instance_actor_restarts_total").absolute(snapshot.restarts);
        signal();
    }
}

/// A number of things, as a gauge takes it.
#[allow(
    clippy::cast_precision_loss,
    reason = "a gauge is a float, and counts stay far below 2^52"
)]
pub(super) fn count(number: usize) -> f64 {
    number as f64
}
