//! Where the calls of an app run: one thread of ours, started with the first call.
//!
//! Swift's and Kotlin's executors poll what they are given, but have no sockets for reqwest. Invariant: a call whose
//! caller stopped waiting is ended.

use std::{
    io,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll},
};

use tokio::{
    runtime::{Builder, Runtime},
    task::{JoinError, JoinHandle},
};

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Runs `future` on our thread; may be awaited from any executor.
pub(crate) fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<Call<T>> {
    Ok(Call(runtime()?.spawn(future)))
}

/// A call under way.
pub(crate) struct Call<T>(JoinHandle<T>);

impl<T> Future for Call<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn runtime() -> io::Result<&'static Runtime> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("sovereign-device")
        .enable_all()
        .build()?;
    // Of two that come first at once, one runtime is dropped before it has run anything.
    Ok(RUNTIME.get_or_init(|| made))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Ended(mpsc::Sender<()>);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn a_call_whose_caller_stopped_waiting_is_ended() {
        let (sender, ended) = mpsc::channel();
        let guard = Ended(sender);
        let call = spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        drop(call.unwrap());
        ended.recv().unwrap();
    }
}
