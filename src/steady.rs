//! Work that goes on for as long as the relay runs, whatever becomes of one turn of it.
//!
//! Used by `app`, `store` and `provider` for tasks of which nobody would notice the end: they follow what other replicas
//! do, keep connections and tokens, and forget what is over. A panic in one is a bug, logged by its place ([`crate::app::log_panics`]); the
//! work begins anew, so that the bug costs a moment and not all that would come after.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt as _;
use metrics::counter;
use tokio::time::sleep;
use tracing::error;

/// Before it begins anew: a panic that comes each time must not fill the log.
const PAUSE: Duration = Duration::from_secs(1);

/// Does `work` until it ends by itself, from its beginning after a panic.
pub(crate) async fn steadily<F: Future<Output = ()>>(what: &'static str, mut work: impl FnMut() -> F) {
    while AssertUnwindSafe(async { work().await })
        .catch_unwind()
        .await
        .is_err()
    {
        note_panic(what);
        sleep(PAUSE).await;
    }
}

/// Counts a panic of work that begins anew.
pub(crate) fn note_panic(what: &'static str) {
    counter!("relay_task_restarts_total").increment(1);
    error!(what, "panicked, and begins anew: a fault of the relay");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    #[allow(clippy::disallowed_methods, reason = "the paused clock")]
    async fn work_that_panics_begins_anew_after_a_pause_and_ends_when_it_ends() {
        let (began, turns) = (Instant::now(), AtomicU32::new(0));
        steadily("a test", || {
            let turn = turns.fetch_add(1, Ordering::SeqCst);
            assert_ne!(turn, 0, "a panic at once, as the test asks");
            async move {
                sleep(Duration::from_millis(500)).await;
                assert_ne!(turn, 1, "a panic later, as the test asks");
            }
        })
        .await;
        assert_eq!(turns.load(Ordering::SeqCst), 3);
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
