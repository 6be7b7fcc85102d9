//! `push`: the same pushes straight at the APNs simulator and through the relay.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use http_body_util::Full;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use serde_json::json;
use sovereign_relay_simulator::{SimulatorOptions, Simulators};

use crate::{
    connections::{Http1, Http2},
    instance,
    process::RelayProcess,
    report::{self, Row},
    run::{self, Call, Measured, Pace},
};

/// Instances that push, each within its own limit of 600 a minute and burst 600: enough for 1.2 million pushes.
const INSTANCES: u64 = 2000;
/// Devices that are pushed to in turn, so that no device's limit is met.
const DEVICES: u64 = 500_000;
/// A notification of ordinary length: 512 bytes of padded JSON, sealed and in base64.
const PAYLOAD_BYTES: usize = 808;
const WARM_UP: Duration = Duration::from_secs(2);

/// `push`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Callers at once in the closed loop, which finds the most pushes a second
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// Calls a second in the open loop, which finds the latency under a load that does not wait
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    let simulators = Simulators::start(SimulatorOptions::default()).await?;
    simulators.set_recording(false);
    let directory = tempfile::tempdir()?;
    let secret = instance::random_secret();
    let mut environment = simulators.relay_environment(&simulators.write_ca(directory.path())?);
    environment.push(("RELAY_ENROLLMENT_SECRET".to_owned(), secret.clone()));
    let relay = RelayProcess::start(&environment, directory.path()).await?;

    let straight = Arc::new(Straight::new(&simulators).await?);
    let through = Arc::new(Through::new(&relay, &secret)?);
    let mut report = Vec::new();
    let duration = Duration::from_secs(options.seconds);
    for pace in [Pace::Callers(options.callers), Pace::PerSecond(options.rate)] {
        run::run(Arc::clone(&straight), pace, WARM_UP).await?;
        let measured = run::run(Arc::clone(&straight), pace, duration).await?;
        report.push(Measurement::new("straight at the simulator", pace, &measured));
        run::run(Arc::clone(&through), pace, WARM_UP).await?;
        let before = relay.process.cpu_seconds()?;
        let measured = run::run(Arc::clone(&through), pace, duration).await?;
        let cpu = relay.process.cpu_seconds()? - before;
        report.push(
            Measurement::new("through the relay", pace, &measured).with_process(
                &measured,
                cpu,
                relay.process.resident_kib()?,
            ),
        );
    }
    report::print(&report, options.json)?;
    simulators.stop().await;
    Ok(())
}

/// Posts to the APNs simulator as the relay would.
struct Straight {
    connection: Http2,
    authorization: String,
    topic: String,
    body: Bytes,
}

impl Straight {
    async fn new(simulators: &Simulators) -> anyhow::Result<Self> {
        let (key, options) = (simulators.apns.key(), simulators.apns.options());
        let header = Header {
            kid: Some(key.key_id.clone()),
            typ: None,
            ..Header::new(Algorithm::ES256)
        };
        let claims = json!({ "iss": options.team_id, "iat": instance::unix_seconds() });
        let jwt = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ec_pem(key.pem.as_bytes())?)?;
        let body = json!({
            "aps": { "mutable-content": 1, "alert": { "title": " " }, "sound": "default" },
            "encryptedPayload": "x".repeat(PAYLOAD_BYTES),
        });
        Ok(Self {
            connection: Http2::to(simulators.apns.port(), &simulators.ca_pem).await?,
            authorization: format!("bearer {jwt}"),
            topic: options.bundle_id.clone(),
            body: body.to_string().into(),
        })
    }

    async fn post(&self, number: u64) -> anyhow::Result<bool> {
        let request = Request::post(format!("https://localhost/3/device/{}", token(number)))
            .header(AUTHORIZATION, &self.authorization)
            .header("apns-topic", &self.topic)
            .header("apns-push-type", "alert")
            .header("apns-priority", "10")
            .body(Full::new(self.body.clone()))?;
        Ok(self.connection.call(request).await?.0 == 200)
    }
}

impl Call for Straight {
    async fn call(&self, number: u64) -> bool {
        self.post(number).await.unwrap_or(false)
    }
}

/// Posts to the relay as an instance does.
struct Through {
    connections: Http1,
    host: String,
    keys: Vec<String>,
    payload: String,
}

impl Through {
    fn new(relay: &RelayProcess, secret: &str) -> anyhow::Result<Self> {
        let keys = (0..INSTANCES)
            .map(|_| instance::key(secret))
            .collect::<anyhow::Result<_>>()?;
        let host = relay.url.trim_start_matches("http://").to_owned();
        Ok(Self {
            connections: Http1::to(&relay.url)?,
            host,
            keys,
            payload: "x".repeat(PAYLOAD_BYTES),
        })
    }

    async fn post(&self, number: u64) -> anyhow::Result<bool> {
        let index = usize::try_from(number % INSTANCES)?;
        let key = self.keys.get(index).context("no such instance")?;
        let body =
            json!({ "deviceToken": token(number), "platform": "ios", "encryptedPayload": self.payload });
        let request = Request::post("/v1/push")
            .header("host", &self.host)
            .header(AUTHORIZATION, format!("Bearer {key}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))?;
        let (status, answer) = self.connections.call(request).await?;
        Ok(status == 200 && answer.starts_with(b"{\"result\":\"sent\""))
    }
}

impl Call for Through {
    async fn call(&self, number: u64) -> bool {
        self.post(number).await.unwrap_or(false)
    }
}

fn token(number: u64) -> String {
    format!("{:064x}", number % DEVICES)
}

/// One measurement.
#[derive(Serialize)]
struct Measurement {
    target: &'static str,
    pace: String,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    failed: u64,
    /// Processor time of the relay a push, user and system.
    cpu_micros: Option<f64>,
    resident_kib: Option<u64>,
}

impl Measurement {
    fn new(target: &'static str, pace: Pace, measured: &Measured) -> Self {
        Self {
            target,
            pace: pace.to_string(),
            per_second: measured.per_second(),
            p50_ms: measured.millis(0.5),
            p99_ms: measured.millis(0.99),
            failed: measured.failed,
            cpu_micros: None,
            resident_kib: None,
        }
    }

    fn with_process(self, measured: &Measured, cpu_seconds: f64, resident_kib: u64) -> Self {
        let pushes = measured.latency.len().max(1) as f64;
        Self {
            cpu_micros: Some(cpu_seconds * 1e6 / pushes),
            resident_kib: Some(resident_kib),
            ..self
        }
    }
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "target",
        "load",
        "pushes/s",
        "p50 ms",
        "p99 ms",
        "failed",
        "relay CPU us/push",
        "relay RSS MiB",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.target.to_owned(),
            self.pace.clone(),
            format!("{:.0}", self.per_second),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
            self.failed.to_string(),
            report::or_dash(self.cpu_micros.map(|micros| format!("{micros:.0}"))),
            report::or_dash(self.resident_kib.map(|kib| (kib / 1024).to_string())),
        ]
    }
}
