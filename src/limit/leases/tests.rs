use std::sync::Mutex;

use sovereign_relay_actors::ports::TokenHash;
use sovereign_relay_protocol::time::UnixMillis;
use tokio::sync::Notify;

use super::*;

const RATE: u32 = 600;

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Now {
        Now {
            mono: Duration::from_secs(1_000),
            unix: UnixMillis(1_800_000_000_000),
        }
    }
}

fn now() -> Now {
    StoppedClock.now()
}

/// Grants from what is left, when it is let.
#[derive(Default)]
struct Bank {
    left: Mutex<u32>,
    calls: Mutex<Vec<(Account, Ask)>>,
    open: Notify,
    is_away: bool,
    hangs: bool,
    panics: bool,
}

struct Source(Arc<Bank>);

impl TokenSource for Source {
    fn lease(&self, account: Account, ask: Ask) -> BoxFuture<'static, Result<Grant, StoreError>> {
        let bank = self.0.clone();
        bank.calls.lock().unwrap().push((account, ask));
        async move {
            if bank.hangs {
                std::future::pending::<()>().await;
            }
            assert!(!bank.panics, "a panic that a test asks for");
            if bank.is_away {
                return Err(StoreError("away".to_owned()));
            }
            bank.open.notified().await;
            let mut left = bank.left.lock().unwrap();
            let granted = (*left).min(ask.wanted);
            *left -= granted;
            Ok(Grant {
                granted,
                left: *left,
                wait: Duration::from_secs(1),
            })
        }
        .boxed()
    }

    fn replicas(&self) -> u32 {
        3
    }
}

fn bank(left: u32) -> Bank {
    Bank {
        left: Mutex::new(left),
        ..Bank::default()
    }
}

fn limits(bank: Bank) -> (LeasedLimits, Arc<Bank>) {
    let bank = Arc::new(bank);
    let limits = LeasedLimits::new(
        Arc::new(EmbeddedLimits::new()),
        Arc::new(Source(bank.clone())),
        Arc::new(StoppedClock),
    );
    (limits, bank)
}

fn bill(group: Option<u64>) -> Bill {
    Bill {
        instance: InstanceId::from_bytes([1; 16]),
        per_minute: RATE,
        group,
    }
}

fn soon(payment: Payment) -> BoxFuture<'static, Paid> {
    match payment {
        Payment::Soon(paid) => paid,
        Payment::Now(_) => panic!("known at once"),
        Payment::Alone => panic!("not shared"),
    }
}

fn known(payment: Payment) -> Paid {
    match payment {
        Payment::Now(paid) => paid,
        Payment::Soon(_) => panic!("not known yet"),
        Payment::Alone => panic!("not shared"),
    }
}

