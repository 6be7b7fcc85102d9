//! Keeps a replica's memory in step with Redis: revocations, suspensions and limits that others wrote, and how many
//! replicas there are.
//!
//! ```text
//! twice a second: say that we live, read the change log on from our position
//!     a change                 -> the revocation list, or the instance's actor reads its standing again
//!     the position is lost     -> everything is read anew, what Redis lacks is written back, and the operator is told
//!     Redis is away            -> memory stays as it is; the position decides later whether anything was missed
//! ```
//!
//! What fails at Redis' side alone is told once: a beat that is refused (memory is full) stops nothing else, and a clock
//! that differs from Redis' by more than [`OFF`] is a warning, for tickets and graces are judged by this process' own.
//!
//! Invariant: whatever was acknowledged at one replica holds at all of them within a second while they reach Redis, and
//! after that as soon as they do again. There is no notification that could be missed.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use actix_web::web::Data;
use futures_util::FutureExt as _;
use sovereign_relay_actors::{ports::StoreError, registry::Registry};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};
use tracing::{info, warn};

use super::{push_half::PushHalf, records::Place};
use crate::{
    http::services::Services,
    steady::note_panic,
    store::redis::{
        limits::RedisBudgets,
        link::RedisLink,
        records::{Beat, Change, Changes, Position, RedisRecords},
    },
};

/// How often the log is read: half of the second that is promised, for the other half is Redis'.
const TURN: Duration = Duration::from_millis(500);
const _: () = assert!(
    TURN.as_millis() * 2 <= 1000,
    "changes are known everywhere within a second"
);
/// Half of the minute that clocks may differ.
const OFF: Duration = Duration::from_secs(30);
/// What leaving takes at most: the others notice by themselves too.
const LEAVING: Duration = Duration::from_millis(500);

/// Follows until it is stopped.
pub(super) struct Following {
    tasks: JoinSet<()>,
    link: Option<Arc<RedisLink>>,
}

struct Follower {
    records: RedisRecords,
    replica: String,
    budgets: RedisBudgets,
    registry: Registry,
    services: Data<Services>,
    position: Option<Position>,
    is_clock_off: bool,
}

impl Following {
    /// Has followed once when it returns: nothing is served on the word of a list that is older than the start.
    pub(super) async fn start(place: &Place, push: &PushHalf, services: &Data<Services>) -> Self {
        let mut tasks = JoinSet::new();
        let (Place::Redis(link), Some(budgets)) = (place, push.memories.budgets()) else {
            return Self { tasks, link: None };
        };
        let mut follower = Follower {
            records: link.records(),
            replica: link.replica().to_owned(),
            budgets,
            registry: push.registry.clone(),
            services: services.clone(),
            position: None,
            is_clock_off: false,
        };
        let first = follower.turn().await;
        tasks.spawn(follower.run(first.is_ok()));
        Self {
            tasks,
            link: Some(link.clone()),
        }
    }

    /// The others no longer count with this replica.
    pub(super) async fn stop(mut self) {
        self.tasks.shutdown().await;
        if let Some(link) = self.link {
            // Where it fails, they notice within seconds.
            let _ = timeout(LEAVING, link.records().leave(link.replica())).await;
        }
    }
}

