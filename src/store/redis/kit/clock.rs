//! Clocks that stand still until the test moves them, by libfaketime (Debian: `faketime`).

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use time::{OffsetDateTime, macros::format_description};

/// When they begin, in milliseconds.
const BEGIN: u64 = 1_800_000_000_000;
const SDALLOCX: &str = "#include <stdlib.h>\n\
    void sdallocx(void *memory, size_t size, int flags) { (void)size; (void)flags; free(memory); }\n";

/// The time of one server.
pub(super) struct Clock {
    directory: PathBuf,
    millis: AtomicU64,
}

impl Clock {
    pub(super) fn new(directory: &Path) -> Self {
        let clock = Self {
            directory: directory.to_owned(),
            millis: AtomicU64::new(BEGIN),
        };
        clock.pass(Duration::ZERO);
        clock
    }

    pub(super) fn pass(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).unwrap();
        let millis = self.millis.fetch_add(time, Ordering::SeqCst) + time;
        // In the middle of the millisecond, for libfaketime counts in floating point.
        let nanos = i128::from(millis) * 1_000_000 + 500_000;
        let format =
            format_description!("[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:6]");
        let text = OffsetDateTime::from_unix_timestamp_nanos(nanos)
            .unwrap()
            .format(format)
            .unwrap();
        // Never half written: the server reads it at each look at the clock.
        let fresh = self.directory.join("clock.new");
        fs::write(&fresh, text).unwrap();
        fs::rename(fresh, self.file()).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.directory.join("clock")
    }

    /// Redis's allocator asks for the time before libfaketime is ready, so the C library's takes its place.
    pub(super) fn give_to(&self, command: &mut Command, is_redis: bool) {
        let mut libraries = vec![library()];
        // Valkey also frees by a function that the C library has not.
        if !is_redis {
            libraries.push(self.build_free());
        }
        libraries.push("libc.so.6".into());
        let libraries: Vec<_> = libraries
            .iter()
            .map(|library| library.display().to_string())
            .collect();
        command
            .env("LD_PRELOAD", libraries.join(":"))
            .env("FAKETIME_TIMESTAMP_FILE", self.file())
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }

    /// `sdallocx` of jemalloc, for memory of the C library.
    fn build_free(&self) -> PathBuf {
        let [source, library] = ["free.c", "free.so"].map(|name| self.directory.join(name));
        fs::write(&source, SDALLOCX).unwrap();
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status();
        assert!(built.unwrap().success());
        library
    }
}

fn library() -> PathBuf {
    let places = fs::read_dir("/usr/lib").unwrap().flatten();
    places
        .map(|place| place.path().join("faketime/libfaketimeMT.so.1"))
        .chain(["/usr/lib/faketime/libfaketimeMT.so.1".into()])
        .find(|library| library.exists())
        .expect("libfaketime is installed")
}
