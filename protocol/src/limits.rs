//! Every number of the public interface, each with its reason.

/// Longest body of any route but the batch, in bytes: a maximal push is about 6 KiB of JSON.
pub const BODY_BYTES: usize = 16 * 1024;
/// Longest batch body, in bytes: 500 maximal pushes.
pub const BATCH_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Most messages in one batch.
pub const BATCH_MESSAGES: usize = 500;
/// Messages of one batch under way at the same time: a quarter of [`CONCURRENT_PUSHES`], so that a batch neither starves
/// its instance's single pushes nor runs into that bound. A whole batch takes up to eight push deadlines.
pub const BATCH_PARALLEL: usize = 64;
/// Longest `x-request-id` accepted from a caller.
pub const REQUEST_ID_CHARS: usize = 64;
/// Longest `idempotencyKey`, in characters of visible ASCII.
pub const IDEMPOTENCY_KEY_CHARS: usize = 128;
/// Longest `collapseId`, in bytes (what APNs allows; what leaves is a 22-character hash).
pub const COLLAPSE_ID_BYTES: usize = 64;
/// Longest `name` of an enrollment, in characters.
pub const NAME_CHARS: usize = 80;
/// Longest `contact` of an enrollment, in bytes (RFC 5321's path limit).
pub const CONTACT_BYTES: usize = 254;
/// Largest and default `ttlSeconds`: four weeks, FCM's maximum.
pub const TTL_SECONDS: u32 = 2_419_200;
/// Most hexadecimal characters in an Apple token; Apple says the length varies, so only a bound is kept.
pub const APPLE_TOKEN_CHARS: usize = 200;
/// Most characters in an FCM token.
pub const FCM_TOKEN_CHARS: usize = 4096;
/// Most characters in a WNS channel URI.
pub const CHANNEL_URI_CHARS: usize = 2048;
/// APNs: whole JSON body, in bytes.
pub const APNS_BODY_BYTES: usize = 4096;
/// FCM: data keys and values, in bytes.
pub const FCM_DATA_BYTES: usize = 4096;
/// WNS: raw body, in bytes.
pub const WNS_BODY_BYTES: usize = 5000;
/// Pushes a minute of one instance, and the burst.
pub const PUSHES_PER_MINUTE: u32 = 600;
/// Pushes of one instance at the same time.
pub const CONCURRENT_PUSHES: usize = 256;
/// Pushes a minute that young instances enrolled from one address share.
pub const YOUNG_GROUP_PER_MINUTE: u32 = 1200;
/// An instance is young until it is this old ...
pub const YOUNG_SECONDS: u64 = 24 * 3600;
/// ... and has had this many pushes `sent`.
pub const YOUNG_SENT: u64 = 100;
/// Pushes a minute of one instance to one token.
pub const TOKEN_PER_INSTANCE_PER_MINUTE: u32 = 120;
/// Pushes a minute to one token from all instances.
pub const TOKEN_PER_MINUTE: u32 = 240;
/// Dead answers an hour for tokens that were never sent to, beyond which an instance is throttled: a large
/// instance's first honest sweep must pass in a few hours, a guesser must not.
pub const NEVER_SENT_DEAD_PER_HOUR: u32 = 500;
/// Enrollments (and rotations and withdrawals) a minute from one address.
pub const ENROLLMENTS_PER_MINUTE: u32 = 10;
/// The same per day.
pub const ENROLLMENTS_PER_DAY: u32 = 200;
/// An IPv6 /48 gets this many times the budget of a /64.
pub const ENROLLMENT_SITE_FACTOR: u32 = 10;
/// How long a token called gone is answered from memory, in seconds.
pub const RECENTLY_INVALID_SECONDS: u64 = 60;
/// How long a final outcome is repeated for an idempotency key, in seconds.
pub const IDEMPOTENCY_SECONDS: u64 = 600;
/// Default grace of a key rotation, in seconds.
pub const ROTATION_GRACE_SECONDS: u64 = 24 * 3600;
/// Longest grace of a key rotation, in seconds: a month is enough for any roll-out, and a leaked key must end.
pub const ROTATION_GRACE_SECONDS_MAX: u64 = 30 * 24 * 3600;
/// Days an enrollment record lives when it was never used.
pub const UNUSED_RECORD_DAYS: u64 = 7;
/// Days an enrollment record lives after its last use.
pub const USED_RECORD_DAYS: u64 = 90;
/// Shortest, default and longest life of a signaling session, in seconds: a handshake takes seconds, a person who has
/// to fetch a device minutes.
pub const SESSION_SECONDS_MIN: u32 = 30;
/// See [`SESSION_SECONDS_MIN`].
pub const SESSION_SECONDS: u32 = 120;
/// See [`SESSION_SECONDS_MIN`].
pub const SESSION_SECONDS_MAX: u32 = 600;
/// Fewest characters of a rendezvous: 128 bits in base64url, fewer could be guessed.
pub const RENDEZVOUS_CHARS_MIN: usize = 22;
/// Most characters of a rendezvous.
pub const RENDEZVOUS_CHARS_MAX: usize = 128;
/// Longest signaling frame, in bytes: an offer with many media sections and its sealing fits.
pub const SIGNAL_FRAME_BYTES: usize = 32 * 1024;
/// Longest frame before `welcome`, in bytes: a `hello` has well under 1 KiB.
pub const HELLO_BYTES: usize = 4 * 1024;
/// Most messages that wait for one receiver.
pub const MAILBOX_MESSAGES: usize = 256;
/// Most bytes that wait for one receiver.
pub const MAILBOX_BYTES: usize = 512 * 1024;
/// Messages a second of one slot.
pub const MESSAGES_PER_SECOND: u32 = 20;
/// Messages of one slot at once: an offer and all its candidates.
pub const MESSAGES_BURST: u32 = 60;
/// Most messages of a session, both ways together.
pub const SESSION_MESSAGES: u32 = 4096;
/// Page loads (binds by a new `cid`) a minute of one slot.
pub const NEW_CONNECTIONS_PER_MINUTE: u32 = 10;
/// Resumes a minute by one connection secret.
pub const RESUMES_PER_MINUTE: u32 = 60;
/// Retired connection secrets that are remembered for each slot.
pub const RETIRED_CONNECTIONS: usize = 16;
/// A lost peer is told of after so many seconds: most come back sooner.
pub const AWAY_AFTER_SECONDS: u64 = 2;
/// A lost peer counts as gone after so many seconds.
pub const GRACE_SECONDS: u64 = 30;
/// A session in which both said goodbye ends after so many seconds.
pub const BOTH_LEFT_SECONDS: u64 = 5;
/// Sockets of one address before their `welcome`.
pub const SOCKETS_BEFORE_HELLO_PER_ADDRESS: u32 = 100;
/// Sockets of all addresses before their `welcome`.
pub const SOCKETS_BEFORE_HELLO: u32 = 2000;
/// Bad tickets of one address in a minute: a client has one or two, a guesser needs very many.
pub const BAD_TICKETS_PER_MINUTE: u32 = 10;
/// Seconds between the relay's pings: proxies and carriers forget a silent connection after 30 s or more.
pub const HEARTBEAT_SECONDS: u64 = 25;
/// Seconds of silence after which a connection is closed.
pub const SILENCE_SECONDS: u64 = 60;
/// Live sessions of one instance.
pub const SESSIONS_PER_INSTANCE: u32 = 500;
/// Sessions that one instance makes in a minute.
pub const SESSIONS_PER_MINUTE: u32 = 120;
/// TURN credentials that are given out for one instance's slots in a minute.
pub const TURN_PER_MINUTE: u32 = 30;
/// Longest life of TURN credentials, in seconds: a session's. A TURN server looks at it when it allocates, not after.
pub const TURN_SECONDS: u64 = 600;
/// Most bytes in all mailboxes of one instance.
pub const INSTANCE_MAILBOX_BYTES: usize = 32 * 1024 * 1024;
/// Most bytes in all mailboxes.
pub const ALL_MAILBOX_BYTES: usize = 256 * 1024 * 1024;
