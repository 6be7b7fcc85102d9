use proptest::prelude::*;

use super::*;

const BOUNDS: BodyBounds = BodyBounds {
    total: 100,
    batches: 70,
    instance: 40,
};

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn batch(budget: &Arc<BodyBudget>, number: u8, bytes: usize) -> Result<BodyShare, NoRoom> {
    grown(budget, BodyKind::Batch(instance(number)), bytes)
}

fn grown(budget: &Arc<BodyBudget>, kind: BodyKind, bytes: usize) -> Result<BodyShare, NoRoom> {
    let mut share = budget.share(kind);
    share.grow_to(bytes).map(|()| share)
}

#[test]
fn one_instance_gets_its_share_whatever_it_is_called_and_leaves_the_rest_to_others() {
    let budget = BodyBudget::new(BOUNDS);
    let _batch = batch(&budget, 1, 30).unwrap();
    let single = BodyKind::Single(Some(instance(1)));
    assert_eq!(grown(&budget, single, 11).err(), Some(NoRoom::Instance));
    let _single = grown(&budget, single, 10).unwrap();
    assert_eq!(batch(&budget, 1, 1).err(), Some(NoRoom::Instance));
    assert!(batch(&budget, 2, 30).is_ok());
}

#[test]
fn batches_leave_room_for_single_requests() {
    let budget = BodyBudget::new(BOUNDS);
    let _batches: Vec<_> = (1..=2)
        .map(|number| batch(&budget, number, 35).unwrap())
        .collect();
    assert_eq!(batch(&budget, 3, 1).err(), Some(NoRoom::Relay));
    let _single = grown(&budget, BodyKind::Single(None), 30).unwrap();
    assert_eq!(
        grown(&budget, BodyKind::Single(None), 1).err(),
        Some(NoRoom::Relay)
    );
}

#[test]
fn what_was_refused_took_nothing_and_what_was_dropped_is_free_again() {
    let budget = BodyBudget::new(BOUNDS);
    let all = grown(&budget, BodyKind::Single(None), 100).unwrap();
    assert_eq!(batch(&budget, 1, 40).err(), Some(NoRoom::Relay));
    drop(all);
    assert_eq!(budget.held(), 0);
    assert!(
        batch(&budget, 1, 40).is_ok(),
        "the refused try cost the instance nothing"
    );
    assert_eq!((budget.held(), budget.instances.len()), (0, 0));
}

#[test]
fn a_share_that_cannot_grow_keeps_what_it_has() {
    let budget = BodyBudget::new(BOUNDS);
    let mut share = batch(&budget, 1, 40).unwrap();
    assert_eq!(share.grow_to(41), Err(NoRoom::Instance));
    assert_eq!(share.grow_to(usize::MAX), Err(NoRoom::Instance));
    assert_eq!((share.grow_to(7), budget.held()), (Ok(()), 40));
}

proptest! {
    #[test]
    fn no_bound_is_ever_exceeded_and_everything_comes_back(
        steps in prop::collection::vec((0_u8..4, any::<bool>(), 0_usize..60, any::<bool>()), 1..200)
    ) {
        let budget = BodyBudget::new(BOUNDS);
        let mut shares: Vec<BodyShare> = Vec::new();
        for (number, is_batch, bytes, ends) in steps {
            let kind = match (is_batch, number) {
                (true, _) => BodyKind::Batch(instance(number)),
                (false, 0) => BodyKind::Single(None),
                (false, _) => BodyKind::Single(Some(instance(number))),
            };
            shares.extend(grown(&budget, kind, bytes));
            if ends && !shares.is_empty() {
                shares.swap_remove(bytes % shares.len());
            }
            let sum: usize = shares.iter().map(|share| share.bytes).sum();
            prop_assert_eq!(budget.held(), sum);
            prop_assert!(sum <= BOUNDS.total);
            for entry in &budget.instances {
                let own = shares.iter().filter(|share| share.kind.instance() == Some(*entry.key()));
                prop_assert_eq!(own.map(|share| share.bytes).sum::<usize>(), *entry.value());
                prop_assert!(*entry.value() <= BOUNDS.instance);
            }
        }
        drop(shares);
        prop_assert_eq!((budget.held(), budget.instances.len()), (0, 0));
    }
}
