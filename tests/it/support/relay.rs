//! A relay as its operator runs it: the binary, an environment, a data directory.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

pub use super::answer::{Answer, Instance};
use super::{
    DEADLINE,
    command::{self, Ended},
    log::{self, Log},
};

/// What to start.
#[derive(Clone, Default)]
pub struct RelayOptions {
    environment: Vec<(String, String)>,
    left_out: Vec<String>,
    data_dir: Option<PathBuf>,
}

impl RelayOptions {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable; the last one of a name holds.
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Leaves a variable out, whoever set it.
    pub fn without(mut self, name: &str) -> Self {
        self.left_out.push(name.to_owned());
        self
    }

    /// Puts variables below those already set.
    pub fn under(mut self, variables: Vec<(String, String)>) -> Self {
        self.environment.splice(0..0, variables);
        self
    }

    /// Keeps its state where another relay had it.
    pub fn data_dir(mut self, path: &Path) -> Self {
        self.data_dir = Some(path.to_owned());
        self
    }
}

/// A running relay; killed when dropped.
pub struct Relay {
    child: Child,
    log: Log,
    data_dir: PathBuf,
    pub url: String,
    pub admin_url: String,
    http: reqwest::Client,
    _own_data_dir: Option<TempDir>,
}

/// A relay that did not start.
#[derive(Debug)]
pub struct StartFailure {
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    pub log: String,
}

