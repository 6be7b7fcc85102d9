//! A relay's log, read as it is written, so that the relay never waits for a full pipe.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::ChildStderr,
    sync::watch,
    time::timeout,
};

use super::DEADLINE;

pub struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    changed: watch::Receiver<usize>,
    seen: usize,
}

impl Log {
    pub fn follow(stderr: ChildStderr) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (count, changed) = watch::channel(0);
        let written = Arc::clone(&lines);
        tokio::spawn(async move {
            let mut reader = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = reader.next_line().await {
                written.lock().unwrap().push(line);
                count.send_modify(|count| *count += 1);
            }
        });
        Self {
            lines,
            changed,
            seen: 0,
        }
    }

    /// Everything so far.
    pub fn text(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    /// The next line that holds one of `texts`; `None` when the log ended without.
    pub async fn line_with(&mut self, texts: &[&str]) -> Option<String> {
        loop {
            if let Some(line) = self.next_seen(texts) {
                return Some(line);
            }
            let changed = timeout(DEADLINE, self.changed.changed())
                .await
                .expect("a log line in time");
            if changed.is_err() {
                return self.next_seen(texts);
            }
        }
    }

    fn next_seen(&mut self, texts: &[&str]) -> Option<String> {
        let lines = self.lines.lock().unwrap();
        let found = lines
            .iter()
            .enumerate()
            .skip(self.seen)
            .find(|(_, line)| texts.iter().any(|text| line.contains(text)));
        self.seen = found.as_ref().map_or(lines.len(), |(index, _)| index + 1);
        found.map(|(_, line)| line.clone())
    }

    /// Waits until nothing more comes.
    pub async fn ended(&mut self) {
        while timeout(DEADLINE, self.changed.changed())
            .await
            .expect("the log ends")
            .is_ok()
        {}
    }
}

/// A field of a line, in either form of the log.
pub fn field(line: &str, name: &str) -> String {
    let in_json = |line: Value| line[name].as_str().map(str::to_owned);
    let in_text = || {
        let (_, rest) = line.split_once(&format!(" {name}="))?;
        rest.split_whitespace().next().map(str::to_owned)
    };
    let found = serde_json::from_str(line).map_or_else(|_| in_text(), in_json);
    found.unwrap_or_else(|| panic!("no {name} in {line}"))
}
