//! The table of all settings: one name each, spelled three ways.
//!
//! `APNS_KEY_ID` in the environment is `--apns-key-id` as a flag and `apns_key_id` in the file. Flags, file keys, the
//! `--help` text and the README's table all come from here or are tested against it, so none can drift.
//!
//! Names without `RELAY_` are those of the earlier relay or of the trade, and are kept so that deployments go on
//! working unchanged.

use crate::defaults;

/// One setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The name in the environment.
    pub name: &'static str,
    /// How it reads and prints.
    pub kind: Kind,
    /// What holds without it, in words.
    pub default: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
    /// Whether a running relay takes over another value on SIGHUP.
    pub reloads: bool,
}

/// How a setting is read and shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Anyone may see it.
    Plain,
    /// `true` or `false`; a flag without a value means `true`.
    Switch,
    /// Nobody may see it. It may also be given as `NAME_FILE`, the path of a file that holds it.
    Secret,
}

impl Setting {
    /// Name of the variable that names a file instead: `APNS_KEY_FILE`. Only secrets have one.
    pub fn file_name(&self) -> Option<String> {
        (self.kind == Kind::Secret).then(|| format!("{}_FILE", self.name))
    }

    /// As a flag, without the leading dashes: `apns-key-id`.
    pub fn flag(&self) -> String {
        flag_of(self.name)
    }

    /// The same, taken over by a running relay.
    const fn reloads(self) -> Self {
        Self {
            reloads: true,
            ..self
        }
    }

    /// As a key of the TOML file: `apns_key_id`.
    pub fn key(&self) -> String {
        self.name.to_ascii_lowercase()
    }
}

/// The flag of a variable.
pub(crate) fn flag_of(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// A setting that is shown as it is.
const fn plain(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        kind: Kind::Plain,
        default,
        help,
        reloads: false,
    }
}

/// A setting that is on or off.
const fn switch(name: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        kind: Kind::Switch,
        default: "false",
        help,
        reloads: false,
    }
}

/// A setting that is never shown.
const fn secret(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        kind: Kind::Secret,
        default,
        help,
        reloads: false,
    }
}

