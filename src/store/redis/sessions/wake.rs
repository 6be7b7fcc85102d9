//! What replicas tell each other over their channels: a word, and what it is about, with colons.

use sovereign_relay_actors::session::port::News;
use sovereign_relay_protocol::signal::id::SessionId;

use super::reply::slot;

/// A message on this replica's channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wake {
    /// This replica heard itself.
    Ping,
    /// Something happened to a session.
    News(News),
    /// A session was removed; the replica that did it waits to hear that its connections here are silent.
    Over {
        /// Which.
        id: SessionId,
        /// Who waits.
        by: String,
        /// For what.
        request: u64,
    },
    /// The connections of a removed session are silent elsewhere.
    Silent {
        /// Which removal.
        request: u64,
    },
}

impl Wake {
    /// Anything unknown is `None`: another version may say more.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let news = |news| Some(Self::News(news));
        match parts.as_slice() {
            ["ping"] => Some(Self::Ping),
            ["mail", id, to] => news(News::Mail(SessionId::parse(id)?, slot(to)?)),
            ["peer", id, to] => news(News::Peer(SessionId::parse(id)?, slot(to)?)),
            ["replaced", id, to, epoch] => news(News::Replaced(
                SessionId::parse(id)?,
                slot(to)?,
                epoch.parse().ok()?,
            )),
            ["over", id, by, request] => Some(Self::Over {
                id: SessionId::parse(id)?,
                by: (*by).to_owned(),
                request: request.parse().ok()?,
            }),
            ["silent", request] => Some(Self::Silent {
                request: request.parse().ok()?,
            }),
            _ => None,
        }
    }

    /// What a removal tells the replicas that hold connections.
    pub(super) fn over(id: SessionId, by: &str, request: u64) -> String {
        format!("over:{id}:{by}:{request}")
    }

    /// The answer to it.
    pub(super) fn silent(request: u64) -> String {
        format!("silent:{request}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sovereign_relay_protocol::signal::id::Slot;

    use super::*;

    #[test]
    fn what_scripts_publish_is_understood() {
        let id = SessionId::from_bytes([7; 16]);
        let cases = [
            ("ping".to_owned(), Wake::Ping),
            (format!("mail:{id}:a"), Wake::News(News::Mail(id, Slot::A))),
            (format!("peer:{id}:b"), Wake::News(News::Peer(id, Slot::B))),
            (
                format!("replaced:{id}:a:1796040000000001"),
                Wake::News(News::Replaced(id, Slot::A, 1_796_040_000_000_001)),
            ),
            (
                Wake::over(id, "0a", 7),
                Wake::Over {
                    id,
                    by: "0a".to_owned(),
                    request: 7,
                },
            ),
            (Wake::silent(7), Wake::Silent { request: 7 }),
        ];
        for (text, wake) in cases {
            assert_eq!(Wake::parse(&text), Some(wake), "{text}");
        }
    }

    proptest! {
        #[test]
        fn anything_else_is_nothing(text in "(mail|peer|over|silent|replaced|)[:a-z0-9]{0,30}") {
            if let Some(wake) = Wake::parse(&text) {
                let is_silent = matches!(wake, Wake::Silent { .. });
                prop_assert!(is_silent);
            }
        }
    }
}
