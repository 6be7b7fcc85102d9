//! The scripts, one for each operation, with the constants that they share with the rest of the relay.

use std::fmt::Write as _;

use redis::Script;
use sovereign_relay_actors::session::port::ENTRY_BYTES;
use sovereign_relay_protocol::limits::{
    AWAY_AFTER_SECONDS, BOTH_LEFT_SECONDS, GRACE_SECONDS, RETIRED_CONNECTIONS, SESSION_SECONDS_MAX,
};

/// Before a replica's name: the channel on which it hears what others did.
pub(super) const CHANNEL: &str = "relay:replica:";

/// Each is `scripts/<name>.lua`.
pub(super) struct Scripts {
    pub(super) create: Script,
    pub(super) lives: Script,
    pub(super) view: Script,
    pub(super) remove: Script,
    pub(super) bind: Script,
    pub(super) append: Script,
    pub(super) trim: Script,
    pub(super) read: Script,
    pub(super) peer: Script,
    pub(super) unbind: Script,
    pub(super) wake: Script,
    pub(super) enlist: Script,
    pub(super) renew: Script,
}

macro_rules! script {
    ($prelude:expr, $name:literal) => {
        Script::new(&format!(
            "{}{}",
            $prelude,
            include_str!(concat!("../scripts/", $name, ".lua"))
        ))
    };
}

impl Scripts {
    pub(super) fn new() -> Self {
        let prelude = prelude();
        Self {
            create: script!(prelude, "create"),
            lives: script!(prelude, "lives"),
            view: script!(prelude, "view"),
            remove: script!(prelude, "remove"),
            bind: script!(prelude, "bind"),
            append: script!(prelude, "append"),
            trim: script!(prelude, "trim"),
            read: script!(prelude, "read"),
            peer: script!(prelude, "peer"),
            unbind: script!(prelude, "unbind"),
            wake: script!(prelude, "repeat"),
            enlist: script!(prelude, "enlist"),
            renew: script!(prelude, "renew"),
        }
    }
}

fn prelude() -> String {
    let constants: [(&str, u64); 7] = [
        ("AWAY_AFTER", AWAY_AFTER_SECONDS * 1000),
        ("GRACE", GRACE_SECONDS * 1000),
        ("BOTH_LEFT", BOTH_LEFT_SECONDS * 1000),
        ("MINUTE", 60_000),
        ("RETIRED", RETIRED_CONNECTIONS as u64),
        ("ENTRY_BYTES", ENTRY_BYTES as u64),
        ("LONGEST", u64::from(SESSION_SECONDS_MAX) * 1000),
    ];
    let mut text = format!("local CHANNEL = '{CHANNEL}'\n");
    for (name, value) in constants {
        // Writing to a text can't fail.
        let _ = writeln!(text, "local {name} = {value}");
    }
    text.push_str(include_str!("../scripts/common.lua"));
    text
}
