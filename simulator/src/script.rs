//! Which behaviour applies to which request.
//!
//! Asked once for every request a real provider would have accepted (a request against the rules is answered by the
//! rules, so that a script can't hide a fault of the relay). Order: rules for the device, for the connection, for all;
//! within each the counted ones, first in first out, before the standing one.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{
    behaviour::{Behaviour, Ending},
    sync::lock,
};

/// The rules of one simulator. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Script {
    shared: Arc<Shared>,
}

/// The rules for one device or one connection: what [`Script::device`] and [`Script::connection`] give.
#[derive(Debug)]
pub struct ScriptScope<'a> {
    script: &'a Script,
    device: Option<String>,
    connection: Option<u64>,
}

/// One rule as JSON, for the control API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// The device's address; absent: all devices.
    #[serde(default)]
    pub device: Option<String>,
    /// The connection's number, from 1 in the order of their coming; absent: all connections. Not beside a device, whose
    /// rules hold over every connection.
    #[serde(default)]
    pub connection: Option<u64>,
    /// How many requests it applies to; absent: until cleared.
    #[serde(default)]
    pub times: Option<u64>,
    /// What happens.
    pub behaviour: Behaviour,
}

#[derive(Debug, Default)]
struct Shared {
    /// Spares the lock where nothing is scripted, which is every request of a load test.
    in_use: AtomicBool,
    rules: Mutex<Rules>,
    held: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Rules {
    all: Scope,
    connections: HashMap<u64, Scope>,
    devices: HashMap<String, Scope>,
}

/// The request that a behaviour is wanted for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked<'a> {
    /// Absent where it is not known yet, or there is none.
    pub(crate) device: Option<&'a str>,
    /// Absent where connections are not told apart: at the token endpoints.
    pub(crate) connection: Option<u64>,
}

#[derive(Debug, Default)]
struct Scope {
    counted: VecDeque<(u64, Behaviour)>,
    standing: Option<Behaviour>,
}

impl Script {
    /// The next `times` requests, whatever the device.
    pub fn next(&self, times: u64, behaviour: Behaviour) {
        self.add(Rule {
            device: None,
            connection: None,
            times: Some(times),
            behaviour,
        });
    }

    /// Every request from now on, whatever the device, until cleared or replaced.
    pub fn always(&self, behaviour: Behaviour) {
        self.add(Rule {
            device: None,
            connection: None,
            times: None,
            behaviour,
        });
    }

    /// Rules for one device: its token, or at WNS its channel URI or the `token` in it.
    pub fn device(&self, device: &str) -> ScriptScope<'_> {
        ScriptScope {
            script: self,
            device: Some(device_key(device).to_owned()),
            connection: None,
        }
    }

    /// Rules for one connection by its number, from 1 in the order of their coming: what a front end that is broken
    /// does, while the others are well.
    pub fn connection(&self, number: u64) -> ScriptScope<'_> {
        ScriptScope {
            script: self,
            device: None,
            connection: Some(number),
        }
    }

    /// From now on whatever is done with a request waits until this is called with `false`. Where a delay would have to
    /// be guessed, a test so decides itself when the answers come.
    pub fn hold(&self, held: bool) {
        self.shared.held.send_replace(held);
    }

    /// Waits while requests are held.
    pub(crate) async fn let_go(&self) {
        // The sender lives as long as this borrow of it.
        let _ = self.shared.held.subscribe().wait_for(|held| !held).await;
    }

    /// Back to the normal course.
    pub fn clear(&self) {
        *lock(&self.shared.rules) = Rules::default();
        self.shared.in_use.store(false, Ordering::Release);
    }

    /// Adds a rule in the form the control API reads.
    pub fn add(&self, rule: Rule) {
        let mut rules = lock(&self.shared.rules);
        let scope = match (&rule.device, rule.connection) {
            (None, None) => &mut rules.all,
            (None, Some(connection)) => rules.connections.entry(connection).or_default(),
            (Some(device), _) => rules.devices.entry(device_key(device).to_owned()).or_default(),
        };
        match rule.times {
            None => scope.standing = Some(rule.behaviour),
            Some(0) => {}
            Some(times) => scope.counted.push_back((times, rule.behaviour)),
        }
        self.shared.in_use.store(true, Ordering::Release);
    }

    /// What to do with a request.
    pub(crate) fn decide(&self, asked: Asked<'_>) -> Option<Behaviour> {
        self.take(asked, |_| true)
    }

    /// Whether the connection is to be cut before the body is read.
    pub(crate) fn kills_before_reading(&self, asked: Asked<'_>) -> bool {
        self.take(asked, |behaviour| behaviour.ending == Ending::KillBeforeReading)
            .is_some()
    }

    /// The behaviour whose turn it is, if it `fits`: otherwise it stays for later.
    fn take(&self, asked: Asked<'_>, fits: impl Fn(&Behaviour) -> bool) -> Option<Behaviour> {
        if !self.shared.in_use.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.shared.rules).scope(asked)?.take(fits)
    }
}