#[tokio::test]
async fn those_who_wait_are_served_by_one_call_in_the_order_they_came() {
    let (limits, bank) = limits(bank(12));
    let first = soon(limits.pay(bill(None), now()));
    let more: Vec<_> = (0..20).map(|_| soon(limits.pay(bill(None), now()))).collect();
    bank.open.notify_one();
    first.await.unwrap().keep();
    bank.open.notify_one();
    let mut refused = 0;
    for paid in more {
        match paid.await {
            Ok(receipt) => {
                assert_eq!(refused, 0, "nobody overtakes");
                receipt.keep();
            }
            Err(wait) => {
                assert_eq!(wait, Limit::Instance.wait(Duration::from_secs(1)));
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 20 - 11, "the twelve that there were are spent");
    assert_eq!(bank.calls.lock().unwrap().len(), 2);
    assert_eq!(
        known(limits.pay(bill(None), now())).err(),
        Some(Limit::Instance.wait(Duration::from_secs(1)))
    );
}

#[tokio::test]
async fn a_receipt_that_is_not_kept_goes_back() {
    let (limits, bank) = limits(bank(1));
    bank.open.notify_one();
    drop(soon(limits.pay(bill(None), now())).await.unwrap());
    drop(known(limits.pay(bill(None), now())).unwrap());
    known(limits.pay(bill(None), now())).unwrap().keep();
    assert!(known(limits.pay(bill(None), now())).is_err());
}

#[tokio::test]
async fn a_push_that_died_while_it_waited_costs_nothing() {
    let (limits, bank) = limits(bank(1));
    drop(soon(limits.pay(bill(None), now())));
    let next = soon(limits.pay(bill(None), now()));
    bank.open.notify_one();
    assert!(next.await.is_err(), "it was told before the token came back");
    known(limits.pay(bill(None), now())).unwrap().keep();
}

#[tokio::test]
async fn a_young_instance_pays_its_group_too_or_nothing() {
    let (limits, bank) = limits(bank(1));
    let young = soon(limits.pay(bill(Some(7)), now()));
    bank.open.notify_one();
    bank.open.notify_one();
    let told = tokio::spawn(young);
    tokio::task::yield_now().await;
    bank.open.notify_one();
    assert!(told.await.unwrap().is_err(), "one of the two had none");
    let calls = bank.calls.lock().unwrap().clone();
    let rates: Vec<_> = calls
        .iter()
        .map(|(account, ask)| (*account, ask.per_minute))
        .collect();
    assert_eq!(rates[0], (Account::Instance(bill(None).instance), RATE));
    assert_eq!(rates[1], (Account::Group(7), YOUNG_GROUP_PER_MINUTE));
    known(limits.pay(bill(None), now())).unwrap().keep();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_or_fails_holds_a_push_up_for_a_moment_and_its_share_decides() {
    for (is_away, hangs) in [(true, false), (false, true)] {
        let (limits, _bank) = limits(Bank {
            is_away,
            hangs,
            ..bank(0)
        });
        let paid = soon(limits.pay(bill(None), now()));
        let moment = PATIENCE + Duration::from_millis(2);
        let paid = tokio::time::timeout(moment, paid)
            .await
            .expect("it is told in time");
        paid.unwrap().keep();
        for _ in 1..RATE / 3 {
            known(limits.pay(bill(None), now())).unwrap().keep();
        }
        assert!(
            known(limits.pay(bill(None), now())).is_err(),
            "a third is its share"
        );
    }
}

#[tokio::test]
async fn a_call_that_panics_or_ends_with_its_runtime_counts_as_failed() {
    let (limits, bank) = limits(Bank {
        panics: true,
        ..bank(0)
    });
    soon(limits.pay(bill(None), now())).await.unwrap().keep();
    assert_eq!(bank.calls.lock().unwrap().len(), 1);
    known(limits.pay(bill(None), now())).unwrap().keep();

    let (limits, _bank) = self::limits(Bank {
        hangs: true,
        ..self::bank(0)
    });
    let asking = limits.clone();
    let paid = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        soon(asking.pay(bill(None), now()))
    });
    paid.await.unwrap().await.unwrap().keep();
    known(limits.pay(bill(None), now())).unwrap().keep();
}

#[tokio::test]
async fn what_is_at_rest_is_forgotten_and_what_is_held_is_not() {
    let (limits, bank) = limits(bank(100));
    bank.open.notify_one();
    soon(limits.pay(bill(None), now())).await.unwrap().keep();
    limits.clean(now());
    assert_eq!(limits.accounts(), 1, "it holds tokens");
    limits.clean(now().plus(Duration::from_secs(60)));
    assert_eq!(limits.accounts(), 0);
}

#[test]
fn the_budget_of_a_token_stays_this_replicas_own() {
    let (limits, bank) = limits(bank(0));
    let spend = SharedSpend {
        group: None,
        token: TokenHash(1),
    };
    let passed = (0..1000)
        .take_while(|_| limits.take(spend, now()).is_ok())
        .count();
    assert_eq!(passed, 240);
    assert!(limits.check(spend, now()).is_err());
    assert!(bank.calls.lock().unwrap().is_empty());
}
