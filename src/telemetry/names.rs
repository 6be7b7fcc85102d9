//! Every metric of the relay: its name, kind, unit, labels and meaning.
//!
//! Metrics are counted where things happen, by name. This table is what `/metrics` says about them (`# HELP`) and what
//! `docs/METRICS.md` is compared with. Tests compare it with the sources and with a scrape: a metric that isn't here,
//! a label or a value that isn't, and a line here that nothing counts all fail.
//!
//! Called once by [`super::Metrics::install`]. Counters whose labels are all of closed sets begin at 0, so that a rate
//! over the first event is seen; others, and gauges, show up with their first value. The tables stand in files by what
//! they are about; here is how they are written and read.

mod push;
mod serving;
mod signaling;
mod store;
#[cfg(test)]
mod tests;

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
        metrics: push::PUSHES,
    },
    Section {
        title: "Providers",
        metrics: push::PROVIDERS,
    },
    Section {
        title: "HTTP",
        metrics: serving::HTTP,
    },
    Section {
        title: "Configuration",
        metrics: serving::CONFIGURATION,
    },
    Section {
        title: "Signaling",
        metrics: signaling::SIGNALING,
    },
    Section {
        title: "Instances and records",
        metrics: store::RECORDS,
    },
    Section {
        title: "Replicas",
        metrics: store::REPLICAS,
    },
];
