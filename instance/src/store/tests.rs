//! One contract on both databases, and what only one of them has.
//!
//! Each function of the contract takes an empty store. On SQLite each is a test of its own; PostgreSQL's server takes a
//! while to make, so one test of it runs all, each in a database of its own, and prints their names.

use std::pin::Pin;

use super::testing::{Place, postgres::Server};

macro_rules! contract {
    ($($name:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                let directory = tempfile::tempdir().unwrap();
                let url = format!("sqlite:{}", directory.path().join("push.db").display());
                let place = crate::store::testing::Place::open(url).await;
                let store = place.store.clone();
                super::$name(place).await;
                store.close().await;
            }
        )*

        pub(crate) const CASES: &[(&str, crate::store::tests::Case)] =
            &[$((stringify!($name), |place| Box::pin(super::$name(place)))),*];
    };
}

pub(super) type Case = fn(Place) -> Pin<Box<dyn Future<Output = ()>>>;

mod broken;
mod crash;
mod devices;
mod lanes;
mod locks;
mod log;
mod migrations;
mod outbox;
mod plans;
mod relays;
mod subscriptions;
mod two_processes;

#[tokio::test]
async fn postgresql_keeps_the_same_contract() {
    let server = Server::start();
    let modules = [
        devices::contract::CASES,
        lanes::contract::CASES,
        log::contract::CASES,
        migrations::contract::CASES,
        outbox::contract::CASES,
        relays::contract::CASES,
        subscriptions::contract::CASES,
        two_processes::contract::CASES,
    ];
    for (number, (name, case)) in modules.into_iter().flatten().enumerate() {
        println!("{name}");
        let place = Place::open(server.database(&format!("case_{number}")).await).await;
        let store = place.store.clone();
        case(place).await;
        store.close().await;
    }
}
