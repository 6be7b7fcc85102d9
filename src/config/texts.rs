//! What differs between two readings of the configuration, by name and never by value.
//!
//! Made by [`Config::from_sources`](super::Config::from_sources), compared by a reload, which tells the operator what it
//! took over and what waits for a restart. Invariant: of a value only a digest is kept, in memory alone. Texts are
//! compared, so a setting that is only spelled otherwise counts as changed.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{
    error::ConfigError,
    setting::{self, Setting},
    source::Sources,
};

/// Every setting's text, as a digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Texts(Vec<Option<[u8; 32]>>);

/// What a reload came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes {
    /// Names of settings that changed and hold from now on.
    pub taken_over: Vec<&'static str>,
    /// Names of settings that differ from what the relay was started with, and hold after a restart.
    pub need_restart: Vec<&'static str>,
}

impl Texts {
    /// `extra_ca`: the one setting whose file is read, not named.
    pub(crate) fn read(sources: &Sources<'_>, extra_ca: Option<&str>) -> Result<Self, ConfigError> {
        let digest = |text: &str| Sha256::digest(text.as_bytes()).into();
        let read = |setting: &Setting| {
            if *setting == setting::EXTRA_CA_FILE {
                return Ok(extra_ca.map(digest));
            }
            Ok(sources.get(setting)?.map(|found| digest(&found.text)))
        };
        setting::ALL.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Takes over what needs no restart, and says what differed.
    pub(crate) fn take_over(&mut self, new: &Self) -> Changes {
        let mut changes = Changes {
            taken_over: Vec::new(),
            need_restart: Vec::new(),
        };
        for ((setting, running), wanted) in setting::ALL.iter().zip(&mut self.0).zip(&new.0) {
            if running == wanted {
                continue;
            }
            if setting.reloads {
                *running = *wanted;
                changes.taken_over.push(setting.name);
            } else {
                changes.need_restart.push(setting.name);
            }
        }
        changes
    }
}

/// Even a digest may be guessed from.
impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Texts")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::tests::load;

    fn texts(settings: &[(&str, &str)]) -> Texts {
        load(settings).unwrap().texts
    }

    #[test]
    fn what_changed_is_named_until_it_holds() {
        let mut running = texts(&[("RELAY_LOG", "info"), ("RELAY_PUSHES_PER_MINUTE", "700")]);
        let wanted = texts(&[("RELAY_LOG", "debug"), ("RELAY_WORKERS", "2")]);
        let changes = running.take_over(&wanted);
        assert_eq!(changes.taken_over, ["RELAY_PUSHES_PER_MINUTE"]);
        assert_eq!(changes.need_restart, ["RELAY_WORKERS", "RELAY_LOG"]);
        let again = running.take_over(&wanted);
        assert_eq!(again.taken_over, [""; 0], "it holds already");
        assert_eq!(again.need_restart, changes.need_restart, "they still do");
    }

    #[test]
    fn of_signaling_the_turn_server_alone_is_taken_over() {
        let secret = "a secret shared with coturn";
        let mut running = texts(&[]);
        let changes = running.take_over(&texts(&[
            ("TURN_URIS", "turn:turn.example"),
            ("TURN_SECRET", secret),
            ("RELAY_TURN_FOR", "all"),
            ("RELAY_TURN_PER_MINUTE", "9"),
            ("RELAY_ALLOWED_ORIGINS", "https://a.example"),
        ]));
        assert_eq!(changes.taken_over, ["TURN_URIS", "TURN_SECRET"]);
        assert_eq!(
            changes.need_restart,
            ["RELAY_ALLOWED_ORIGINS", "RELAY_TURN_FOR", "RELAY_TURN_PER_MINUTE"]
        );
        assert!(!format!("{changes:?}{running:?}").contains(secret));
    }

    #[test]
    fn a_bundle_of_roots_is_compared_by_what_is_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write_other_roots = || {
            let root = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            fs::write(file.path(), root.cert.pem()).unwrap();
        };
        write_other_roots();
        let settings = [("RELAY_EXTRA_CA_FILE", file.path().to_str().unwrap())];
        let mut running = texts(&settings);
        assert_eq!(running.take_over(&texts(&settings)).need_restart, [""; 0]);
        write_other_roots();
        let changes = running.take_over(&texts(&settings));
        assert_eq!(changes.need_restart, ["RELAY_EXTRA_CA_FILE"]);
    }

    #[test]
    fn a_secret_in_a_file_is_compared_by_what_is_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |secret: &str| {
            fs::write(file.path(), secret).unwrap();
            texts(&[("WNS_CLIENT_SECRET_FILE", file.path().to_str().unwrap())])
        };
        let mut running = read("the first");
        let changes = running.take_over(&read("the second"));
        assert_eq!(changes.taken_over, ["WNS_CLIENT_SECRET"]);
    }
}
