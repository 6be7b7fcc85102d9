//! The names of the keys. All are in one slot: see `records.rs`.

use sovereign_relay_protocol::id::InstanceId;

/// Names keys.
#[derive(Clone, Copy)]
pub(super) struct Keys;

macro_rules! fixed {
    ($($(#[$what:meta])* $name:ident = $suffix:literal;)*) => {
        $($(#[$what])* pub(super) fn $name(self) -> String {
            concat!("relay:{records}:", $suffix).to_owned()
        })*
    };
}

impl Keys {
    fixed! {
        /// Sorted set: instances with an enrollment, in the order of their ids.
        ids = "ids";
        /// Sorted set: the same by when they lapse.
        lapses = "lapses";
        /// Sorted set: instances with a word, in the order of their ids.
        word_ids = "word-ids";
        /// Sorted set: suspended instances by when that ends.
        suspension_ends = "suspension-ends";
        /// String: tells whether the words were ever lost.
        words_epoch = "words-epoch";
        /// Hash: instance -> JSON of its entry.
        revocations = "revocations";
        /// Stream of what has changed.
        changes = "changes";
        /// Sorted set: hashes of invites by expiry.
        invites = "invites";
        /// Hash: hash of an invite -> when it was made.
        invite_times = "invite-times";
        /// Hash: keyed hash of an address -> its group.
        groups = "groups";
        /// Sorted set: the same by when it is forgotten.
        group_ends = "group-ends";
        /// Hash: fingerprint of a secret -> when it was last seen configured.
        secrets = "secrets";
        /// Sorted set: replicas by when they were last heard of.
        replicas = "replicas";
    }

    /// Hash: an enrollment.
    pub(super) fn record(self, instance: InstanceId) -> String {
        format!("relay:{{records}}:record:{instance}")
    }

    /// Hash: what the operator said of an instance, and a suspension.
    pub(super) fn word(self, instance: InstanceId) -> String {
        format!("relay:{{records}}:word:{instance}")
    }
}
