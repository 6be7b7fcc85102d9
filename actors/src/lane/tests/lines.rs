//! Which lines of the log stand in the span of a push's request.

use std::io;

use tracing::{Instrument as _, error_span, subscriber};

use super::*;

/// What is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn start() -> (Self, subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, subscriber::set_default(lines))
    }

    fn lines(&self, message: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .filter(|line| line.contains(message))
            .map(str::to_owned)
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_speaks_in_the_span_of_its_push_and_the_breaker_in_none_of_them() {
    let (log, _guard) = Log::start();
    let bench = bench(Fake::new(1, |_: &Delivery| {
        async {
            tracing::warn!("the answer made no sense");
            Outcome::Failed(Failure {
                reason: Reason::ProviderUnavailable,
                retryable: true,
                retry_after: None,
                hold: Hold::Nothing,
                health: Health::Faulty,
            })
        }
        .boxed()
    }));
    for number in 0..50 {
        let span = error_span!("request", request_id = number);
        let _verdict = bench.lane.deliver(bench.job(1, number)).instrument(span).await;
    }
    let told = log.lines("the answer made no sense");
    assert!(told.len() > 10, "{told:?}");
    for (number, line) in told.iter().enumerate() {
        assert!(
            line.contains(&format!("request{{request_id={number}}}")),
            "{line}"
        );
    }
    let failing = log.lines("provider is failing");
    assert_eq!(failing.len(), 1, "{failing:?}");
    assert!(!failing[0].contains("request_id"), "{failing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_panics_is_told_of_in_the_span_of_the_push_it_had() {
    let (log, _guard) = Log::start();
    let bench = bench(Fake::new(1, |_: &Delivery| {
        panic!("a panic that a test asked for")
    }));
    let span = error_span!("request", request_id = 7);
    let _verdict = bench.lane.deliver(bench.job(1, 1)).instrument(span).await;
    let told = log.lines("provider client panicked");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("request{request_id=7}"), "{told:?}");
}
