//! The contract that every store passes: `store_contract!(open)` makes one test of each function here, where
//! `open()` (async) gives a fresh, empty store and whatever must live as long.

use std::sync::Arc;

use futures_util::future::join_all;
use sovereign_relay_actors::ports::{Standing, Suspension};
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};

use super::{
    Enrolled, INVITES_OUTSTANDING, Invite, InviteHash, NewEnrollment, Record, Store, Swap,
    revocation::{Cause, Entry, Gone, Grace, Kid, Rotated, State},
};

macro_rules! store_contract {
    ($open:path) => {
        $crate::store::contract::store_contract!(@ $open:
            an_enrollment_can_be_read_back,
            enrollments_of_one_address_share_a_group_for_a_day,
            an_invite_serves_one_of_many_enrollments_at_once,
            an_unknown_or_expired_invite_enrolls_nobody,
            uses_add_up_and_time_does_not_go_back,
            a_use_of_an_unknown_instance_writes_nothing,
            the_policys_suspension_never_shortens_a_longer_one,
            the_operators_word_needs_no_enrollment_and_leaves_nothing_when_taken_back,
            records_come_in_pages_in_the_order_of_ids,
            joined_revocations_only_grow_stricter,
            a_withdrawal_erases_the_record,
            a_swap_needs_the_entry_it_expected,
            of_many_swaps_at_once_one_wins,
            invites_are_listed_until_they_expire_and_bounded,
            an_unused_record_lapses_after_seven_days,
            a_used_record_lapses_ninety_days_after_its_last_use,
            the_operators_word_and_a_running_suspension_outlive_the_record,
            what_has_expired_is_forgotten,
            an_entry_goes_long_after_its_last_secret,
        );
    };
    (@ $open:path: $($name:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                let (store, _guard) = $open().await;
                $crate::store::contract::$name(store).await;
            }
        )*
    };
}
pub(crate) use store_contract;

mod forgetting;
mod records;
mod revocations;

pub(crate) use forgetting::*;
pub(crate) use records::*;
pub(crate) use revocations::*;

type Opened = Arc<dyn Store>;

const DAY: u64 = 24 * 3600 * 1000;
const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const SECRET: Kid = Kid([1; 6]);
const OTHER_SECRET: Kid = Kid([2; 6]);

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn later(days: u64) -> UnixMillis {
    NOW.plus_millis(days * DAY)
}

fn enrollment(number: u8) -> NewEnrollment {
    NewEnrollment {
        instance: instance(number),
        name: Some(Redacted::new("Küche")),
        contact: Some(Redacted::new("admin@home.example")),
        at: NOW,
        address: u64::from(number),
        fresh_group: 1000 + u64::from(number),
        invite: None,
    }
}

fn invite(number: u8, expires_at: UnixMillis) -> Invite {
    Invite {
        hash: InviteHash([number; 32]),
        created_at: NOW,
        expires_at,
    }
}

fn suspension(until: Option<UnixMillis>) -> Suspension {
    Suspension {
        until,
        reason: "tokens of others".to_owned(),
    }
}

fn gone(cause: Cause) -> Entry {
    Entry {
        kids: vec![SECRET],
        state: State::Gone(Gone { at: NOW, cause }),
    }
}

fn rotated(newest: u32, until: UnixMillis) -> Entry {
    let grace = vec![Grace {
        generation: newest - 1,
        until,
    }];
    Entry {
        kids: vec![SECRET],
        state: State::Rotated(Rotated {
            newest,
            issued_at: NOW.seconds(),
            used: false,
            grace,
        }),
    }
}

async fn entry_of(store: &Opened, of: InstanceId) -> Option<Entry> {
    let list = store.revocations().await.unwrap();
    list.into_iter()
        .find(|(instance, _)| *instance == of)
        .map(|(_, entry)| entry)
}
