//! Sessions, their messages and their WebSockets.

use super::{Metric, REASON, bytes, counter, gauge, of};

pub(super) const SIGNALING: &[Metric] = &[
    gauge("relay_signal_sessions", &[], "Live sessions"),
    gauge("relay_session_actors", &[], "Sessions with a connection here"),
    counter(
        "relay_actor_restarts_total",
        &[],
        "Sessions' actors that panicked: a fault of the relay",
    ),
    counter(
        "relay_session_requests_total",
        &[of(
            "outcome",
            &[
                "made",
                "joined",
                "suspended",
                "too_often",
                "draining",
                "full",
                "conflict",
                "too_many",
                "overloaded",
                "unavailable",
                "failed",
            ],
        )],
        "Requests for a session by their outcome",
    ),
    bytes(
        "relay_signal_mailbox_bytes",
        "Memory that waiting messages hold, bounded by RELAY_MAILBOXES",
    ),
    counter("relay_signal_messages_total", &[], "Messages stored for a peer"),
    counter(
        "relay_signal_refused_total",
        &[of("code", &["rate_limited", "mailbox_full", "unavailable"])],
        "Messages refused, by the code that their sender was told",
    ),
    counter(
        "relay_signal_goodbyes_total",
        &[of("mood", &["direct", "relayed", "failed", "cancelled", "none"])],
        "Peers that left, by how they say it went: direct and relayed are connected",
    ),
    gauge("relay_signal_sockets", &[], "Open WebSockets"),
    gauge(
        "relay_signal_sockets_before_hello",
        &[],
        "WebSockets that have not shown a ticket, bounded by RELAY_SIGNAL_SOCKETS_BEFORE_HELLO",
    ),
    gauge(
        "relay_signal_welcomed_sockets",
        &[],
        "WebSockets in a session, bounded by RELAY_SIGNAL_SOCKETS",
    ),
    gauge(
        "relay_signal_leaving_sockets",
        &[],
        "WebSockets in their closing handshake",
    ),
    counter(
        "relay_signal_refused_sockets_total",
        &[of("full", &["address", "all"])],
        "WebSockets with a ticket for which there was no place (1013), by whose places were taken",
    ),
    counter(
        "relay_signal_closes_total",
        &[REASON],
        "WebSockets that ended, by the words of their close code",
    ),
    counter(
        "relay_turn_vends_total",
        &[of("outcome", &["given", "too_often"])],
        "TURN credentials asked for",
    ),
];
