use std::collections::HashSet;

use futures_util::future::{BoxFuture, FutureExt as _, join_all, ready};
use sovereign_relay_actors::ports::StoreError;

use super::*;
use crate::{
    auth::authority::tests::kit::{Kit, at},
    clock::SystemClock,
    limit::{
        EmbeddedLimits,
        lease::{Ask, Grant},
        leases::TokenSource,
    },
};

impl Turn {
    fn vend_here(
        &self,
        instance: InstanceId,
        session: SessionId,
        slot: Slot,
        now: Now,
    ) -> Result<Ice, Duration> {
        self.give(instance, session, slot, now, None)
    }
}

/// What all replicas together may still give.
struct Purse(Mutex<u32>);

impl TokenSource for Purse {
    fn lease(&self, _: Account, ask: Ask) -> BoxFuture<'static, Result<Grant, StoreError>> {
        let mut left = self.0.lock().unwrap();
        let granted = (*left).min(ask.wanted);
        *left -= granted;
        let wait = Duration::from_secs(60);
        ready(Ok(Grant {
            granted,
            left: *left,
            wait,
        }))
        .boxed()
    }

    fn replicas(&self) -> u32 {
        1
    }
}

fn servers() -> TurnServers {
    TurnServers {
        stun: vec!["stun:turn.example:3478".to_owned()],
        turn: vec!["turn:turn.example:3478?transport=udp".to_owned()],
        secret: Redacted::new("north"),
    }
}

fn now() -> Now {
    at(Duration::ZERO)
}

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn session(number: u8) -> SessionId {
    SessionId::from_bytes([number; 16])
}

/// Computed with two other programs.
#[test]
fn a_credential_is_the_hmac_that_turn_servers_compute() {
    let credential = credential(&Redacted::new("north"), "1433895918:inst42");
    assert_eq!(credential, "LOnZTlY1GUl2y3PDSc3ny8vSC70=");
}

#[test]
fn credentials_end_after_ten_whole_minutes_and_say_so() {
    let ice = servers().vend("a-slot", UnixMillis(1_000_999));
    assert_eq!(ice.expires_at, Some(UnixMillis(1_600_000)));
    let [stun, turn] = ice.servers.as_slice() else {
        panic!("{ice:?}")
    };
    assert_eq!((&stun.username, &stun.credential), (&None, &None));
    assert_eq!(turn.username.as_deref(), Some("1600:a-slot"));
    assert_eq!(turn.urls, ["turn:turn.example:3478?transport=udp"]);
}

#[test]
fn without_a_stun_uri_there_is_no_empty_entry_which_browsers_refuse() {
    let servers = TurnServers {
        stun: Vec::new(),
        ..servers()
    };
    let ice = servers.vend("a-slot", now().unix);
    assert_eq!(ice.servers.len(), 1);
}

#[test]
fn neither_secret_nor_credential_is_printed() {
    let ice = servers().vend("a-slot", now().unix);
    let credential = ice.servers[1].credential.clone().unwrap();
    let printed = format!("{ice:?} {:?}", servers());
    assert!(
        !printed.contains(&credential) && !printed.contains("north"),
        "{printed}"
    );
}

#[tokio::test]
async fn each_slot_has_a_name_of_its_own_that_a_turn_server_reads_whole() {
    let turn = Turn::new(Some(servers()), 30, None, Kit::new().await.authority);
    let mut users = HashSet::new();
    for number in 1..=2 {
        for slot in Slot::BOTH {
            let ice = turn.vend_here(instance(1), session(number), slot, now()).unwrap();
            let username = ice.servers[1].username.clone().unwrap();
            let (expiry, user) = username.split_once(':').unwrap();
            assert!(expiry.bytes().all(|byte| byte.is_ascii_digit()));
            assert!(user.len() == 22 && !user.contains(':') && !user.contains(&session(number).to_string()));
            users.insert(user.to_owned());
        }
    }
    assert_eq!(users.len(), 4);
}

