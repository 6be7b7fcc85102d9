//! A PostgreSQL server of the test's own: made in a temporary directory, reached through a socket in it, killed when
//! dropped. It refuses to run as root, so that a root's test starts it as another user.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::JoinHandle,
};

use sqlx::{Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;

/// `nobody` on every Linux.
const UNPRIVILEGED: u32 = 65534;

/// A running server.
pub(crate) struct Server {
    child: Child,
    /// Reads on, so that the server never waits for its log to be taken.
    log: Option<JoinHandle<()>>,
    directory: TempDir,
}

impl Server {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        if is_root() {
            std::os::unix::fs::chown(directory.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
        let data = directory.path().join("data");
        let made = command("initdb")
            .arg("-D")
            .arg(&data)
            .args([
                "--username=push",
                "--auth=trust",
                "--no-sync",
                "--no-locale",
                "--encoding=UTF8",
            ])
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let mut child = command("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(directory.path())
            .args(["-c", "listen_addresses=", "-c", "fsync=off"])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.find(|line| line.as_ref().unwrap().contains("ready to accept connections"));
        ready.expect("the server starts").unwrap();
        let log = Some(std::thread::spawn(move || lines.for_each(drop)));
        Self {
            child,
            log,
            directory,
        }
    }

    /// The address of a new, empty database.
    pub(crate) async fn database(&self, name: &str) -> String {
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        let create = format!("CREATE DATABASE \"{name}\"");
        connection.execute(sqlx::AssertSqlSafe(create)).await.unwrap();
        connection.close().await.unwrap();
        self.url(name)
    }

    fn url(&self, database: &str) -> String {
        format!(
            "postgres://push@localhost/{database}?host={}",
            self.directory.path().display()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors are of no use here: it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(log) = self.log.take() {
            let _ = log.join();
        }
    }
}

fn command(program: &str) -> Command {
    let program = find(program);
    if !is_root() {
        return clean(Command::new(program));
    }
    let mut command = clean(Command::new("setpriv"));
    let user = UNPRIVILEGED;
    command
        .arg(format!("--reuid={user}"))
        .arg(format!("--regid={user}"))
        .args(["--clear-groups", "--pdeathsig=KILL"])
        .arg(program);
    command
}

/// The log has to be in English, and no other server may be meant.
fn clean(mut command: Command) -> Command {
    command
        .env("LC_ALL", "C")
        .env_remove("PGDATA")
        .stdin(Stdio::null());
    command
}

/// On the `PATH`, or where Debian keeps it beside other versions.
fn find(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = versions.map(|version| version.unwrap().path().join("bin"));
    std::env::split_paths(&path)
        .chain(debian)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .expect("PostgreSQL is needed for this test: scripts/test installs Debian's")
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|process| process.uid() == 0)
}
