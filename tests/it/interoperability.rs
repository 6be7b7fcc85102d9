//! The sealed payload in five languages: each opens what each made, and refuses what it must. The programs, and what
//! they are asked, are described in `tests/interoperability/README.md`.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::Deserialize;
use sovereign_relay_protocol::seal::{DeviceKey, DevicePublicKey, open, seal};

use crate::support::programs::{browser, python_with_cryptography};

const VECTORS: &str = include_str!("../../protocol/vectors/sealed-payload.json");

/// A device's key pair, in base64.
struct Pair {
    scalar: String,
    public: String,
}

/// One that can make and open sealed payloads. `None` means that it refused.
trait Party {
    fn name(&self) -> &'static str;
    fn generate(&mut self) -> Pair;
    fn seal(&mut self, public: &str, text: &str) -> Option<String>;
    fn open(&mut self, pair: &Pair, sealed: &str) -> Option<String>;
}

/// This project's own crate.
struct Rust;

impl Party for Rust {
    fn name(&self) -> &'static str {
        "Rust"
    }

    fn generate(&mut self) -> Pair {
        let key = DeviceKey::generate(random).unwrap();
        Pair {
            scalar: BASE64.encode(*key.expose_scalar()),
            public: key.public_key().to_base64(),
        }
    }

    fn seal(&mut self, public: &str, text: &str) -> Option<String> {
        seal(text, &DevicePublicKey::from_base64(public).ok()?, random).ok()
    }

    fn open(&mut self, pair: &Pair, sealed: &str) -> Option<String> {
        let key = DeviceKey::from_scalar(&BASE64.decode(&pair.scalar).unwrap())?;
        open(sealed, &key).ok()
    }
}

/// A program in another language, asked line by line.
struct Program {
    name: &'static str,
    process: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Program {
    fn start(name: &'static str, command: &str, script: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/interoperability")
            .join(script);
        let mut process = Command::new(command)
            .arg(script)
            .env("CHROMIUM", browser())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{command} is needed for this test ({error}): scripts/test installs it")
            });
        Self {
            name,
            calls: process.stdin.take().unwrap(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    /// The fields of its answer, unless it refused.
    fn ask(&mut self, call: &str) -> Option<String> {
        writeln!(self.calls, "{call}").unwrap();
        self.calls.flush().unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        match answer.trim_end().split_once(' ') {
            Some(("ok", result)) => Some(result.to_owned()),
            _ if answer.trim_end() == "refused" => None,
            _ => panic!("{} answered {answer:?}", self.name),
        }
    }
}

impl Party for Program {
    fn name(&self) -> &'static str {
        self.name
    }

    fn generate(&mut self) -> Pair {
        let answer = self.ask("generate").unwrap();
        let (scalar, public) = answer.split_once(' ').unwrap();
        Pair {
            scalar: scalar.to_owned(),
            public: public.to_owned(),
        }
    }

    fn seal(&mut self, public: &str, text: &str) -> Option<String> {
        self.ask(&format!("seal {public} {}", BASE64.encode(text)))
    }

    fn open(&mut self, pair: &Pair, sealed: &str) -> Option<String> {
        let text = self.ask(&format!("open {} {} {sealed}", pair.scalar, pair.public))?;
        Some(String::from_utf8(BASE64.decode(text).unwrap()).unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Deserialize)]
struct Vectors {
    open: Vec<Vector>,
    reject: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    name: String,
    device_private_key_hex: String,
    #[serde(default)]
    plaintext_utf8: String,
    #[serde(alias = "encryptedPayloadBase64")]
    encrypted_payload: String,
}

impl Vector {
    fn pair(&self) -> Pair {
        let digits = self.device_private_key_hex.as_bytes().chunks(2);
        let scalar: Vec<u8> = digits
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect();
        Pair {
            public: DeviceKey::from_scalar(&scalar).unwrap().public_key().to_base64(),
            scalar: BASE64.encode(scalar),
        }
    }
}

#[test]
fn each_language_opens_what_each_language_seals_and_refuses_what_is_damaged() {
    let mut parties = parties();
    let mut failures = Vec::new();
    let mut table = heading(&parties);
    for sealer in 0..parties.len() {
        let _ = write!(table, "\n| {} |", parties[sealer].name());
        for opener in 0..parties.len() {
            let opened = texts()
                .iter()
                .filter(|text| travels(&mut parties, sealer, opener, text))
                .count();
            let _ = write!(table, " {opened} of {} |", texts().len());
            if opened < texts().len() {
                failures.push(format!(
                    "{} -> {}",
                    parties[sealer].name(),
                    parties[opener].name()
                ));
            }
        }
    }
    for (vector, good) in vectors() {
        for party in &mut parties {
            let expected = good.then_some(vector.plaintext_utf8.as_str());
            if party.open(&vector.pair(), &vector.encrypted_payload).as_deref() != expected {
                failures.push(format!("{}: {}", party.name(), vector.name));
            }
        }
    }
    println!(
        "sealed by (row), opened by (column):\n{table}\n{} vectors each",
        vectors().len()
    );
    assert!(failures.is_empty(), "{failures:#?}");
}

fn parties() -> Vec<Box<dyn Party>> {
    vec![
        Box::new(Rust),
        Box::new(Program::start("Node crypto", "node", "node.mjs")),
        Box::new(Program::start("browser WebCrypto", "node", "webcrypto.mjs")),
        Box::new(Program::start("Java javax.crypto", "java", "Payload.java")),
        Box::new(Program::start(
            "Python cryptography",
            python_with_cryptography(),
            "payload.py",
        )),
    ]
}

/// Whether a notification that `sealer` made for `opener`'s key arrives as it was.
fn travels(parties: &mut [Box<dyn Party>], sealer: usize, opener: usize, text: &str) -> bool {
    let pair = parties[opener].generate();
    let sealed = parties[sealer].seal(&pair.public, text).unwrap();
    let opened = parties[opener].open(&pair, &sealed);
    opened.is_some_and(|opened| opened.trim_end_matches(' ') == text)
}

fn texts() -> [String; 4] {
    [
        r#"{"title":"Hello","body":"World"}"#.to_owned(),
        r#"{"title":"Grüße 👋","body":"日本語 العربية"}"#.to_owned(),
        "{}".to_owned(),
        // The longest that can be sealed: no room for padding.
        format!(r#"{{"body":"{}"}}"#, "x".repeat(2560 - r#"{"body":""}"#.len())),
    ]
}

fn vectors() -> Vec<(Vector, bool)> {
    let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
    let good = vectors.open.into_iter().map(|vector| (vector, true));
    let bad = vectors.reject.into_iter().map(|vector| (vector, false));
    good.chain(bad).collect()
}

fn heading(parties: &[Box<dyn Party>]) -> String {
    let names: Vec<&str> = parties.iter().map(|party| party.name()).collect();
    format!("| | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()))
}

fn random(bytes: &mut [u8]) {
    getrandom::fill(bytes).unwrap();
}
