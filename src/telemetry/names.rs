//! Every metric of the relay: its name, kind, unit, labels and meaning.
//!
//! Metrics are counted where things happen, by name. This table is what `/metrics` says about them (`# HELP`) and what
//! `docs/METRICS.md` is compared with. Tests compare it with the sources and with a scrape: a metric that isn't here,
//! a label or a value that isn't, and a line here that nothing counts all fail.
//!
//! Called once by [`super::Metrics::install`]. Counters whose labels are all of closed sets begin at 0, so that a rate
//! over the first event is seen; others, and gauges, show up with their first value.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram};

/// What belongs together.
#[derive(Debug)]
pub struct Section {
    /// What they are about.
    pub title: &'static str,
    /// These.
    pub metrics: &'static [Metric],
}

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// As in `/metrics`.
    pub name: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// What it counts in.
    pub unit: Unit,
    /// What it is divided by.
    pub labels: &'static [Label],
    /// What it tells, in a sentence without a full stop.
    pub help: &'static str,
}

/// How a metric moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only up, from 0 at the start of the process.
    Counter,
    /// Up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

/// What a metric is divided by.
#[derive(Debug)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// Its values; none where they are bounded but not listed (routes, the providers' own words).
    pub values: &'static [&'static str],
}

impl Kind {
    /// As in `# TYPE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Describes all metrics, and begins those at 0 that can.
pub(super) fn describe() {
    for metric in SECTIONS.iter().flat_map(|section| section.metrics) {
        let Metric { name, unit, help, .. } = *metric;
        match metric.kind {
            Kind::Counter => {
                describe_counter!(name, unit, help);
                begin(metric);
            }
            Kind::Gauge => describe_gauge!(name, unit, help),
            Kind::Histogram => describe_histogram!(name, unit, help),
        }
    }
}

/// At 0, for each combination of the labels' values; of a label that lists none there is none.
fn begin(metric: &Metric) {
    let mut combinations = vec![Vec::new()];
    for label in metric.labels {
        combinations = combinations
            .iter()
            .flat_map(|before| {
                label
                    .values
                    .iter()
                    .map(move |value| and(before, label.name, value))
            })
            .collect();
    }
    for labels in combinations {
        counter!(metric.name, labels).increment(0);
    }
}

fn and(before: &[metrics::Label], name: &'static str, value: &'static str) -> Vec<metrics::Label> {
    let mut labels = before.to_vec();
    labels.push(metrics::Label::from_static_parts(name, value));
    labels
}

const fn counter(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Counter,
        unit: Unit::Count,
        labels,
        help,
    }
}

const fn gauge(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    Metric {
        kind: Kind::Gauge,
        ..counter(name, labels, help)
    }
}

const fn bytes(name: &'static str, help: &'static str) -> Metric {
    Metric {
        unit: Unit::Bytes,
        ..gauge(name, &[], help)
    }
}

const fn seconds(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    Metric {
        kind: Kind::Histogram,
        unit: Unit::Seconds,
        ..counter(name, labels, help)
    }
}

const fn of(name: &'static str, values: &'static [&'static str]) -> Label {
    Label { name, values }
}

const PROVIDER: Label = of("provider", &["apns-production", "apns-sandbox", "fcm", "wns"]);
const APNS: Label = of("provider", &["apns-production", "apns-sandbox"]);
const OAUTH: Label = of("provider", &["fcm", "wns"]);
/// In the words of the provider or of the API, which are many.
const REASON: Label = of("reason", &[]);
const LISTENER: Label = of("listener", &["public", "admin"]);
/// A route's pattern, never a path.
const ROUTE: Label = of("route", &[]);
const METHOD: Label = of(
    "method",
    &["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "other"],
);

/// All metrics, in the order the document lists them.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Pushes",
        metrics: PUSHES,
    },
    Section {
        title: "Providers",
        metrics: PROVIDERS,
    },
    Section {
        title: "HTTP",
        metrics: HTTP,
    },
    Section {
        title: "Signaling",
        metrics: SIGNALING,
    },
    Section {
        title: "Instances and records",
        metrics: RECORDS,
    },
    Section {
        title: "Replicas",
        metrics: REPLICAS,
    },
];

const PUSHES: &[Metric] = &[
    counter(
        "relay_pushes_total",
        &[
            PROVIDER,
            of(
                "result",
                &["sent", "invalid_token", "failed", "unreachable", "overloaded"],
            ),
            REASON,
        ],
        "Pushes that came to a provider's lane, by what their caller was told",
    ),
    gauge(
        "relay_pushes_in_flight",
        &[],
        "Pushes that instances have under way",
    ),
    gauge(
        "relay_lane_queue",
        &[PROVIDER],
        "Pushes that wait for their turn at a provider",
    ),
    gauge(
        "relay_lane_in_flight",
        &[PROVIDER],
        "Pushes that a provider has not answered",
    ),
    gauge(
        "relay_breaker_state",
        &[PROVIDER],
        "Whether a provider is called: 0 yes, 1 probes alone, 2 not",
    ),
    gauge(
        "relay_fuse_open",
        &[
            of("scope", &[]),
            of("fuse", &["conditional", "single_instance", "certain"]),
        ],
        "1 while so many tokens of a topic or project are called bad that no device is reported gone",
    ),
    seconds(
        "relay_provider_seconds",
        &[PROVIDER],
        "Time of a push at its provider, retries included",
    ),
];