impl Rules {
    /// The narrowest rules that there are for it.
    fn scope(&mut self, asked: Asked<'_>) -> Option<&mut Scope> {
        let Self {
            all,
            connections,
            devices,
        } = self;
        let of_device = asked.device.and_then(|device| devices.get_mut(device));
        let of_connection = asked
            .connection
            .and_then(|connection| connections.get_mut(&connection));
        [of_device, of_connection, Some(all)]
            .into_iter()
            .flatten()
            .find(|scope| scope.rules_now())
    }
}

impl ScriptScope<'_> {
    /// The next `times` requests for this device.
    pub fn next(&self, times: u64, behaviour: Behaviour) {
        self.script.add(Rule {
            device: self.device.clone(),
            connection: self.connection,
            times: Some(times),
            behaviour,
        });
    }

    /// Every request for this device from now on, until cleared or replaced.
    pub fn always(&self, behaviour: Behaviour) {
        self.script.add(Rule {
            device: self.device.clone(),
            connection: self.connection,
            times: None,
            behaviour,
        });
    }
}

impl Scope {
    fn rules_now(&self) -> bool {
        !self.counted.is_empty() || self.standing.is_some()
    }

    /// Takes the behaviour whose turn it is, if it `fits`.
    fn take(&mut self, fits: impl Fn(&Behaviour) -> bool) -> Option<Behaviour> {
        let Some((remaining, behaviour)) = self.counted.front_mut() else {
            return self.standing.clone().filter(fits);
        };
        if !fits(behaviour) {
            return None;
        }
        *remaining = remaining.saturating_sub(1);
        let behaviour = behaviour.clone();
        if *remaining == 0 {
            self.counted.pop_front();
        }
        Some(behaviour)
    }
}

/// A channel URI is known by its `token`, every other address by itself.
pub(crate) fn device_key(device: &str) -> &str {
    match device.split_once("token=") {
        Some((before, token)) if before.starts_with("http") => token.split('&').next().unwrap_or(token),
        _ => device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(script: &Script, device: &str) -> Option<u16> {
        status_over(script, device, 1)
    }

    fn status_over(script: &Script, device: &str, connection: u64) -> Option<u16> {
        let asked = Asked {
            device: Some(device),
            connection: Some(connection),
        };
        match script.decide(asked)?.ending {
            Ending::Answer(answer) => Some(answer.status),
            _ => Some(0),
        }
    }

    #[test]
    fn a_device_rule_beats_a_rule_for_all_and_a_counted_one_beats_a_standing_one() {
        let script = Script::default();
        script.always(Behaviour::status(503));
        script.next(1, Behaviour::status(500));
        script.device("a").always(Behaviour::status(410));
        script.device("a").next(2, Behaviour::status(429));
        assert_eq!(
            [0; 3].map(|_| status(&script, "a")),
            [Some(429), Some(429), Some(410)]
        );
        assert_eq!([0; 2].map(|_| status(&script, "b")), [Some(500), Some(503)]);
        script.clear();
        assert_eq!(status(&script, "a"), None);
    }

    #[test]
    fn a_connection_has_rules_of_its_own_between_those_of_a_device_and_those_for_all() {
        let script = Script::default();
        script.always(Behaviour::status(503));
        script.connection(2).always(Behaviour::status(500));
        script.device("a").next(1, Behaviour::status(410));
        assert_eq!(
            [1, 2, 3].map(|number| status_over(&script, "b", number)),
            [Some(503), Some(500), Some(503)]
        );
        assert_eq!(
            [0; 2].map(|_| status_over(&script, "a", 2)),
            [Some(410), Some(500)]
        );
    }

    #[test]
    fn a_kill_before_reading_takes_its_turn_and_no_other() {
        let script = Script::default();
        script.next(1, Behaviour::status(500));
        script.next(1, Behaviour::kill_before_reading());
        assert!(
            !script.kills_before_reading(Asked::default()),
            "the 500 comes first"
        );
        assert_eq!(status(&script, "a"), Some(500));
        assert!(script.kills_before_reading(Asked::default()));
        assert!(!script.kills_before_reading(Asked::default()));
    }

    #[test]
    fn a_channel_uri_and_its_token_name_the_same_device() {
        assert_eq!(device_key("https://localhost:1234/?token=AbC%2f&x=1"), "AbC%2f");
        assert_eq!(device_key("AbC%2f"), "AbC%2f");
    }
}