impl Relay {
    pub fn binary() -> &'static str {
        env!("CARGO_BIN_EXE_sovereign-relay")
    }

    /// Starts it on free loopback ports and waits until it listens.
    pub async fn start(options: RelayOptions) -> Self {
        match Self::try_start(options).await {
            Ok(relay) => relay,
            Err(failure) => panic!("the relay ended at start:\n{}", failure.log),
        }
    }

    /// How it ended, where it refused to start.
    pub async fn try_start(options: RelayOptions) -> Result<Self, StartFailure> {
        let own_data_dir = options.data_dir.is_none().then(|| TempDir::new().unwrap());
        let data_dir = options
            .data_dir
            .clone()
            .unwrap_or_else(|| own_data_dir.as_ref().unwrap().path().to_owned());
        let mut child = spawn(&options, &data_dir);
        let mut log = Log::follow(child.stderr.take().unwrap());
        let Some(line) = log.line_with(&["\"serving\"", ": serving "]).await else {
            let status = child.wait().await.expect("it has ended");
            return Err(StartFailure {
                code: status.code(),
                log: log.text(),
            });
        };
        let address = |name: &str| -> SocketAddr { log::field(&line, name).parse().unwrap() };
        let (url, admin_url) = (
            format!("http://{}", address("public")),
            format!("http://{}", address("admin")),
        );
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Ok(Self {
            child,
            log,
            data_dir,
            url,
            admin_url,
            http,
            _own_data_dir: own_data_dir,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits for a log line that holds `text`.
    pub async fn logged(&mut self, text: &str) -> String {
        self.log
            .line_with(&[text])
            .await
            .unwrap_or_else(|| panic!("the log ended without {text}:\n{}", self.log()))
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::from(self.request(Method::GET, path)).await
    }

    pub async fn enroll(&self) -> Instance {
        let answer = Answer::from(self.request(Method::POST, "/v1/enroll")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = |name: &str| answer.body[name].as_str().unwrap().to_owned();
        Instance {
            id: text("instanceId"),
            key: text("instanceKey"),
        }
    }

    /// Enrolls as a client behind a trusted proxy.
    pub async fn enroll_from(&self, address: &str) -> Instance {
        let request = self.request(Method::POST, "/v1/enroll");
        let answer = Answer::from(request.header("x-forwarded-for", address)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = |name: &str| answer.body[name].as_str().unwrap().to_owned();
        Instance {
            id: text("instanceId"),
            key: text("instanceKey"),
        }
    }

    /// Something that goes on calling while the test does other things with the relay.
    pub fn caller(&self) -> Caller {
        Caller {
            url: self.url.clone(),
            http: self.http.clone(),
        }
    }

    pub fn push_request(&self, instance: &Instance, body: &Value) -> RequestBuilder {
        self.request(Method::POST, "/v1/push")
            .bearer_auth(&instance.key)
            .json(body)
    }

    pub async fn push(&self, instance: &Instance, body: &Value) -> Answer {
        Answer::from(self.push_request(instance, body)).await
    }

    pub fn batch_request(&self, instance: &Instance, messages: &[Value]) -> RequestBuilder {
        let body = serde_json::json!({ "messages": messages });
        let request = self.request(Method::POST, "/v1/push/batch");
        request.bearer_auth(&instance.key).json(&body)
    }

    pub async fn batch(&self, instance: &Instance, messages: &[Value]) -> Answer {
        Answer::from(self.batch_request(instance, messages)).await
    }

    /// A request to the admin API with the token that the relay made for itself.
    pub fn admin_request(&self, method: Method, path: &str) -> RequestBuilder {
        let token = std::fs::read_to_string(self.data_dir.join("admin-token")).expect("an admin token");
        self.http
            .request(method, format!("{}{path}", self.admin_url))
            .bearer_auth(token.trim())
    }

    /// A call to the admin API.
    pub async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let mut request = self.admin_request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        Answer::from(request).await
    }

    pub async fn metrics(&self) -> String {
        let response = self
            .http
            .get(format!("{}/metrics", self.admin_url))
            .send()
            .await
            .unwrap();
        response.text().await.unwrap()
    }

    /// The sum of a metric over the label sets that hold `labels`.
    pub async fn metric(&self, name: &str, labels: &str) -> f64 {
        let text = self.metrics().await;
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(labels));
        lines
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum()
    }

    /// Runs the command line against this relay.
    pub async fn cli(&self, arguments: &[&str]) -> Ended {
        let environment = [
            ("RELAY_DATA_DIR", &*self.data_dir.to_string_lossy()),
            ("RELAY_ADMIN_LISTEN", self.admin_url.trim_start_matches("http://")),
            ("RELAY_LISTEN", self.url.trim_start_matches("http://")),
        ];
        command::run(arguments, &environment).await
    }

    /// kill -9.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// kill -9, whoever else holds it.
    pub fn kill_now(&self) {
        self.signal("-KILL");
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// SIGHUP.
    pub fn hang_up(&self) {
        self.signal("-HUP");
    }

    fn signal(&self, signal: &str) {
        let pid = self.pid().to_string();
        let status = std::process::Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Waits for the process to end by itself.
    pub async fn ended(mut self) -> (std::process::ExitStatus, String) {
        let status = timeout(DEADLINE, self.child.wait())
            .await
            .expect("it ends")
            .unwrap();
        self.log.ended().await;
        (status, self.log.text())
    }

    /// Sockets and files it has open.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid()))
            .unwrap()
            .count()
    }

    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches("kB").trim().parse().unwrap()
    }
}

/// On free loopback ports and apart from whatever the machine keeps, unless the options say otherwise.
fn spawn(options: &RelayOptions, data_dir: &Path) -> Child {
    let own = [
        ("RELAY_LISTEN", "127.0.0.1:0"),
        ("RELAY_ADMIN_LISTEN", "127.0.0.1:0"),
        ("RELAY_DATA_DIR", &*data_dir.to_string_lossy()),
        ("RELAY_LOG", "info"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = own
        .iter()
        .chain(&options.environment)
        .filter(|(name, _)| !options.left_out.contains(name));
    Command::new(Relay::binary())
        .env_clear()
        .envs(environment.cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary starts")
}

/// A caller of its own.
pub struct Caller {
    url: String,
    http: reqwest::Client,
}

impl Caller {
    /// Calls whatever is there.
    pub fn of(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// One push; the error where no answer came.
    pub async fn try_push(&self, instance: &Instance, body: &Value) -> Result<Answer, reqwest::Error> {
        let request = self
            .http
            .post(format!("{}/v1/push", self.url))
            .bearer_auth(&instance.key)
            .json(body);
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let answer = Answer {
            status,
            headers,
            body: response.json().await?,
        };
        Ok(answer.documented("POST", "/v1/push"))
    }
}
