//! `/metrics` after pushes to all platforms and a session of two peers: all of it is in the table, and described.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use sovereign_relay::telemetry::names::{Kind, Metric, SECTIONS};
use sovereign_relay_protocol::platform::Platform;

use crate::support::{
    peer::load,
    relay::{Relay, RelayOptions},
    world::World,
};

fn known(name: &str) -> &'static Metric {
    let mut all = SECTIONS.iter().flat_map(|section| section.metrics);
    let metric = all.find(|metric| {
        name == metric.name
            || metric.kind == Kind::Histogram
                && ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|suffix| name.strip_suffix(suffix) == Some(metric.name))
    });
    metric.unwrap_or_else(|| panic!("{name} is not in the table"))
}

/// A line of numbers: the name and its labels. No value of the relay holds a comma or a quote.
fn series(line: &str) -> (&str, BTreeMap<&str, &str>) {
    let (series, _value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').unwrap().split("\",");
    let pairs = labels.filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once("=\"").unwrap();
        (name, value.trim_end_matches('"'))
    });
    (name, pairs.collect())
}

/// Checks one line against the table; the metric that it belongs to.
fn check(line: &str) -> &'static Metric {
    let (name, mut labels) = series(line);
    let metric = known(name);
    if metric.kind == Kind::Histogram {
        labels.remove("le");
    }
    let names: BTreeSet<_> = metric.labels.iter().map(|label| label.name).collect();
    assert_eq!(labels.keys().copied().collect::<BTreeSet<_>>(), names, "{line}");
    for label in metric.labels.iter().filter(|label| !label.values.is_empty()) {
        assert!(label.values.contains(&labels[label.name]), "{line}");
    }
    metric
}

#[tokio::test]
async fn all_that_a_scrape_shows_is_in_the_table_with_its_labels_and_is_described() {
    let world = World::start().await;
    let relay = &world.relay;
    let instance = relay.enroll().await;
    for platform in Platform::ALL {
        let token = world.address(platform);
        let push =
            json!({ "platform": platform.as_str(), "deviceToken": token, "encryptedPayload": "sealed" });
        assert_eq!(relay.push(&instance, &push).await.body["result"], "sent");
    }
    let session = relay.open_session(&instance).await;
    let (mut a, _) = session.join("a", load(1)).await;
    let (mut b, _) = session.join("b", load(2)).await;
    a.message(1, "offer").await;
    assert_eq!(b.next_of("msg").await["d"], "offer");
    a.send(json!({ "t": "bye", "mood": "direct" })).await;
    a.end().await;

    let scraped = relay.metrics().await;
    let lines = scraped
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let shown: BTreeMap<_, _> = lines.map(check).map(|metric| (metric.name, metric)).collect();
    assert!(shown.len() > 25, "{:?}", shown.keys());
    for (name, metric) in shown {
        let described = format!(
            "# HELP {name} {}\n# TYPE {name} {}\n",
            metric.help,
            metric.kind.as_str()
        );
        assert!(scraped.contains(&described), "{described}{scraped}");
    }
}

#[tokio::test]
async fn a_counter_whose_labels_are_known_begins_at_zero() {
    let relay = Relay::start(RelayOptions::new()).await;
    let scraped = relay.metrics().await;
    for line in [
        "relay_store_failed_commits_total 0",
        "relay_signal_goodbyes_total{mood=\"relayed\"} 0",
        "relay_apns_connections_ended_total{provider=\"apns-sandbox\",reason=\"silent\"} 0",
    ] {
        assert!(scraped.lines().any(|shown| shown == line), "{line} in {scraped}");
    }
    assert!(
        !scraped.contains("\nrelay_pushes_total{"),
        "its reasons are not listed: {scraped}"
    );
}
