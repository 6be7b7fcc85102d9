//! The bindings, generated from the built library: Swift and Kotlin are looked through for what apps call, Python is run.
//!
//! The same generator writes all three, over the same C functions. What the Python one does for real, from each error to
//! a registration over HTTP, is shown for the functions that Swift and Kotlin call; their compilers are not part of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test binary has no users, and a helper that fails fails its test"
)]

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::json;
use sovereign_relay_protocol::seal::{DeviceKey, DevicePublicKey, seal};
use tempfile::TempDir;
use uniffi::{GenerateOptions, TargetLanguage};

const LIBRARY: &str = if cfg!(target_os = "macos") {
    "libsovereign_device_ffi.dylib"
} else {
    "libsovereign_device_ffi.so"
};

/// Beside this test's program, where Cargo puts it first.
fn library() -> PathBuf {
    let program = env::current_exe().unwrap();
    program.parent().unwrap().join(LIBRARY)
}

fn generate(language: TargetLanguage) -> TempDir {
    let directory = TempDir::new().unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("uniffi.toml");
    uniffi::generate(GenerateOptions {
        languages: vec![language],
        source: text(&library()).into(),
        out_dir: text(directory.path()).into(),
        config_override: Some(text(&config).into()),
        format: false,
        crate_filter: None,
        metadata_no_deps: true,
    })
    .unwrap();
    directory
}

fn written(directory: &TempDir, path: &str) -> String {
    fs::read_to_string(directory.path().join(path)).unwrap()
}

fn assert_declares(code: &str, declarations: &[&str]) {
    for declaration in declarations {
        assert!(code.contains(declaration), "{declaration:?} is not in the code");
    }
}

#[test]
fn swift_has_what_an_app_calls() {
    let directory = generate(TargetLanguage::Swift);
    let code = written(&directory, "SovereignDevice.swift");
    let declarations = [
        "public protocol DeviceKeyStore",
        "func putIfAbsent(entry: Data) throws  -> Data",
        "open class DeviceStore",
        "static func own(store: DeviceKeyStore)",
        "func openOrMakeKeys()throws  -> DeviceKeys",
        "func existingKeys()throws  -> DeviceKeys?",
        "func `open`(sealed: String)throws  -> PushNotification",
        "static func ios(token: Data)throws  -> DeviceToken",
        "func inEnvironment(environment: ApnsEnvironment) -> DeviceToken",
        "func register(token: DeviceToken, keys: DeviceKeys)async throws",
        "case NotForThisKey(message: String)",
        "case Refused(",
    ];
    assert_declares(&code, &declarations);
    assert!(directory.path().join("SovereignDeviceFFI.h").exists());
    assert!(directory.path().join("SovereignDeviceFFI.modulemap").exists());
}

#[test]
fn kotlin_has_what_an_app_calls() {
    let directory = generate(TargetLanguage::Kotlin);
    let code = written(&directory, "fs/sovereign/device/sovereign_device.kt");
    let declarations = [
        "package fs.sovereign.device",
        "interface DeviceKeyStore",
        "fun `putIfAbsent`(`entry`: kotlin.ByteArray): kotlin.ByteArray",
        "open class DeviceStore",
        "fun `own`(`store`: DeviceKeyStore): DeviceStore",
        "fun `openOrMakeKeys`(): DeviceKeys",
        "fun `open`(`sealed`: kotlin.String): PushNotification",
        "fun `inEnvironment`(`environment`: ApnsEnvironment): DeviceToken",
        "suspend fun `register`(`token`: DeviceToken, `keys`: DeviceKeys)",
        "class NotForThisKey(message: String)",
        "class Refused(",
    ];
    assert_declares(&code, &declarations);
}

/// The driver, which asks for payloads as the pair that it made needs them.
struct Driver {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Driver {
    fn start(module: &TempDir, work: &TempDir) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bindings/driver.py");
        let mut process = Command::new("python3")
            .arg(script)
            .arg(work.path())
            .env("PYTHONPATH", module.path())
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
            .env("XDG_RUNTIME_DIR", work.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self {
            process,
            input,
            output,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

fn fill(bytes: &mut [u8]) {
    // A test's own randomness; the crates' goes through their entropy modules.
    let mut random = fs::File::open("/dev/urandom").unwrap();
    std::io::Read::read_exact(&mut random, bytes).unwrap();
}

#[test]
fn python_makes_a_pair_opens_what_rust_sealed_registers_and_meets_each_error() {
    let module = generate(TargetLanguage::Python);
    fs::copy(library(), module.path().join(LIBRARY)).unwrap();
    let work = TempDir::new().unwrap();
    let mut driver = Driver::start(&module, &work);

    let public = DevicePublicKey::from_base64(&driver.line()).unwrap();
    let another = DeviceKey::generate(fill).unwrap().public_key();
    let text =
        json!({"title": "Ünïcode 👋", "body": "b", "url": "/x", "tag": "t", "data": {"n": 1}}).to_string();
    let payloads = json!({
        "good": seal(&text, &public, fill).unwrap(),
        "bare": seal(r#"{"title":"t"}"#, &public, fill).unwrap(),
        "another": seal(&text, &another, fill).unwrap(),
        "nothing": seal("[]", &public, fill).unwrap(),
    });
    writeln!(driver.input, "{payloads}").unwrap();

    let last = driver.line();
    let status = driver.process.wait().unwrap();
    assert!(
        status.success() && last == "all as it should be",
        "{status}: {last}"
    );
}
