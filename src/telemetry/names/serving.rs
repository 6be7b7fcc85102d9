//! The process: its HTTP listeners and its configuration.

use super::{LISTENER, METHOD, Metric, ROUTE, bytes, counter, of, seconds};

pub(super) const HTTP: &[Metric] = &[
    counter(
        "relay_http_requests_total",
        &[LISTENER, METHOD, ROUTE, of("status", &[])],
        "Requests answered",
    ),
    seconds(
        "relay_http_request_duration_seconds",
        &[LISTENER, METHOD, ROUTE],
        "Time from a request's head to its answer",
    ),
    counter(
        "relay_http_abandoned_total",
        &[LISTENER, ROUTE],
        "Requests whose client went away before the answer",
    ),
    counter(
        "relay_http_panics_total",
        &[],
        "Requests answered with 500 because a handler panicked: a fault of the relay",
    ),
    counter(
        "relay_task_restarts_total",
        &[],
        "Background tasks that panicked and began anew: a fault of the relay",
    ),
    counter(
        "relay_connections_refused_total",
        &[],
        "Public connections closed at once since their address had RELAY_CONNECTIONS_PER_ADDRESS",
    ),
    counter(
        "relay_unnamed_proxy_requests_total",
        &[],
        "Requests with X-Forwarded-For or Forwarded from a loopback or private address that is not in \
         RELAY_TRUSTED_PROXIES: all its clients share one address's limits",
    ),
    bytes("relay_request_body_bytes", "Memory that request bodies hold"),
    counter(
        "relay_request_bodies_refused_total",
        &[of("bound", &["relay", "instance"])],
        "Bodies refused since so many were held already, by whose bound was reached",
    ),
];

pub(super) const CONFIGURATION: &[Metric] = &[counter(
    "relay_reloads_total",
    &[of("result", &["applied", "partly", "refused"])],
    "Reloads asked for by SIGHUP; partly: a provider's new credentials have not the right form, and its old ones stay (no provider is asked whether it takes them)",
)];
