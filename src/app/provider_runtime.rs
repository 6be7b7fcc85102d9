//! A thread and a tokio runtime for one provider, so that its connections and timers wait for nobody else's work,
//! and nobody waits for them.

use std::{io, thread, time::Duration};

use tokio::{runtime::Handle, sync::oneshot};
use tracing::error;

/// How long blocking work (DNS) may go on after the stop; then it is left behind.
const LAST_BLOCKING_WORK: Duration = Duration::from_millis(500);

/// Runs until it is stopped or dropped; what was spawned on it ends with it.
pub(crate) struct ProviderRuntime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl ProviderRuntime {
    /// Starts the thread, named after the provider.
    pub(crate) fn start(name: &'static str) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Either way, sent or dropped, it is the end.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(LAST_BLOCKING_WORK);
        })?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where to spawn.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends what still runs there and waits for the thread.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        let Some(thread) = self.thread.take() else { return };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            error!("a provider's thread panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_runs_on_the_thread_named_after_the_provider() {
        let runtime = ProviderRuntime::start("wns").unwrap();
        let name = runtime
            .handle()
            .spawn(async { thread::current().name().map(str::to_owned) })
            .await
            .unwrap();
        assert_eq!(name.as_deref(), Some("wns"));
        runtime.stop().await;
    }

    #[tokio::test]
    async fn stopping_ends_what_still_runs() {
        let runtime = ProviderRuntime::start("fcm").unwrap();
        let endless = runtime.handle().spawn(std::future::pending::<()>());
        runtime.stop().await;
        assert!(endless.await.unwrap_err().is_cancelled());
    }

    #[tokio::test]
    async fn dropping_ends_what_still_runs() {
        let runtime = ProviderRuntime::start("fcm").unwrap();
        let endless = runtime.handle().spawn(std::future::pending::<()>());
        drop(runtime);
        assert!(endless.await.unwrap_err().is_cancelled());
    }
}
