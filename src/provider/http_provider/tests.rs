//! A provider of nothing, for what is the same in all.

use std::thread;

use bytes::Bytes;
use reqwest::RequestBuilder;
use sovereign_relay_actors::push::TurnKey;

use super::*;
use crate::{
    clock::SystemClock,
    entropy::SystemEntropy,
    provider::{
        answer::{Answer, Reading},
        call::Over,
        oauth::Grant,
    },
};

struct Nothing;

/// There is none.
enum NoPush {}

impl Push for NoPush {
    fn body(&self) -> Bytes {
        match *self {}
    }

    fn request(&self, _: Over) -> RequestBuilder {
        match *self {}
    }

    fn read(&self, _: &Answer) -> Reading {
        match *self {}
    }

    fn is_own(&self, _: &Answer) -> bool {
        match *self {}
    }

    fn sender(&self) -> TurnKey {
        match *self {}
    }
}

impl Service for Nothing {
    const NAME: &'static str = "nothing";
    const PLATFORM: Platform = Platform::Windows;
    const CAPACITY: usize = 1;

    type Config = reqwest::Client;
    type Error = std::convert::Infallible;
    type Push<'a> = NoPush;

    fn account(http: reqwest::Client) -> Result<Option<NewAccount<Self>>, Self::Error> {
        let grant = Grant::ClientCredentials {
            client_id: String::new(),
            client_secret: sovereign_relay_protocol::redacted::Redacted::new(""),
            scope: "",
        };
        Ok(Some(NewAccount {
            scope: Self::NAME.into(),
            tokens: TokenEndpoint {
                provider: Self::NAME,
                grant,
                url: reqwest::Url::parse("http://localhost/").unwrap(),
                http,
            },
            service: Self,
        }))
    }

    fn push<'a>(&'a self, _: &'a Delivery) -> Option<NoPush> {
        None
    }

    fn describe(_: reqwest::Error) -> String {
        String::new()
    }
}

fn generation(provider: &HttpProvider<Nothing>) -> u64 {
    provider.scope(Platform::Windows).unwrap().generation
}

#[tokio::test(flavor = "multi_thread")]
async fn reloads_that_overlap_never_bring_an_earlier_generation_back() {
    let ports: (Arc<dyn Clock>, Arc<dyn Entropy>) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let http = reqwest::Client::new();
    let provider = HttpProvider::<Nothing>::new(http.clone(), ports, Handle::current()).unwrap();
    let never_went_back = || {
        let mut latest = 0;
        (0..5_000).all(|_| {
            let before = generation(&provider);
            provider.reload(http.clone()).unwrap();
            let after = generation(&provider);
            let grew = latest <= before && before < after;
            latest = after;
            grew
        })
    };
    let all_agree = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(never_went_back)).collect();
        threads.into_iter().all(|thread| thread.join().unwrap())
    });
    assert!(all_agree);
    assert_eq!(generation(&provider), 20_000);
}