const PROVIDERS: &[Metric] = &[
    counter(
        "relay_provider_refuses_relay_total",
        &[PROVIDER, REASON],
        "Answers that refuse the relay itself (credentials, topic, project): the operator must act",
    ),
    counter(
        "relay_provider_unreadable_answers_total",
        &[PROVIDER],
        "Answers whose body could not be read",
    ),
    counter("relay_oauth_requests_total", &[OAUTH], "Access tokens asked for"),
    counter(
        "relay_apns_answers_total",
        &[APNS, REASON],
        "Answers of APNs by its own reason, retried ones included",
    ),
    gauge("relay_apns_connections", &[APNS], "Open connections to APNs"),
    counter(
        "relay_apns_dial_failures_total",
        &[APNS],
        "Connections to APNs that could not be opened",
    ),
    counter(
        "relay_apns_connections_ended_total",
        &[APNS, of("reason", &["done", "lost", "silent"])],
        "Connections to APNs that ended; silent: a ping went unanswered",
    ),
    counter(
        "relay_apns_goaways_total",
        &[APNS, REASON],
        "GOAWAYs of APNs by its own reason",
    ),
    counter(
        "relay_apns_tokens_signed_total",
        &[],
        "Provider tokens signed for APNs; Apple refuses more than one in 20 minutes",
    ),
];

const HTTP: &[Metric] = &[
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
        "relay_connections_refused_total",
        &[],
        "Public connections closed at once since their address had RELAY_CONNECTIONS_PER_ADDRESS",
    ),
    bytes("relay_request_body_bytes", "Memory that request bodies hold"),
    counter(
        "relay_request_bodies_refused_total",
        &[of("bound", &["relay", "instance"])],
        "Bodies refused since so many were held already, by whose bound was reached",
    ),
];

const SIGNALING: &[Metric] = &[
    gauge("relay_signal_sessions", &[], "Live sessions"),
    gauge("relay_session_actors", &[], "Sessions with a connection here"),
    counter(
        "relay_actor_restarts_total",
        &[],
        "Sessions' actors that panicked: a fault of the relay",
    ),
    counter(
        "relay_session_requests_total",
        &[of(
            "outcome",
            &[
                "made",
                "joined",
                "suspended",
                "too_often",
                "draining",
                "full",
                "conflict",
                "too_many",
                "overloaded",
                "unavailable",
                "failed",
            ],
        )],
        "Requests for a session by their outcome",
    ),
    bytes(
        "relay_signal_mailbox_bytes",
        "Memory that waiting messages hold, bounded by RELAY_MAILBOXES",
    ),
    counter("relay_signal_messages_total", &[], "Messages stored for a peer"),
    counter(
        "relay_signal_refused_total",
        &[of("code", &["rate_limited", "mailbox_full", "unavailable"])],
        "Messages refused, by the code that their sender was told",
    ),
    counter(
        "relay_signal_goodbyes_total",
        &[of("mood", &["direct", "relayed", "failed", "cancelled", "none"])],
        "Peers that left, by how they say it went: direct and relayed are connected",
    ),
    gauge("relay_signal_sockets", &[], "Open WebSockets"),
    gauge(
        "relay_signal_sockets_before_hello",
        &[],
        "WebSockets that have not shown a ticket, bounded by RELAY_SIGNAL_SOCKETS_BEFORE_HELLO",
    ),
    gauge(
        "relay_signal_welcomed_sockets",
        &[],
        "WebSockets in a session, bounded by RELAY_SIGNAL_SOCKETS",
    ),
    gauge(
        "relay_signal_leaving_sockets",
        &[],
        "WebSockets in their closing handshake",
    ),
    counter(
        "relay_signal_refused_sockets_total",
        &[of("full", &["address", "all"])],
        "WebSockets with a ticket for which there was no place (1013), by whose places were taken",
    ),
    counter(
        "relay_signal_closes_total",
        &[REASON],
        "WebSockets that ended, by the words of their close code",
    ),
    counter(
        "relay_turn_vends_total",
        &[of("outcome", &["given", "too_often"])],
        "TURN credentials asked for",
    ),
];

const RECORDS: &[Metric] = &[
    gauge(
        "relay_instance_actors",
        &[],
        "Instances that pushed or signaled lately",
    ),
    counter(
        "relay_instance_actor_restarts_total",
        &[],
        "Instances' actors that panicked and were replaced: a fault of the relay",
    ),
    counter("relay_enrollments_total", &[], "Instances enrolled"),
    counter(
        "relay_abuse_suspensions_total",
        &[],
        "Instances that the relay suspended by itself",
    ),
    gauge("relay_revocations", &[], "Revoked keys that are remembered"),
    counter(
        "relay_store_failed_commits_total",
        &[],
        "Writes that the embedded store could not make durable",
    ),
    counter(
        "relay_store_reopened_total",
        &[],
        "Times that the embedded store came back after a fault",
    ),
];

const REPLICAS: &[Metric] = &[
    gauge(
        "relay_redis_up",
        &[],
        "1 while Redis answers, with REDIS_URL alone",
    ),
    gauge(
        "relay_replicas",
        &[],
        "Replicas that share the limits, as last heard",
    ),
    Metric {
        unit: Unit::Seconds,
        ..gauge(
            "relay_clock_off_seconds",
            &[],
            "How far this machine's clock and Redis' differ; tickets take 60",
        )
    },
    gauge(
        "relay_signal_slots_held",
        &[],
        "Slots of shared sessions whose connection is here",
    ),
    counter(
        "relay_limit_leases_failed_total",
        &[],
        "Leases of shared limits and enrollments that Redis did not answer in time: a local share decides",
    ),
    counter(
        "relay_store_read_anew_total",
        &[],
        "Times that revocations, suspensions and limits were read as a whole, since changes may have been missed",
    ),
];

#[cfg(test)]
mod tests;