macro_rules! settings {
    ($($constant:ident = $setting:expr;)*) => {
        $(#[allow(missing_docs, reason = "each has its help text")] pub const $constant: Setting = $setting;)*
        /// All settings, in the order documents list them.
        pub const ALL: &[Setting] = &[$($constant),*];
    };
}

settings! {
    CONFIG = plain("RELAY_CONFIG", "none", "TOML file with any of these settings, names in lower case");
    LISTEN = plain("RELAY_LISTEN", "0.0.0.0:4002", "address and port of the public API; beats PORT (--port beats its port)");
    PORT = plain("PORT", "4002", "port of the public API, on all addresses");
    PUBLIC_URL = plain("RELAY_PUBLIC_URL", "from each request", "the URL that instances know this relay by");
    WORKERS = plain("RELAY_WORKERS", "one per CPU", "threads that serve HTTP");
    CONNECTIONS = plain(
        "RELAY_CONNECTIONS",
        "20000",
        "public connections at the same time, WebSockets among them: 100 to 1000000; a fifth is kept for HTTP",
    );
    CONNECTIONS_PER_ADDRESS = plain(
        "RELAY_CONNECTIONS_PER_ADDRESS",
        "a quarter of RELAY_CONNECTIONS",
        "the same of one address (IPv6: a /64) that is not in RELAY_TRUSTED_PROXIES; more are closed at once",
    );
    ARBITERS = plain("RELAY_ARBITERS", "one per CPU", "threads that run the instances' actors");
    TRUSTED_PROXIES = plain(
        "RELAY_TRUSTED_PROXIES",
        "loopback and private ranges",
        "comma list of addresses and CIDR ranges whose X-Forwarded-For is believed; `none` for nobody",
    );
    ENROLLMENT = plain("RELAY_ENROLLMENT", "open", "who may enroll: open, invite (the operator hands them out) or closed");
    ENROLLMENT_SECRET = secret(
        "RELAY_ENROLLMENT_SECRET",
        "made and kept in RELAY_DATA_DIR",
        "signs instance keys; at least 16 bytes, better 32",
    );
    ENROLLMENT_SECRET_PREVIOUS = secret(
        "RELAY_ENROLLMENT_SECRET_PREVIOUS",
        "none",
        "comma list of secrets that keys made before a rotation still verify under",
    );
    APNS_KEY = secret("APNS_KEY", "Apple platforms are off", "Apple's .p8 signing key, PEM text").reloads();
    APNS_KEY_ID = plain("APNS_KEY_ID", "Apple platforms are off", "ten-character id of that key").reloads();
    APNS_TEAM_ID = plain("APNS_TEAM_ID", "Apple platforms are off", "ten-character id of the Apple developer team").reloads();
    APNS_BUNDLE_ID = plain("APNS_BUNDLE_ID", "iOS is off", "bundle id of the iOS app").reloads();
    APNS_BUNDLE_ID_MACOS = plain("APNS_BUNDLE_ID_MACOS", "macOS is off", "bundle id of the macOS app").reloads();
    APNS_USE_SANDBOX = switch("APNS_USE_SANDBOX", "Apple pushes that name no environment go to the sandbox");
    APNS_SANDBOX_KEY = secret("APNS_SANDBOX_KEY", "APNS_KEY", "signing key for the sandbox, where APNS_KEY is limited to production").reloads();
    APNS_SANDBOX_KEY_ID = plain("APNS_SANDBOX_KEY_ID", "APNS_KEY_ID", "id of the sandbox key").reloads();
    APNS_ENDPOINT = plain("APNS_ENDPOINT", "https://api.push.apple.com", "scheme://host[:port] of APNs production");
    APNS_SANDBOX_ENDPOINT = plain(
        "APNS_SANDBOX_ENDPOINT",
        "https://api.sandbox.push.apple.com",
        "scheme://host[:port] of the APNs sandbox",
    );
    ALERT_TITLE_IOS = plain("RELAY_ALERT_TITLE_IOS", "one space", "what an iPhone shows if nothing opened the payload");
    ALERT_TITLE_MACOS = plain("RELAY_ALERT_TITLE_MACOS", "one space", "what a Mac shows");
    FCM_SERVICE_ACCOUNT_JSON = secret("FCM_SERVICE_ACCOUNT_JSON", "Android is off", "Google's service account, JSON text").reloads();
    FCM_ENDPOINT = plain("FCM_ENDPOINT", "https://fcm.googleapis.com", "scheme://host[:port] of FCM");
    WNS_PACKAGE_SID = plain("WNS_PACKAGE_SID", "Windows is off", "Package SID of a UWP app (ms-app://...)").reloads();
    WNS_TENANT_ID = plain("WNS_TENANT_ID", "Windows is off", "Entra tenant of a Windows App SDK app").reloads();
    WNS_CLIENT_ID = plain("WNS_CLIENT_ID", "Windows is off", "Entra application id of a Windows App SDK app").reloads();
    WNS_CLIENT_SECRET = secret("WNS_CLIENT_SECRET", "Windows is off", "secret that belongs to either").reloads();
    WNS_TOKEN_ENDPOINT = plain("WNS_TOKEN_ENDPOINT", "Microsoft's", "URL that issues WNS access tokens").reloads();
    WNS_CHANNEL_HOST_SUFFIX = plain(
        "WNS_CHANNEL_HOST_SUFFIX",
        "notify.windows.com",
        "hosts that Windows channel URIs may name: this one and those below it",
    );
    PUSHES_PER_MINUTE = plain("RELAY_PUSHES_PER_MINUTE", "600", "pushes a minute of each instance, and the burst").reloads();
    ALLOWED_ORIGINS = plain(
        "RELAY_ALLOWED_ORIGINS",
        "any",
        "comma list of web origins whose pages may open signaling connections",
    );
    SESSIONS_PER_INSTANCE = plain("RELAY_SESSIONS_PER_INSTANCE", "500", "live signaling sessions of each instance");
    SESSIONS_PER_MINUTE = plain("RELAY_SESSIONS_PER_MINUTE", "120", "signaling sessions each instance may make a minute");
    INSTANCE_MAILBOXES = plain("RELAY_INSTANCE_MAILBOXES", "32MiB", "waiting signaling messages of each instance");
    MAILBOXES = plain("RELAY_MAILBOXES", "256MiB", "waiting signaling messages of all instances together");
    SIGNAL_FRAME_BYTES = plain(
        "RELAY_SIGNAL_FRAME_BYTES",
        "32KiB",
        "longest signaling frame: 24KiB to 1MiB, at most RELAY_SIGNAL_MAILBOX_BYTES",
    );
    SIGNAL_MESSAGES_PER_SECOND = plain(
        "RELAY_SIGNAL_MESSAGES_PER_SECOND",
        "20",
        "messages a second of each peer of a session",
    );
    SIGNAL_BURST = plain("RELAY_SIGNAL_BURST", "60", "messages of a peer that may come at once");
    SIGNAL_MAILBOX_MESSAGES = plain(
        "RELAY_SIGNAL_MAILBOX_MESSAGES",
        "256",
        "messages that may wait for a peer: 1 to 65536",
    );
    SIGNAL_MAILBOX_BYTES = plain(
        "RELAY_SIGNAL_MAILBOX_BYTES",
        "512KiB",
        "messages that may wait for a peer, each counted with 62 bytes more than its content; at most RELAY_INSTANCE_MAILBOXES",
    );
    SIGNAL_SESSION_MESSAGES = plain(
        "RELAY_SIGNAL_SESSION_MESSAGES",
        "4096",
        "messages of a session, both ways together",
    );
    SIGNAL_LOADS_PER_MINUTE = plain(
        "RELAY_SIGNAL_LOADS_PER_MINUTE",
        "10",
        "page loads (dials with a new connection secret) a minute of a peer: 1 to 600",
    );
    SIGNAL_RESUMES_PER_MINUTE = plain(
        "RELAY_SIGNAL_RESUMES_PER_MINUTE",
        "60",
        "dials a minute with the same connection secret",
    );
    SIGNAL_BAD_TICKETS_PER_MINUTE = plain(
        "RELAY_SIGNAL_BAD_TICKETS_PER_MINUTE",
        "10",
        "bad tickets a minute of an address, beyond which its new sockets wait",
    );
    SIGNAL_SOCKETS_BEFORE_HELLO_PER_ADDRESS = plain(
        "RELAY_SIGNAL_SOCKETS_BEFORE_HELLO_PER_ADDRESS",
        "100",
        "sockets of an address that have not shown a ticket, and as many that are closing; a newer one sends the oldest away",
    );
    SIGNAL_SOCKETS_BEFORE_HELLO = plain(
        "RELAY_SIGNAL_SOCKETS_BEFORE_HELLO",
        "2000",
        "the same of all addresses together; at most a tenth of RELAY_CONNECTIONS",
    );
    SIGNAL_SOCKETS = plain(
        "RELAY_SIGNAL_SOCKETS",
        "three fifths of RELAY_CONNECTIONS",
        "signaling connections that have shown a ticket; at most the default",
    );
    SIGNAL_SOCKETS_PER_ADDRESS = plain(
        "RELAY_SIGNAL_SOCKETS_PER_ADDRESS",
        "a quarter of RELAY_SIGNAL_SOCKETS",
        "the same of one address",
    );
    TURN_URIS = plain("TURN_URIS", "TURN is off", "comma list of stun:, turn: and turns: URIs of your TURN server").reloads();
    TURN_SECRET = secret(
        "TURN_SECRET",
        "TURN is off",
        "secret shared with the TURN server (coturn: static-auth-secret); of two with a comma the first signs",
    ).reloads();
    TURN_FOR = plain(
        "RELAY_TURN_FOR",
        "allowed",
        "whose peers get TURN credentials: none, allowed (by `instances turn allow`) or all",
    );
    TURN_PER_MINUTE = plain("RELAY_TURN_PER_MINUTE", "30", "TURN credentials a minute for the sessions of each instance");
    PUSH_DEADLINE = plain("RELAY_PUSH_DEADLINE", "10s", "time one push may take, retries included (a whole batch: up to eight times that): 1s to 17s, with RELAY_DRAIN_GRACE at most 17s");
    DRAIN_GRACE = plain("RELAY_DRAIN_GRACE", "5s", "time between the stop signal and the last accepted request: 0s to 15s, with RELAY_PUSH_DEADLINE at most 17s");
    DATA_DIR = plain(
        "RELAY_DATA_DIR",
        "/var/lib/sovereign-relay if it can be written, else the user's state folder",
        "folder of the embedded store and of what the relay makes itself",
    );
    REDIS_URL = secret(
        "REDIS_URL",
        "embedded store",
        "Redis or Valkey that replicas share their state in: redis://, redis+sentinel:// or redis+cluster://, rediss for TLS; needs RELAY_ENROLLMENT_SECRET, the same on all",
    );
    ADMIN_LISTEN = plain("RELAY_ADMIN_LISTEN", "127.0.0.1:4003", "address and port of /metrics and the admin API");
    ADMIN_TOKEN = secret(
        "RELAY_ADMIN_TOKEN",
        "made and kept in RELAY_DATA_DIR",
        "what the CLI shows the admin API; at least 16 bytes",
    );
    LOG = plain("RELAY_LOG", defaults::LOG, "what is logged: error, warn, info, debug, trace, or a tracing filter");
    LOG_FORMAT = plain("RELAY_LOG_FORMAT", "json", "json or text");
    EXTRA_CA_FILE = plain("RELAY_EXTRA_CA_FILE", "none", "PEM bundle trusted besides the system's roots");
    ALLOW_TEST_ENDPOINTS = switch(
        "RELAY_ALLOW_TEST_ENDPOINTS",
        "for simulators: provider URLs may be plain http, loopback, private, on any port",
    );
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_settings_share_a_spelling() {
        let mut seen = HashSet::new();
        for setting in ALL {
            assert!(seen.insert(setting.name.to_owned()), "{}", setting.name);
            if let Some(file) = setting.file_name() {
                assert!(seen.insert(file.clone()), "{file}");
            }
        }
    }

    #[test]
    fn one_name_is_spelled_three_ways() {
        assert_eq!(APNS_KEY_ID.flag(), "apns-key-id");
        assert_eq!(APNS_KEY_ID.key(), "apns_key_id");
        assert_eq!(APNS_KEY.file_name().as_deref(), Some("APNS_KEY_FILE"));
        assert_eq!(APNS_KEY_ID.file_name(), None);
    }
}