impl Follower {
    async fn run(mut self, mut is_well: bool) {
        let mut turns = interval(TURN);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            match (self.guarded_turn().await, is_well) {
                (Ok(()), true) | (Err(_), false) => {}
                (Ok(()), false) => {
                    info!("following revocations, suspensions and limits again");
                    // An actor that began meanwhile could not read its instance's standing.
                    self.registry.refresh_all();
                    is_well = true;
                }
                (Err(error), true) => {
                    warn!(%error, "redis refuses, or can't be reached: what is known of revocations, suspensions and limits holds");
                    is_well = false;
                }
            }
        }
    }

    /// A panic is a bug, and no reason to follow no more: revocations must be heard of.
    async fn guarded_turn(&mut self) -> Result<(), StoreError> {
        let turn = AssertUnwindSafe(self.turn()).catch_unwind().await;
        turn.unwrap_or_else(|_panic| {
            note_panic("following revocations, suspensions and limits");
            Err(StoreError("following panicked".to_owned()))
        })
    }

    /// Where this replica can't say that it lives, it may still hear what others did.
    async fn turn(&mut self) -> Result<(), StoreError> {
        let beat = self.records.beat(&self.replica).await;
        self.follow().await?;
        self.on_beat(beat?);
        Ok(())
    }

    fn on_beat(&mut self, beat: Beat) {
        self.budgets.set_replicas(beat.replicas);
        metrics::gauge!("relay_replicas").set(f64::from(beat.replicas));
        let off = Duration::from_millis(self.services.now().unix.0.abs_diff(beat.time.0));
        metrics::gauge!("relay_clock_off_seconds").set(off.as_secs_f64());
        if off > OFF && !self.is_clock_off {
            warn!(
                off_seconds = off.as_secs(),
                "this machine's clock and redis' differ: set both by NTP, else tickets and keys end too early or too late"
            );
        }
        self.is_clock_off = off > OFF;
    }

    async fn follow(&mut self) -> Result<(), StoreError> {
        while let Some(position) = &self.position {
            match self.records.changes_since(position).await? {
                Changes::Seen { position, changes } => {
                    let is_all = changes.is_empty();
                    for change in changes {
                        self.apply(change).await?;
                    }
                    self.position = Some(position);
                    if is_all {
                        return Ok(());
                    }
                }
                Changes::Lost => self.position = None,
            }
        }
        self.read_anew().await
    }

    /// The position is taken first: what changes meanwhile is seen twice rather than never.
    async fn read_anew(&mut self) -> Result<(), StoreError> {
        let position = self.records.position().await?;
        let learned = self.services.authority.learn_all().await?;
        for instance in learned.ended {
            self.services.signaling.end_instance(instance).await;
        }
        let revocations = learned.lacking.len();
        self.services.authority.write_back(learned.lacking).await?;
        let epoch = self.records.words_epoch();
        let words = self.records.read_words(&fresh_epoch(&self.services)).await?;
        let is_emptied = epoch.is_some() && epoch != self.records.words_epoch();
        tell_of_loss(is_emptied, revocations, words);
        self.registry.refresh_all();
        metrics::counter!("relay_store_read_anew_total").increment(1);
        self.position = Some(position);
        Ok(())
    }

    async fn apply(&self, change: Change) -> Result<(), StoreError> {
        match change {
            Change::Revoked(instance, entry) => {
                if self.services.authority.learn(instance, &entry) {
                    self.services.signaling.end_instance(instance).await;
                    self.registry.refresh(instance).await;
                }
            }
            Change::Forgotten(instance, entry) => self.services.authority.unlearn(instance, entry),
            Change::Standing(instance) => {
                self.records.read_word(instance).await?;
                self.registry.refresh(instance).await;
            }
        }
        Ok(())
    }
}

/// Of an emptied Redis also where nothing was left to write back: what no replica knows is gone, too.
fn tell_of_loss(is_emptied: bool, revocations: usize, suspensions_and_limits: usize) {
    if is_emptied {
        warn!(
            revocations,
            suspensions_and_limits,
            "redis lost its data: so many are known here and written back; records, invites, sessions and outcomes are \
             gone. Import the last export of revocations, and look whether suspensions and limits are as they should be"
        );
    } else if revocations > 0 {
        warn!(
            revocations,
            "redis lost data: these are known here and written back; what else was written lately may be gone, too"
        );
    } else {
        return;
    }
    metrics::counter!("relay_store_data_lost_total").increment(1);
}

fn fresh_epoch(services: &Services) -> String {
    let mut bytes = [0; 8];
    services.entropy.fill(&mut bytes);
    format!("{:016x}", u64::from_be_bytes(bytes))
}
