//! Programs of others that tests drive. `scripts/test` installs them; a test that misses one fails and says so.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Debian's package of the library serves Debian's Python only, which need not be the first one.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// A Chromium.
pub fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let mut found = folders.flat_map(|folder| BROWSERS.map(|name| folder.join(name)));
    found
        .find(|candidate| candidate.is_file())
        .expect("Chromium is needed for this test: scripts/test installs Debian's")
}

/// A Python that has the library `cryptography`.
pub fn python_with_cryptography() -> &'static str {
    let has_library = |python: &&str| {
        let mut command = Command::new(python);
        command.args(["-c", "import cryptography"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    PYTHONS
        .into_iter()
        .find(has_library)
        .expect("Python's cryptography is needed for this test: scripts/test installs Debian's")
}
