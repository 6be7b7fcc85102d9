//! The span of a push's request goes with the push, and ends with it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tracing::{Id, Instrument as _, Subscriber, error_span, span::Attributes, subscriber};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

use super::support::*;
use crate::push::{Push, Refusal};

/// Spans that nobody has ended.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl<S: Subscriber> Layer<S> for Alive {
    fn on_new_span(&self, _: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn on_close(&self, _: Id, _: Context<'_, S>) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn begin(bench: &Bench, push: Push) -> tokio::task::JoinHandle<Result<crate::push::Answered, Refusal>> {
    let registry = bench.registry.clone();
    let request = async move { registry.push(instance(1), push).await };
    tokio::spawn(request.instrument(error_span!("request")))
}

#[test]
fn a_span_lives_as_long_as_its_push_and_no_longer_however_that_ends() {
    let alive = Alive::default();
    let _guard = subscriber::set_default(tracing_subscriber::registry().with(alive.clone()));
    run(|| async {
        let bench = Bench::new();
        let first = begin(&bench, keyed(1, 7));
        eventually("the lane has it", || bench.lane.calls() == 1).await;
        let repeat = begin(&bench, keyed(1, 7));
        eventually("it waits for the first", || bench.registry.is_waiting(7)).await;
        let others = [UNREACHABLE, LANE_POISON, POISON, GONE].map(|token| begin(&bench, push(token)));
        eventually("the lane has the others", || bench.lane.calls() == 4).await;
        assert!(alive.count() >= 5, "each that is under way has its own");
        first.abort();
        repeat.abort();
        eventually("their callers are gone", || {
            first.is_finished() && repeat.is_finished()
        })
        .await;
        assert!(alive.count() >= 4, "the first goes on without its caller");
        bench.lane.open(10);
        for other in others {
            let _outcome = other.await.unwrap();
        }
        bench.is_quiet().await;
        eventually("no span is left", || alive.count() == 0).await;
    });
}