#[tokio::test]
async fn an_instance_that_has_had_its_share_waits_and_its_neighbour_does_not() {
    let turn = Turn::new(Some(servers()), 30, None, Kit::new().await.authority);
    let vend = |number: u8, made: u8, now: Now| turn.vend_here(instance(number), session(made), Slot::A, now);
    assert!((0..30).all(|made| vend(1, made, now()).is_ok()));
    let wait = vend(1, 30, now()).unwrap_err();
    assert_eq!(wait, Duration::from_secs(2));
    assert!(vend(2, 31, now()).is_ok());
    assert!(vend(1, 30, now().plus(wait)).is_ok());
    let later = now().plus(Duration::from_secs(600));
    turn.clean(later);
    assert_eq!(turn.vends.keys(), 0);
}

#[tokio::test]
async fn a_slot_that_comes_back_within_30_s_is_given_the_same_which_costs_nothing() {
    let turn = Turn::new(Some(servers()), 2, None, Kit::new().await.authority);
    let vend = |made: u8, slot: Slot, seconds: u64| {
        let now = now().plus(Duration::from_secs(seconds));
        turn.vend_here(instance(1), session(made), slot, now)
    };
    let first = vend(1, Slot::B, 0).unwrap();
    assert!((0..30).all(|second| vend(1, Slot::B, second).as_ref() == Ok(&first)));
    assert!(vend(2, Slot::A, 0).is_ok(), "another session has its own");
    assert!(vend(1, Slot::A, 1).is_err(), "and each slot");
    assert_eq!(
        vend(1, Slot::B, 29),
        Ok(first.clone()),
        "known ones need no budget"
    );
    let fresh = vend(1, Slot::B, 30).unwrap();
    assert_eq!(fresh.expires_at.unwrap().0 - first.expires_at.unwrap().0, 30_000);
}

#[tokio::test]
async fn what_is_given_again_after_a_reload_is_signed_with_the_new_secret() {
    let turn = Turn::new(Some(servers()), 1, None, Kit::new().await.authority);
    let vend = || turn.vend_here(instance(1), session(1), Slot::A, now()).unwrap();
    let first = vend();
    turn.reload(Some(TurnServers {
        secret: Redacted::new("another secret"),
        ..servers()
    }));
    let again = vend();
    assert_eq!(first.servers[1].username, again.servers[1].username);
    assert_ne!(first.servers[1].credential, again.servers[1].credential);
}

#[tokio::test]
async fn a_relay_without_a_turn_server_gives_nothing_and_a_reload_brings_one() {
    let turn = Turn::new(None, 1, None, Kit::new().await.authority);
    let vend = || turn.vend_here(instance(1), session(1), Slot::A, now());
    assert!(
        (0..3).all(|_| vend() == Ok(Ice::default())),
        "which costs nothing"
    );
    turn.reload(Some(servers()));
    let first = vend().unwrap();
    assert_eq!(first.servers.len(), 2);
    turn.reload(Some(TurnServers {
        secret: Redacted::new("another secret"),
        ..servers()
    }));
    let later = now().plus(Duration::from_secs(60));
    let second = turn.vend_here(instance(1), session(1), Slot::A, later).unwrap();
    assert_ne!(first.servers[1].credential, second.servers[1].credential);
    turn.reload(None);
    assert_eq!(vend(), Ok(Ice::default()));
}

#[tokio::test]
async fn a_slot_that_dials_three_times_at_once_takes_one_of_what_all_replicas_share() {
    let purse = Arc::new(Purse(Mutex::new(3)));
    let leases = LeasedLimits::new(
        Arc::new(EmbeddedLimits::new()),
        purse,
        Arc::new(SystemClock::new()),
    );
    let turn = Turn::new(Some(servers()), 30, Some(leases), Kit::new().await.authority);
    let vend = |made: u8| turn.vend(instance(1), session(made), Slot::B, now());
    let given: Vec<_> = join_all([1, 1, 1].map(vend)).await;
    assert!(given[0].is_ok() && given.iter().all(|ice| *ice == given[0]));
    assert!(vend(2).await.is_ok() && vend(3).await.is_ok());
    assert!(vend(4).await.is_err(), "three sessions have had one each");
}
