//! The limits of signaling, as far as the configured connections reach.

use serde::Serialize;

use crate::config::Config;

/// In numbers, named as the settings are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignalLimits {
    sessions_per_instance: u32,
    sessions_per_minute: u32,
    turn_per_minute: u32,
    frame_bytes: usize,
    messages_per_second: u32,
    burst: u32,
    mailbox_messages: usize,
    mailbox_bytes: usize,
    session_messages: u32,
    instance_mailboxes: usize,
    mailboxes: usize,
    loads_per_minute: u32,
    resumes_per_minute: u32,
    bad_tickets_per_minute: u32,
    sockets_before_hello_per_address: u32,
    sockets_before_hello: u32,
    sockets_per_address: Option<u32>,
    sockets: Option<u32>,
}

impl SignalLimits {
    /// Reads them off a configuration.
    pub(super) fn of(config: &Config) -> Self {
        let signaling = &config.signaling;
        let (rules, bounds) = (&signaling.rules, &signaling.bounds);
        let door = signaling.door.within(config.listen.connections);
        Self {
            sessions_per_instance: bounds.sessions_per_instance,
            sessions_per_minute: signaling.sessions_per_minute,
            turn_per_minute: signaling.turn_per_minute,
            frame_bytes: rules.limits.frame_bytes,
            messages_per_second: rules.limits.messages_per_second,
            burst: rules.limits.burst,
            mailbox_messages: rules.limits.mailbox_messages,
            mailbox_bytes: rules.limits.mailbox_bytes,
            session_messages: rules.messages,
            instance_mailboxes: bounds.instance_bytes,
            mailboxes: bounds.total_bytes,
            loads_per_minute: rules.loads_per_minute,
            resumes_per_minute: rules.resumes_per_minute,
            bad_tickets_per_minute: door.bad_tickets_per_minute,
            sockets_before_hello_per_address: door.sockets_per_address,
            sockets_before_hello: door.sockets,
            sockets_per_address: door.welcomed_per_address,
            sockets: door.welcomed,
        }
    }

    /// For people: a name and a line each.
    pub(super) fn in_words(&self) -> [(&'static str, String); 5] {
        [
            ("sessions", self.sessions()),
            ("messages", self.messages()),
            ("mailboxes", self.mailboxes()),
            ("dials", self.dials()),
            ("sockets", self.sockets()),
        ]
    }

    fn sessions(&self) -> String {
        format!(
            "{} live of each instance, {} made a minute, {} TURN credentials a minute",
            self.sessions_per_instance, self.sessions_per_minute, self.turn_per_minute
        )
    }

    fn messages(&self) -> String {
        format!(
            "{} a second of each peer, {} at once, {} in a session, frames of {}",
            self.messages_per_second,
            self.burst,
            self.session_messages,
            bytes(self.frame_bytes)
        )
    }

    fn mailboxes(&self) -> String {
        format!(
            "{} messages or {} for a peer, {} of each instance, {} in all",
            self.mailbox_messages,
            bytes(self.mailbox_bytes),
            bytes(self.instance_mailboxes),
            bytes(self.mailboxes)
        )
    }

    fn dials(&self) -> String {
        format!(
            "{} page loads and {} resumes a minute of a peer, {} bad tickets a minute of an address",
            self.loads_per_minute, self.resumes_per_minute, self.bad_tickets_per_minute
        )
    }

    fn sockets(&self) -> String {
        format!(
            "{} before hello, {} of an address; {} in a session, {} of an address",
            self.sockets_before_hello,
            self.sockets_before_hello_per_address,
            self.sockets.unwrap_or_default(),
            self.sockets_per_address.unwrap_or_default()
        )
    }
}

/// In the largest unit that leaves no rest, as settings are written.
fn bytes(number: usize) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units
        .into_iter()
        .find(|(size, _)| number >= *size && number.is_multiple_of(*size));
    whole.map_or_else(
        || format!("{number} bytes"),
        |(size, unit)| format!("{}{unit}", number / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_words(settings: &[(&str, &str)]) -> String {
        let config = crate::config::tests::load(settings).unwrap();
        let lines = SignalLimits::of(&config).in_words();
        lines.map(|(name, words)| format!("{name}: {words}\n")).concat()
    }

    #[test]
    fn the_usual_limits_are_those_of_the_settings_table() {
        assert_eq!(
            in_words(&[]),
            "sessions: 500 live of each instance, 120 made a minute, 30 TURN credentials a minute\n\
             messages: 20 a second of each peer, 60 at once, 4096 in a session, frames of 32KiB\n\
             mailboxes: 256 messages or 512KiB for a peer, 32MiB of each instance, 256MiB in all\n\
             dials: 10 page loads and 60 resumes a minute of a peer, 10 bad tickets a minute of an address\n\
             sockets: 2000 before hello, 100 of an address; 12000 in a session, 3000 of an address\n"
        );
    }

    #[test]
    fn sockets_are_those_that_the_connections_allow_and_odd_sizes_are_told_to_the_byte() {
        let text = in_words(&[
            ("RELAY_CONNECTIONS", "1000"),
            ("RELAY_SIGNAL_SOCKETS", "5000"),
            ("RELAY_SIGNAL_FRAME_BYTES", "30001"),
        ]);
        assert!(text.contains("frames of 30001 bytes"), "{text}");
        assert!(
            text.contains("100 before hello, 100 of an address; 600 in a session, 150 of an address"),
            "{text}"
        );
    }
}
