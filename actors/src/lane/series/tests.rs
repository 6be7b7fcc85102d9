use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use sovereign_relay_protocol::time::UnixMillis;

use super::*;
use crate::lane::{
    fuse::{FuseChange, FuseName},
    window::Share,
};

/// Keeps counters and gauges by name and labels.
#[derive(Default)]
struct Notebook(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Notebook {
    fn slot(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let series = format!("{} {}", key.name(), labels.join(","));
        self.0.lock().unwrap().entry(series).or_default().clone()
    }

    fn bits(&self, series: &str) -> Option<u64> {
        let slot = self.0.lock().unwrap().get(series).cloned();
        slot.map(|slot| slot.load(std::sync::atomic::Ordering::SeqCst))
    }
}

impl Recorder for Notebook {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.slot(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.slot(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn an_open_fuse_raises_its_gauge_and_a_closed_one_lowers_it() {
    let notebook = Notebook::default();
    let change = |open| ScopeChange {
        scope: "fcm/project".into(),
        change: FuseChange {
            fuse: FuseName::Conditional,
            open,
            key: None,
            share: Share { bad: 10, tokens: 12 },
        },
        gauge: open,
    };
    let gauge = || {
        notebook
            .bits("relay_fuse_open scope=fcm/project,fuse=conditional")
            .map(f64::from_bits)
    };
    metrics::with_local_recorder(&notebook, || tell_fuses(&[change(true)]));
    assert_eq!(gauge(), Some(1.0));
    metrics::with_local_recorder(&notebook, || tell_fuses(&[change(false)]));
    assert_eq!(gauge(), Some(0.0));
}

#[test]
fn pushes_are_counted_by_provider_result_and_reason() {
    let notebook = Notebook::default();
    metrics::with_local_recorder(&notebook, || {
        let gone = PushAnswer::invalid_token(Reason::Unregistered, UnixMillis(1));
        count_push("fcm", &Verdict::Answer(gone.clone()));
        count_answer("fcm", &gone);
        count_push("fcm", &Verdict::Answer(PushAnswer::sent(None)));
        count_push(
            "wns",
            &Verdict::Unreachable {
                retry_after: Duration::from_secs(1),
            },
        );
        count_push(
            "wns",
            &Verdict::Overloaded {
                retry_after: Duration::from_secs(1),
            },
        );
        tell_breaker("wns", BreakerState::Closed, BreakerState::Open);
    });
    let count = |labels: &str| notebook.bits(&format!("relay_pushes_total {labels}"));
    assert_eq!(
        count("provider=fcm,result=invalid_token,reason=unregistered"),
        Some(2)
    );
    assert_eq!(count("provider=fcm,result=sent,reason="), Some(1));
    assert_eq!(count("provider=wns,result=unreachable,reason="), Some(1));
    assert_eq!(count("provider=wns,result=overloaded,reason="), Some(1));
    assert_eq!(
        notebook
            .bits("relay_breaker_state provider=wns")
            .map(f64::from_bits),
        Some(2.0)
    );
}
