//! Real Redis servers for tests of this crate and of the whole relay: a process each, at an address of its own, gone with
//! its handle. A server's clock can be one that the test moves (`kit/clock.rs`), for all time in sessions is the server's.
//!
//! `RELAY_TEST_REDIS_SERVER` names another program, such as a Valkey:
//!
//! ```sh
//! RELAY_TEST_REDIS_SERVER=valkey-server cargo nextest run -E 'test(redis) + test(shared_)'
//! ```

use std::{
    env, fs,
    net::{SocketAddrV4, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

#[path = "kit/clock.rs"]
mod clock;
#[path = "kit/groups.rs"]
mod groups;
#[path = "kit/place.rs"]
mod place;
use clock::Clock;
use groups::NODE_TIMEOUT;
pub(crate) use groups::{Cluster, Watched};
pub(crate) use place::own_place;

/// Which says what a relay may do. Whoever uses a server's URL here may do no more.
const SAMPLE: &str = include_str!("../../../deploy/redis.conf");
/// Of a locked server, and of Sentinels.
pub(crate) const PASSWORD: &str = "hunter2-hunter2";
/// A server listens, or says what is waited for, within this many looks, 10 ms apart: a machine may be busy.
const LOOKS: usize = 6000;
/// The program that is started, and what names another one.
const REDIS: &str = "redis-server";
const VARIABLE: &str = "RELAY_TEST_REDIS_SERVER";

/// How a server is started.
#[derive(Clone, Copy)]
enum Shape {
    /// By itself, with the system's clock.
    Single,
    /// By itself, with a clock that stands still.
    Frozen,
    /// As a part of a Cluster.
    Node,
    /// With a file that holds every write, so that a restart loses nothing.
    Kept,
    /// By TLS only, and for who knows the password.
    Locked,
    /// To be copied, and watched by Sentinels.
    Master,
    /// With what the server of this place has.
    ReplicaOf(SocketAddrV4),
    /// A Sentinel that watches the server of this place, and how many must find it dead.
    Sentinel(SocketAddrV4, usize),
}

/// A running server.
pub(crate) struct Server {
    child: Option<Child>,
    program: String,
    place: SocketAddrV4,
    shape: Shape,
    /// Where nodes of a Cluster talk.
    bus: u16,
    directory: TempDir,
    clock: Option<Clock>,
}

impl Server {
    /// With the system's clock.
    pub(crate) fn start() -> Self {
        Self::start_with(Shape::Single)
    }

    /// With a clock that stands still.
    pub(crate) fn start_frozen() -> Self {
        Self::start_with(Shape::Frozen)
    }

    /// By itself, of a program that the test is about.
    pub(crate) fn start_program(program: &str) -> Self {
        Self::start_as(program, Shape::Single)
    }

    fn start_with(shape: Shape) -> Self {
        Self::start_as(&program(), shape)
    }

    fn start_as(program: &str, shape: Shape) -> Self {
        let directory = TempDir::new().unwrap();
        let clock = matches!(shape, Shape::Frozen).then(|| Clock::new(directory.path()));
        let mut server = Self {
            child: None,
            program: program.to_owned(),
            place: own_place(),
            shape,
            bus: own_place().port(),
            directory,
            clock,
        };
        server.launch();
        server
    }

    /// One that has everything again after a restart.
    pub(crate) fn start_kept() -> Self {
        Self::start_with(Shape::Kept)
    }

    /// One that speaks TLS and wants [`PASSWORD`].
    pub(crate) fn start_locked() -> Self {
        Self::start_with(Shape::Locked)
    }

    /// The certificate of a locked server, its own authority.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
    }

    pub(crate) fn port(&self) -> u16 {
        self.place.port()
    }

    /// Host and port.
    pub(crate) fn place(&self) -> String {
        self.place.to_string()
    }

    /// Of one who may do everything.
    pub(crate) fn administrators_url(&self) -> String {
        format!("redis://{}", self.place)
    }

    /// Of a relay.
    pub(crate) fn url(&self) -> String {
        if matches!(self.shape, Shape::Locked) {
            return format!("rediss://:{PASSWORD}@{}", self.place);
        }
        format!("redis://{}@{}", login(), self.place)
    }

    /// Ends the process at once. All data is gone.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts it again at the same place.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    /// Lets the time of a frozen server pass.
    pub(crate) fn pass(&self, time: Duration) {
        self.clock.as_ref().unwrap().pass(time);
    }

    /// Stops the process where it is. What is sent to it waits in the kernel.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// What it says to a command.
    pub(crate) fn answer(&self, command: &[&str]) -> String {
        let mut client = self.client();
        if matches!(self.shape, Shape::Sentinel(..)) {
            client.args(["--no-auth-warning", "-a", PASSWORD]);
        }
        let answer = client.args(command).output();
        String::from_utf8(answer.unwrap().stdout).unwrap()
    }

    /// What it says to commands of one connection, one a line.
    pub(crate) fn answers(&self, commands: &str) -> String {
        let input = self.directory.path().join("commands");
        fs::write(&input, commands).unwrap();
        let mut client = self.client();
        client.stdin(fs::File::open(input).unwrap());
        String::from_utf8(client.output().unwrap().stdout).unwrap()
    }

    fn client(&self) -> Command {
        let (host, port) = (self.place.ip().to_string(), self.place.port().to_string());
        let mut client = Command::new("redis-cli");
        client.args(["-h", &host, "-p", &port]);
        client
    }

    /// Waits until the server says something in answer to a command.
    pub(crate) fn until(&self, word: &str, command: &[&str]) {
        for _ in 0..LOOKS {
            if self.answer(command).contains(word) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("in vain: {word}");
    }

    /// A file, for a Sentinel writes into its own.
    fn configuration(&self) -> PathBuf {
        let file = self.directory.path().join("redis.conf");
        let host = self.place.ip();
        let own = match self.shape {
            Shape::Single | Shape::Frozen => String::new(),
            // Whoever is connected to sees 127.0.0.1 otherwise.
            Shape::Master => format!("replica-announce-ip {host}"),
            Shape::Node => format!(
                "cluster-enabled yes\ncluster-port {}\ncluster-announce-ip {host}\n\
                 cluster-node-timeout {NODE_TIMEOUT}",
                self.bus
            ),
            Shape::Kept => "appendonly yes\nappendfsync always".to_owned(),
            Shape::Locked => self.lock(),
            Shape::ReplicaOf(master) => {
                let (ip, port) = (master.ip(), master.port());
                format!("replicaof {ip} {port}\nreplica-announce-ip {host}")
            }
            Shape::Sentinel(master, quorum) => {
                let (ip, port) = (master.ip(), master.port());
                format!(
                    "sentinel monitor main {ip} {port} {quorum}\nsentinel down-after-milliseconds main 2000\n\
                     sentinel failover-timeout main 6000\nsentinel announce-ip {host}\n\
                     requirepass {PASSWORD}\nsentinel sentinel-pass {PASSWORD}"
                )
            }
        };
        let place = format!(
            "port {}\nbind {host}\nloglevel warning\ndir {}",
            self.place.port(),
            self.directory.path().display()
        );
        let data = "save \"\"\nrepl-diskless-sync-delay 0";
        let user = user(&self.shape);
        let (data, user) = if matches!(self.shape, Shape::Sentinel(..)) {
            ("", "")
        } else {
            (data, user.as_str())
        };
        fs::write(&file, [&place, data, user, &own, ""].join("\n")).unwrap();
        file
    }

    fn lock(&self) -> String {
        let own = rcgen::generate_simple_self_signed([self.place.ip().to_string()]).unwrap();
        let key = self.directory.path().join("key.pem");
        fs::write(self.certificate(), own.cert.pem()).unwrap();
        fs::write(&key, own.signing_key.serialize_pem()).unwrap();
        let certificate = self.certificate().display().to_string();
        format!(
            "port 0\ntls-port {}\ntls-auth-clients no\ntls-ca-cert-file {certificate}\n\
             tls-cert-file {certificate}\ntls-key-file {}\nrequirepass {PASSWORD}",
            self.place.port(),
            key.display()
        )
    }

    fn launch(&mut self) {
        let mut command = Command::new(&self.program);
        command
            .arg(self.configuration())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if matches!(self.shape, Shape::Sentinel(..)) {
            command.arg("--sentinel");
        }
        if let Some(clock) = &self.clock {
            clock.give_to(&mut command, self.program == REDIS);
        }
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{} is needed for this test: {error}", self.program));
        let child = self.child.insert(child);
        for _ in 0..LOOKS {
            if TcpStream::connect(self.place).is_ok() {
                return;
            }
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{} ended: {ended:?}", self.program);
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{} does not listen", self.program);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What tests start that don't care.
pub(crate) fn program() -> String {
    env::var(VARIABLE).unwrap_or_else(|_| REDIS.to_owned())
}

/// The user of a relay, with what the sample says is needed in this shape.
fn user(shape: &Shape) -> String {
    let more = match shape {
        Shape::Node => " +cluster|slots",
        Shape::Master | Shape::ReplicaOf(_) => " +role",
        Shape::Single | Shape::Kept | Shape::Frozen | Shape::Locked | Shape::Sentinel(..) => "",
    };
    format!("{}{more}", sample_user())
}

fn sample_user() -> &'static str {
    let mut lines = SAMPLE.lines();
    lines.find(|line| line.starts_with("user relay ")).unwrap()
}

/// How it logs in.
pub(crate) fn login() -> String {
    let mut words = sample_user().split(' ');
    let password = words.find_map(|word| word.strip_prefix('>')).unwrap();
    format!("relay:{password}")
}
