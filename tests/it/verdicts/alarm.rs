//! What the operator hears of a provider that refuses the relay itself.
//!
//! Each refusal is counted by provider and reason. A reason is logged when it comes for the first time, and then at most
//! every ten seconds, so a table of some length may hear of one again.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::support::relay::Relay;

const COUNTER: &str = "relay_provider_refuses_relay_total";
const LINE: &str = "the provider refuses the relay";

/// One of them.
pub(super) struct Refusal {
    pub(super) provider: &'static str,
    pub(super) status: u16,
    pub(super) request_id: String,
}

/// What has been heard so far.
pub(super) struct Alarm {
    /// By labels.
    counted: BTreeMap<String, u64>,
    logged: HashSet<String>,
}

impl Alarm {
    pub(super) async fn of(relay: &Relay) -> Self {
        Self {
            counted: counters(relay).await,
            logged: HashSet::new(),
        }
    }

    /// Since the last time there was this refusal, or none.
    pub(super) async fn tells(&mut self, relay: &mut Relay, refusal: Option<Refusal>, context: &str) {
        let counted = counters(relay).await;
        let rises: Vec<_> = counted
            .iter()
            .map(|(labels, count)| (labels, count - self.counted.get(labels).unwrap_or(&0)))
            .filter(|(_, rise)| *rise > 0)
            .collect();
        let Some(refusal) = refusal else {
            assert!(rises.is_empty(), "{context}: {rises:?}");
            return;
        };
        let [(labels, 1)] = rises[..] else {
            panic!("one refusal after {context}: {rises:?}");
        };
        assert_eq!(label(labels, "provider"), refusal.provider, "{context}");
        let reason = label(labels, "reason").to_owned();
        self.counted = counted;
        if self.logged.insert(reason.clone()) {
            is_logged(relay, &refusal, &reason).await;
        }
    }
}

async fn is_logged(relay: &mut Relay, refusal: &Refusal, reason: &str) {
    let line = loop {
        let line: Value = serde_json::from_str(&relay.logged(LINE).await).unwrap();
        // Before it there may be a reason that was told already.
        if line["reason"] == reason {
            break line;
        }
    };
    assert_eq!(line["level"], "ERROR", "{line}");
    assert_eq!(line["provider"], refusal.provider, "{line}");
    assert_eq!(line["status"], refusal.status, "{line}");
    assert_eq!(line["span"]["request_id"], *refusal.request_id, "{line}");
}

async fn counters(relay: &Relay) -> BTreeMap<String, u64> {
    let text = relay.metrics().await;
    let series = text.lines().filter_map(|line| line.strip_prefix(COUNTER));
    series
        .map(|series| {
            let (labels, count) = series.rsplit_once(' ').unwrap();
            (labels.to_owned(), count.parse().unwrap())
        })
        .collect()
}

fn label<'a>(labels: &'a str, name: &str) -> &'a str {
    let (_, rest) = labels.split_once(&format!("{name}=\"")).unwrap();
    rest.split('"').next().unwrap()
}
