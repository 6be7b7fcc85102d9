//! How much sessions, instances and strangers may have. Ranges keep out typing errors and what can't work: a message
//! that fits into a frame fits into an empty mailbox, and a full mailbox into what its instance may have, and that into what all have.

use sovereign_relay_actors::session::rules::SessionRules;
use sovereign_relay_protocol::signal::session::SessionLimits;

use crate::{
    config::{
        error::ConfigError,
        setting::{self, Setting},
        source::Sources,
        value,
    },
    defaults,
    store::sessions::SessionBounds,
    ws::door::DoorBounds,
};

/// Of one session.
pub(super) fn rules(sources: &Sources<'_>) -> Result<SessionRules, ConfigError> {
    let usual = SessionRules::default();
    Ok(SessionRules {
        limits: told(sources, usual.limits)?,
        messages: count(sources, &setting::SIGNAL_SESSION_MESSAGES)?.unwrap_or(usual.messages),
        loads_per_minute: sources
            .parse(
                &setting::SIGNAL_LOADS_PER_MINUTE,
                value::number(1..=defaults::LOADS_PER_MINUTE_MAX),
            )?
            .unwrap_or(usual.loads_per_minute),
        resumes_per_minute: count(sources, &setting::SIGNAL_RESUMES_PER_MINUTE)?
            .unwrap_or(usual.resumes_per_minute),
    })
}

fn told(sources: &Sources<'_>, usual: SessionLimits) -> Result<SessionLimits, ConfigError> {
    let frame = value::bytes(defaults::SIGNAL_FRAME_BYTES_MIN..=defaults::SIGNAL_FRAME_BYTES_MAX);
    let messages = value::number(1..=defaults::MAILBOX_MESSAGES_MAX);
    let waiting = sources.parse(&setting::SIGNAL_MAILBOX_MESSAGES, messages)?;
    let limits = SessionLimits {
        frame_bytes: sources
            .parse(&setting::SIGNAL_FRAME_BYTES, frame)?
            .unwrap_or(usual.frame_bytes),
        mailbox_messages: waiting
            .and_then(|waiting| usize::try_from(waiting).ok())
            .unwrap_or(usual.mailbox_messages),
        mailbox_bytes: sources
            .parse(&setting::SIGNAL_MAILBOX_BYTES, mailboxes())?
            .unwrap_or(usual.mailbox_bytes),
        messages_per_second: count(sources, &setting::SIGNAL_MESSAGES_PER_SECOND)?
            .unwrap_or(usual.messages_per_second),
        burst: count(sources, &setting::SIGNAL_BURST)?.unwrap_or(usual.burst),
    };
    fits(
        (&setting::SIGNAL_FRAME_BYTES, limits.frame_bytes),
        (&setting::SIGNAL_MAILBOX_BYTES, limits.mailbox_bytes),
    )?;
    Ok(limits)
}

/// Of all sessions together.
pub(super) fn bounds(sources: &Sources<'_>, of_one: &SessionLimits) -> Result<SessionBounds, ConfigError> {
    let usual = SessionBounds::default();
    let bounds = SessionBounds {
        sessions_per_instance: count(sources, &setting::SESSIONS_PER_INSTANCE)?
            .unwrap_or(usual.sessions_per_instance),
        instance_bytes: sources
            .parse(&setting::INSTANCE_MAILBOXES, mailboxes())?
            .unwrap_or(usual.instance_bytes),
        total_bytes: sources
            .parse(&setting::MAILBOXES, mailboxes())?
            .unwrap_or(usual.total_bytes),
    };
    let one = (&setting::SIGNAL_MAILBOX_BYTES, of_one.mailbox_bytes);
    let instance = (&setting::INSTANCE_MAILBOXES, bounds.instance_bytes);
    fits(one, instance)?;
    fits(instance, (&setting::MAILBOXES, bounds.total_bytes))?;
    Ok(bounds)
}

/// Of connections, by what they have shown.
pub(super) fn door(sources: &Sources<'_>) -> Result<DoorBounds, ConfigError> {
    let usual = DoorBounds::default();
    Ok(DoorBounds {
        sockets_per_address: count(sources, &setting::SIGNAL_SOCKETS_BEFORE_HELLO_PER_ADDRESS)?
            .unwrap_or(usual.sockets_per_address),
        sockets: count(sources, &setting::SIGNAL_SOCKETS_BEFORE_HELLO)?.unwrap_or(usual.sockets),
        welcomed_per_address: count(sources, &setting::SIGNAL_SOCKETS_PER_ADDRESS)?,
        welcomed: count(sources, &setting::SIGNAL_SOCKETS)?,
        bad_tickets_per_minute: count(sources, &setting::SIGNAL_BAD_TICKETS_PER_MINUTE)?
            .unwrap_or(usual.bad_tickets_per_minute),
    })
}

/// What is asked for beyond what the listener's connections allow, a sentence each: HTTP keeps its share of them.
pub(in crate::config) fn cut(sources: &Sources<'_>, door: &DoorBounds, connections: usize) -> Vec<String> {
    let before_hello = Some(door.sockets).filter(|_| sources.has(&setting::SIGNAL_SOCKETS_BEFORE_HELLO));
    let wanted = [
        (
            &setting::SIGNAL_SOCKETS_BEFORE_HELLO,
            before_hello,
            DoorBounds::most_before_hello(connections),
        ),
        (
            &setting::SIGNAL_SOCKETS,
            door.welcomed,
            DoorBounds::most_welcomed(connections),
        ),
    ];
    let beyond = wanted
        .into_iter()
        .filter(|(_, wanted, most)| wanted.is_some_and(|wanted| wanted > *most));
    beyond
        .map(|(setting, _, most)| {
            format!(
                "{} is more than {} ({connections}) allows: {most} are taken",
                setting.name,
                setting::CONNECTIONS.name
            )
        })
        .collect()
}

pub(super) fn count(sources: &Sources<'_>, setting: &Setting) -> Result<Option<u32>, ConfigError> {
    sources.parse(setting, value::number(1..=defaults::SIGNAL_RATE_MAX))
}

fn mailboxes() -> impl FnOnce(&str) -> Result<usize, String> {
    value::bytes(defaults::SIGNAL_FRAME_BYTES_MIN..=defaults::MAILBOXES_MAX)
}

fn fits(part: (&'static Setting, usize), whole: (&'static Setting, usize)) -> Result<(), ConfigError> {
    if part.1 <= whole.1 {
        return Ok(());
    }
    Err(ConfigError::DoesNotFit {
        part: part.0.name,
        part_bytes: part.1,
        whole: whole.0.name,
        whole_bytes: whole.1,
    })
}
