//! What the relay forgets and saves by itself while it runs.

use std::time::Duration;

use actix_web::web::Data;
use tokio::task::JoinSet;

use super::memories::Memories;
use crate::{http::services::Services, steady::steadily};

/// Tokens come and go within seconds, so their budgets are cleaned this often.
const SHORT_UPKEEP: Duration = Duration::from_secs(5);
/// Addresses, records, revocations.
const LONG_UPKEEP: Duration = Duration::from_secs(60);

/// Forgets what has lapsed, on two rhythms, and saves what must not be forgotten.
pub(super) fn upkeep(services: &Data<Services>, memories: Memories) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let (short, long) = (services.clone(), services.clone());
    tasks.spawn(steadily("short upkeep", move || {
        clean_memories(short.clone(), memories.clone())
    }));
    tasks.spawn(steadily("long upkeep", move || maintain(long.clone())));
    let keys = services.clone();
    tasks.spawn(steadily("saving first uses of keys", move || {
        save_first_uses(keys.clone())
    }));
    tasks
}

async fn clean_memories(services: Data<Services>, memories: Memories) {
    let mut turns = tokio::time::interval(SHORT_UPKEEP);
    loop {
        turns.tick().await;
        memories.clean(services.now());
    }
}

async fn maintain(services: Data<Services>) {
    let mut turns = tokio::time::interval(LONG_UPKEEP);
    loop {
        turns.tick().await;
        services.addresses.clean(services.now());
        services.authority.maintain(services.now()).await;
    }
}

/// At once: until it is saved, a restart or another replica hands the new key to the old one's holder again.
async fn save_first_uses(services: Data<Services>) {
    loop {
        services.authority.first_use().await;
        services.authority.save_first_uses().await;
    }
}
