//! Every number and address that holds when the operator says nothing, each with its reason. The numbers of the
//! public interface are in `sovereign_relay_protocol::limits`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

/// Port of the public API: the earlier relay's.
pub const PORT: u16 = 4002;
/// Port of the admin listener.
pub const ADMIN_PORT: u16 = 4003;
/// All addresses: the relay is meant to be reached, mostly through a proxy in another container.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT);
/// Loopback only: metrics are open there.
pub const ADMIN_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), ADMIN_PORT);

/// Public connections at the same time: 400 MiB if all were of HTTP at about 20 KiB each, under 100 if all were idle
/// WebSockets.
pub const CONNECTIONS: usize = 20_000;
/// Of fewer, the shares of HTTP and of WebSockets would be too small to mean anything.
pub const CONNECTIONS_MIN: u32 = 100;
/// More than a process can have on most systems: a typing error.
pub const CONNECTIONS_MAX: u32 = 1_000_000;

/// An address that is no trusted proxy has this part of the connections, unless the operator says otherwise: enough for
/// what a direct client or a carrier's address translation opens, WebSockets included (of which one address has at most
/// 15 in 100), and it takes four addresses to fill all.
pub const CONNECTIONS_ADDRESS_PART: usize = 4;

/// Whose `X-Forwarded-For` is believed when the operator names nobody: proxies on the same machine or network.
pub const TRUSTED_PROXIES: [&str; 8] = [
    "127.0.0.0/8",
    "::1/128",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "fc00::/7",
    "fe80::/10",
];

/// How long a push may take, retries included. Callers wait on it, and most give up after 15 or 30 s.
pub const PUSH_DEADLINE: Duration = Duration::from_secs(10);
/// Less would give a provider no time for one retry.
pub const PUSH_DEADLINE_MIN: Duration = Duration::from_secs(1);
/// More would not end within a stop, even one without grace.
pub const PUSH_DEADLINE_MAX: Duration = Duration::from_secs(17);
/// How long requests are still taken after the stop signal: a load balancer that checks each second has then
/// looked away.
pub const DRAIN_GRACE: Duration = Duration::from_secs(5);
/// More would leave a push that begins at its end no useful time.
pub const DRAIN_GRACE_MAX: Duration = Duration::from_secs(15);
/// From the stop signal to the end of the process, at the latest: what orchestrators grant, less a margin.
pub const STOP_TIME: Duration = Duration::from_secs(20);
/// Of that, what the grace and the deadline of a push that begins at its end may take together. In the rest the last
/// answers leave and the parts behind the listener end.
pub const STOP_TIME_FOR_PUSHES: Duration = Duration::from_secs(17);

/// Shorter secrets can be guessed offline by anyone who enrolls and so gets a signed sample: refused.
pub const SECRET_BYTES_MIN: usize = 16;
/// What a secret should have: the strength of HMAC-SHA256 (RFC 7518, section 3.2). Less warns.
pub const SECRET_BYTES_GOOD: usize = 32;

/// The operator's own ceiling of a default limit: beyond it the number is a typing error.
pub const PUSHES_PER_MINUTE_MAX: u32 = 1_000_000;
/// The same for what is counted in signaling.
pub const SIGNAL_RATE_MAX: u32 = 1_000_000;
/// And for the memory of waiting messages.
pub const MAILBOXES_MAX: usize = 1 << 40;
/// Less would not hold the longest sealed message of the client libraries: 16 KiB, its base64url and what is around it.
pub const SIGNAL_FRAME_BYTES_MIN: usize = 24 * 1024;
/// More is no signaling any more: each connection may hold a frame that has not come whole.
pub const SIGNAL_FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Waiting messages take memory beyond their content, which no other bound counts: about 3 MiB for so many.
pub const MAILBOX_MESSAGES_MAX: u32 = 65_536;
/// The news of a page load waits in a mailbox whether or not there is room.
pub const LOADS_PER_MINUTE_MAX: u32 = 600;
/// What the operator sets for one instance: far above what one node can send.
pub const INSTANCE_PER_MINUTE_MAX: u32 = 10_000_000;
/// Longest suspension with an end: ten years. Else it has none.
pub const SUSPENSION_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
/// Longest reason of a suspension: a line.
pub const SUSPENSION_REASON_CHARS: usize = 200;
/// Longest life of an invite, a year: longer, and nobody remembers who holds it.
pub const INVITE_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// Most threads of one kind: beyond it the number is a typing error.
pub const THREADS_MAX: usize = 1024;
/// Longest alert title, in characters: it takes room from every payload.
pub const ALERT_TITLE_CHARS: usize = 100;

/// Where packages and containers keep the relay's state.
pub const SYSTEM_DATA_DIR: &str = "/var/lib/sovereign-relay";
/// Name of the relay's folder in a user's state folder.
pub const USER_DATA_DIR: &str = "sovereign-relay";

/// APNs production.
pub const APNS_ENDPOINT: &str = "https://api.push.apple.com";
/// APNs sandbox.
pub const APNS_SANDBOX_ENDPOINT: &str = "https://api.sandbox.push.apple.com";
/// FCM HTTP v1.
pub const FCM_ENDPOINT: &str = "https://fcm.googleapis.com";
/// Google's token endpoint, for service accounts that name none.
pub const GOOGLE_TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// WNS's token endpoint for Package SIDs.
pub const WNS_LEGACY_TOKEN_ENDPOINT: &str = "https://login.live.com/accesstoken.srf";
/// Entra's host; the tenant makes the path.
pub const ENTRA_AUTHORITY: &str = "https://login.microsoftonline.com";
/// Under which Windows channel URIs live.
pub const WNS_CHANNEL_HOST_SUFFIX: &str = "notify.windows.com";

/// How long the CLI waits for the admin API or `/livez`.
pub const CLI_TIMEOUT: Duration = Duration::from_secs(5);

/// What is logged. The HTTP server's own lines about its start say nothing that ours don't.
pub const LOG: &str = "info,actix_server=warn";
