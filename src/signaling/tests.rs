//! Rendezvous while the enrollment secret is changed: replicas that share their sessions and have different secrets.

use futures_util::future::BoxFuture;
use sovereign_relay_actors::session::rules::SessionRules;
use sovereign_relay_protocol::{redacted::Redacted, signal::session::EndToEnd};

use super::*;
use crate::{
    auth::{Secrets, authority::Parts},
    clock::SystemClock,
    config::EnrollmentMode,
    entropy::SystemEntropy,
    store::{
        embedded::{DataDir, EmbeddedStore},
        sessions::{SessionBounds, memory::MemorySessions},
    },
};

const OLD: &str = "an enrollment secret of 32 bytes.";
const NEW: &str = "another enrollment secret, 32 b.";
/// Secrets of the steps of a change: the current one, and the one that is listed as previous.
const STEPS: [(&str, Option<&str>); 4] = [(OLD, None), (OLD, Some(NEW)), (NEW, Some(OLD)), (NEW, None)];

struct Everything;

impl Permits for Everything {
    fn admit_session(&self, _: InstanceId, _: TurnFor) -> BoxFuture<'_, Result<Admitted, SessionRefusal>> {
        Box::pin(async { Ok(Admitted { turn: false }) })
    }
}

/// A replica for each step, with sessions that all of them share.
struct Replicas {
    of_steps: Vec<Signaling>,
    _directories: Vec<tempfile::TempDir>,
}

impl Replicas {
    async fn start() -> Self {
        let clock = Arc::new(SystemClock::new());
        let rules = SessionRules::default();
        let store = Arc::new(MemorySessions::new(
            SessionBounds::default(),
            rules,
            clock.clone(),
        ));
        let (mut of_steps, mut directories) = (Vec::new(), Vec::new());
        for (current, previous) in STEPS {
            let directory = tempfile::tempdir().unwrap();
            let records = EmbeddedStore::open(DataDir::open(directory.path()).unwrap()).unwrap();
            let previous = previous.into_iter().map(Redacted::new).collect();
            let parts = Parts {
                store: Arc::new(records),
                secrets: Some(Secrets::new(Redacted::new(current), previous).unwrap()),
                mode: EnrollmentMode::Open,
                entropy: Arc::new(SystemEntropy),
            };
            of_steps.push(Signaling {
                store: store.clone(),
                durability: Durability::Memory,
                sessions: Sessions::start(1, store.clone(), rules, clock.clone()),
                permits: Arc::new(Everything),
                turn_for: TurnFor::None,
                authority: Arc::new(Authority::open(parts).await.unwrap()),
                entropy: Arc::new(SystemEntropy),
                public_url: None,
            });
            directories.push(directory);
        }
        Self {
            of_steps,
            _directories: directories,
        }
    }

    /// Replicas that run side by side, both ways round.
    fn neighbours(&self) -> impl Iterator<Item = (&Signaling, &Signaling)> {
        let pairs = self.of_steps.iter().zip(self.of_steps.iter().skip(1));
        pairs.flat_map(|(one, other)| [(one, other), (other, one)])
    }
}

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

async fn meet(at: &Signaling, rendezvous: &str, by: u8) -> Result<Opened, CreateError> {
    ask(at, rendezvous, by, EndToEnd::Required).await
}

async fn ask(at: &Signaling, rendezvous: &str, by: u8, e2e: EndToEnd) -> Result<Opened, CreateError> {
    let request = SessionRequest {
        ttl_seconds: 60,
        turn: false,
        e2e,
        rendezvous: Some(Redacted::new(rendezvous)),
    };
    at.create(instance(by), request).await
}

#[actix_web::test]
async fn instances_at_replicas_of_neighbouring_steps_meet_whoever_comes_first() {
    let replicas = Replicas::start().await;
    for (number, (one, other)) in replicas.neighbours().enumerate() {
        let rendezvous = number.to_string();
        let first = meet(one, &rendezvous, 1).await.unwrap();
        let second = meet(other, &rendezvous, 2).await.unwrap();
        assert!(first.is_new && !second.is_new, "{number}");
        assert_eq!(first.id, second.id, "{number}");
        for at in [one, other] {
            let again = meet(at, &rendezvous, 1).await.unwrap();
            assert_eq!((again.id, again.is_new), (first.id, false), "{number}");
            let third = meet(at, &rendezvous, 3).await;
            assert!(matches!(third, Err(CreateError::Full)), "{number}: {third:?}");
        }
    }
}

#[actix_web::test]
async fn another_e2e_than_the_one_at_a_replica_of_a_neighbouring_step_is_a_conflict() {
    let replicas = Replicas::start().await;
    for (number, (one, other)) in replicas.neighbours().enumerate() {
        let rendezvous = number.to_string();
        meet(one, &rendezvous, 1).await.unwrap();
        let asked = ask(other, &rendezvous, 2, EndToEnd::Optional).await;
        assert!(matches!(asked, Err(CreateError::Conflict)), "{number}: {asked:?}");
    }
}

#[actix_web::test]
async fn a_session_that_has_ended_leaves_its_rendezvous_to_the_current_secret() {
    let replicas = Replicas::start().await;
    let [_, before, after, _] = &*replicas.of_steps else {
        panic!("four steps");
    };
    let earlier = meet(before, "here", 1).await.unwrap();
    assert!(after.end(earlier.id, instance(1)).await.unwrap());
    let later = meet(after, "here", 1).await.unwrap();
    assert!(later.is_new);
    assert_ne!(later.id, earlier.id);
    assert_eq!(meet(before, "here", 2).await.unwrap().id, later.id);
}

/// What two that call in the very same moment may bring about.
#[actix_web::test]
async fn instances_that_have_missed_each_other_meet_when_they_ask_again() {
    let replicas = Replicas::start().await;
    let [alone, before, after, last] = &*replicas.of_steps else {
        panic!("four steps");
    };
    let apart = [
        meet(alone, "here", 1).await.unwrap().id,
        meet(last, "here", 2).await.unwrap().id,
    ];
    assert_ne!(apart[0], apart[1]);
    let first = meet(before, "here", 1).await.unwrap();
    let second = meet(after, "here", 2).await.unwrap();
    assert_eq!(first.id, second.id);
}
