//! The scripts, and how one is called. What each does stands at its head.

use std::{fmt::Display, sync::LazyLock};

use redis::{Script, ScriptInvocation};

/// All scripts of the records.
pub(super) struct Scripts {
    pub(super) enroll: Script,
    pub(super) note_use: Script,
    pub(super) say: Script,
    pub(super) read: Script,
    pub(super) revoke: Script,
    pub(super) forget: Script,
    pub(super) lapse: Script,
    pub(super) pardon: Script,
    pub(super) expire: Script,
    pub(super) invite: Script,
    pub(super) position: Script,
    pub(super) beat: Script,
    pub(super) epoch: Script,
    pub(super) restore: Script,
}

static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts {
    enroll: Script::new(include_str!("scripts/enroll.lua")),
    note_use: Script::new(include_str!("scripts/note_use.lua")),
    say: Script::new(include_str!("scripts/say.lua")),
    read: Script::new(include_str!("scripts/read.lua")),
    revoke: Script::new(include_str!("scripts/revoke.lua")),
    forget: Script::new(include_str!("scripts/forget.lua")),
    lapse: Script::new(include_str!("scripts/lapse.lua")),
    pardon: Script::new(include_str!("scripts/pardon.lua")),
    expire: Script::new(include_str!("scripts/expire.lua")),
    invite: Script::new(include_str!("scripts/invite.lua")),
    position: Script::new(include_str!("scripts/position.lua")),
    beat: Script::new(include_str!("scripts/beat.lua")),
    epoch: Script::new(include_str!("scripts/epoch.lua")),
    restore: Script::new(include_str!("scripts/restore.lua")),
});

impl Scripts {
    /// Their hashes are computed once.
    pub(super) fn get() -> &'static Self {
        &SCRIPTS
    }
}

/// One call under construction.
pub(super) struct Call(ScriptInvocation<'static>);

impl Call {
    pub(super) fn new(script: &'static Script) -> Self {
        Self(script.prepare_invoke())
    }

    pub(super) fn key(&mut self, key: String) {
        self.0.key(key);
    }

    pub(super) fn text(&mut self, argument: impl Display) {
        self.0.arg(argument.to_string());
    }

    pub(super) fn into_invocation(self) -> ScriptInvocation<'static> {
        self.0
    }
}
