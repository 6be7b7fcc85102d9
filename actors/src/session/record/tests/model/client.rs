//! What the model knows of one client and its slot.

use std::collections::VecDeque;

use super::*;

/// A client, and what is true of its slot.
#[derive(Default)]
pub(super) struct Client {
    pub(super) connection: u128,
    pub(super) attempt: u64,
    pub(super) socket: Option<u64>,
    pub(super) written: u64,
    pub(super) outbox: VecDeque<(u64, String)>,
    /// Highest `seq` that this page has, and the generation it believes its peer to be.
    pub(super) seen: u64,
    pub(super) peer: Option<u32>,
    /// Epochs whose sockets the client has given up.
    pub(super) ghosts: Vec<u64>,
    /// The secret and the epoch that have the slot.
    pub(super) bound: Option<u128>,
    pub(super) holder: Option<u64>,
    pub(super) generation: u32,
    pub(super) stored: u64,
    pub(super) lost: Option<Now>,
    pub(super) has_left: bool,
    pub(super) binds: Vec<(Duration, bool)>,
    /// What was stored for it: generation and content of each. What it acknowledged.
    pub(super) log: Vec<(u32, Option<String>)>,
    pub(super) acknowledged: usize,
    /// Highest `seq` that any of its pages got.
    pub(super) sent: u64,
}

impl Client {
    pub(super) fn waiting(&self) -> (usize, usize) {
        let waiting = self.log.iter().skip(self.acknowledged);
        let messages = waiting.filter_map(|(_, content)| content.as_ref());
        messages.fold((0, 0), |(count, bytes), content| {
            (count + 1, bytes + content.len() + ENTRY_BYTES)
        })
    }

    pub(super) fn presence(&self, now: Now) -> (PeerState, u32) {
        let state = match (self.holder, self.lost) {
            _ if self.generation == 0 => PeerState::Absent,
            _ if self.has_left => PeerState::Left,
            (Some(_), _) | (None, None) => PeerState::Online,
            (None, Some(lost)) => match now.mono - lost.mono {
                time if time < Duration::from_secs(2) => PeerState::Online,
                time if time < Duration::from_secs(30) => PeerState::Away,
                _ => PeerState::Left,
            },
        };
        (state, self.generation)
    }

    pub(super) fn binds_of_last_minute(&self, is_load: bool, now: Now) -> usize {
        let counts =
            |(at, load): &&(Duration, bool)| *load == is_load && now.mono - *at < Duration::from_secs(60);
        self.binds.iter().filter(counts).count()
    }
}
