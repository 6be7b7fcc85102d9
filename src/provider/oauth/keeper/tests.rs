//! The task on a paused clock, with a double for the token endpoint.

use std::collections::VecDeque;

use futures_util::future::{BoxFuture, join_all};
use sovereign_relay_protocol::time::UnixMillis;

use super::{super::response, *};
use crate::clock::SystemClock;

const HOUR: Duration = Duration::from_secs(3600);
const LATENCY: Duration = Duration::from_millis(100);

/// A push that was not refused yet.
const FIRST: Asker = Asker {
    sender: TurnKey::Group(1),
    refused_with: 0,
};

struct NoEntropy;

impl Entropy for NoEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// Answers in order, then with tokens of an hour; each answer takes its time.
#[derive(Clone, Default)]
struct Endpoint {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    answers: VecDeque<Option<TokenError>>,
    always: Option<TokenError>,
    panics: bool,
    fetches: u64,
    under_way: u64,
    most_under_way: u64,
}

impl Endpoint {
    fn then(self, answer: Option<TokenError>) -> Self {
        self.inner().answers.push_back(answer);
        self
    }

    fn always(self, error: TokenError) -> Self {
        self.inner().always = Some(error);
        self
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn fetches(&self) -> u64 {
        self.inner().fetches
    }
}

impl TokenSource for Endpoint {
    fn fetch(&self, _: UnixMillis) -> BoxFuture<'_, Result<Issued, TokenError>> {
        let answer = {
            let mut inner = self.inner();
            inner.fetches += 1;
            inner.under_way += 1;
            inner.most_under_way = inner.most_under_way.max(inner.under_way);
            let always = inner.always;
            inner.answers.pop_front().unwrap_or(always)
        };
        Box::pin(async move {
            sleep(LATENCY).await;
            let panics = std::mem::take(&mut self.inner().panics);
            assert!(!panics, "a panic, as a test asks");
            self.inner().under_way -= 1;
            answer.map_or_else(|| Ok(issued()), Err)
        })
    }
}

fn issued() -> Issued {
    response::parse(br#"{"access_token":"t","expires_in":3600}"#).unwrap()
}

struct World {
    endpoint: Endpoint,
    clock: Arc<SystemClock>,
    keeper: TokenKeeper,
}

impl World {
    fn with(endpoint: Endpoint) -> Self {
        let clock = Arc::new(SystemClock::new());
        let ports = (clock.clone() as Arc<dyn Clock>, Arc::new(NoEntropy) as _);
        let keeper = TokenKeeper::start(endpoint.clone(), ports, &Handle::current());
        Self {
            endpoint,
            clock,
            keeper,
        }
    }

    async fn token(&self) -> Result<u64, TokenError> {
        self.token_within(Duration::from_secs(10)).await
    }

    async fn token_within(&self, patience: Duration) -> Result<u64, TokenError> {
        let deadline = self.clock.now().mono + patience;
        match self.keeper.token(FIRST, deadline).await {
            Ok(token) => Ok(token.serial),
            Err(NoToken::NotIssued { error, .. }) => Err(error),
            Err(doubted @ NoToken::Doubted { .. }) => panic!("{doubted:?}"),
        }
    }

    /// For a push that was refused with another.
    async fn token_after(&self, refused: &AccessToken) -> Result<u64, NoToken> {
        let deadline = self.clock.now().mono + Duration::from_secs(10);
        let asker = Asker {
            refused_with: refused.serial,
            ..FIRST
        };
        let token = self.keeper.token(asker, deadline).await;
        token.map(|token| token.serial)
    }

    /// What a push of `sender` comes to that is told at once.
    async fn told(&self, sender: TurnKey) -> Result<u64, NoToken> {
        let deadline = self.clock.now().mono + Duration::from_secs(10);
        let asker = Asker { sender, ..FIRST };
        let token = self.keeper.token(asker, deadline).await;
        token.map(|token| token.serial)
    }

    /// How long a push waits for its token.
    async fn wait(&self) -> Duration {
        let began = self.clock.now().mono;
        self.token().await.unwrap();
        self.clock.now().mono - began
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_pushes_wait_for_one_fetch() {
    let world = World::with(Endpoint::default());
    let tokens = join_all((0..1000).map(|_| world.token())).await;
    assert!(tokens.iter().all(|token| *token == Ok(1)));
    assert_eq!(world.endpoint.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_refusals_of_one_token_make_one_fetch() {
    let world = World::with(Endpoint::default());
    world.token().await.unwrap();
    let old = world.keeper.token(FIRST, HOUR).await.unwrap();
    let refused = |push: u64| world.keeper.refused(&old, TurnKey::Group(push % 7));
    let mends: Vec<_> = (0..1000).map(refused).collect();
    assert_eq!(mends[0], Mend::Begins, "told once");
    assert!(mends[1..].iter().all(|mend| *mend == Mend::UnderWay));
    let tokens = join_all((0..1000).map(|_| world.token_after(&old))).await;
    assert!(tokens.iter().all(|token| *token == Ok(2)));
    assert_eq!(refused(1), Mend::UnderWay, "a late refusal");
    assert_eq!(world.token().await, Ok(2));
    assert_eq!(world.endpoint.fetches(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_several_are_refused_with_twice_is_told_with_the_rest_of_its_wait() {
    let world = World::with(Endpoint::default());
    for _ in 0..2 {
        world.token().await.unwrap();
        let token = world.keeper.token(FIRST, HOUR).await.unwrap();
        for sender in 1..=3 {
            world.keeper.refused(&token, TurnKey::Group(sender));
        }
        sleep(LATENCY).await;
    }
    sleep(Duration::from_secs(4)).await;
    let Err(NoToken::Doubted { wait }) = world.told(TurnKey::Group(3)).await else {
        panic!("several were refused with it");
    };
    assert!((5..=6).contains(&wait.as_secs()), "{wait:?}");
    sleep(wait).await;
    assert_eq!(world.told(TurnKey::Group(3)).await, Ok(3));
}

#[tokio::test(start_paused = true)]
async fn while_the_endpoint_backs_off_pushes_are_told_how_long() {
    let world = World::with(Endpoint::default().always(TokenError::Unusable));
    for _ in 0..9 {
        let NoToken::NotIssued { error, wait } = world.told(TurnKey::Group(1)).await.unwrap_err() else {
            panic!("there is no token to doubt");
        };
        assert_eq!(error, TokenError::Unusable);
        let wait = wait.expect("the next try has its time");
        assert!(
            Duration::ZERO < wait && wait <= Duration::from_secs(10),
            "{wait:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_push_is_enough_for_its_token_to_be_refreshed_ahead() {
    let world = World::with(Endpoint::default());
    assert_eq!(world.token().await, Ok(1));
    sleep(HOUR * 4 / 5 + LATENCY * 2).await;
    assert_eq!(world.endpoint.fetches(), 2);
    assert_eq!(world.wait().await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn through_a_day_of_expiries_no_push_waits_but_the_first_and_nothing_is_fetched_twice() {
    let world = World::with(Endpoint::default());
    assert_eq!(world.wait().await, LATENCY);
    for _ in 0..24 * 60 {
        sleep(Duration::from_secs(60)).await;
        assert_eq!(world.wait().await, Duration::ZERO);
    }
    assert!(
        (29..=31).contains(&world.endpoint.fetches()),
        "one each 48 minutes, not {}",
        world.endpoint.fetches()
    );
    assert_eq!(world.endpoint.inner().most_under_way, 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_relay_fetches_one_token_ahead_and_then_none() {
    let world = World::with(Endpoint::default());
    world.token().await.unwrap();
    sleep(24 * HOUR).await;
    assert_eq!(world.endpoint.fetches(), 2);
    assert_eq!(world.wait().await, LATENCY);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_away_for_a_second_costs_no_push() {
    let away = Some(TokenError::Unreachable);
    let world = World::with(Endpoint::default().then(away).then(away));
    assert_eq!(world.token().await, Ok(3));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_stays_away_is_told_when_no_try_is_left_before_the_deadline() {
    let world = World::with(Endpoint::default().always(TokenError::Unreachable));
    let began = world.clock.now().mono;
    assert_eq!(world.token().await, Err(TokenError::Unreachable));
    let waited = world.clock.now().mono - began;
    assert_eq!(
        world.endpoint.fetches(),
        6,
        "half a second, doubling, halved by the jitter"
    );
    assert_eq!(waited, LATENCY * 6 + Duration::from_millis(250 * 31));
    let next = waited + Duration::from_secs(5);
    assert!(next > Duration::from_secs(10), "the next would be too late");
}

#[tokio::test(start_paused = true)]
async fn a_push_that_ends_before_the_next_try_of_the_endpoint_does_not_wait_for_nothing() {
    let world = World::with(Endpoint::default().always(TokenError::Unreachable));
    assert_eq!(world.token_within(HOUR / 60).await, Err(TokenError::Unreachable));
    let (began, fetches) = (world.clock.now().mono, world.endpoint.fetches());
    let patience = Duration::from_millis(100);
    assert_eq!(world.token_within(patience).await, Err(TokenError::Unreachable));
    assert_eq!(world.clock.now().mono, began, "told at once");
    assert_eq!(world.token().await, Err(TokenError::Unreachable));
    assert!(world.endpoint.fetches() > fetches, "one that has the time waits");
}

#[tokio::test(start_paused = true)]
async fn a_throttled_endpoint_is_left_alone_and_pushes_are_told_what_is_left_of_its_wait() {
    let error = TokenError::Throttled {
        wait: Duration::from_secs(37),
    };
    let told = |rest| NoToken::NotIssued {
        error,
        wait: Some(Duration::from_secs(rest)),
    };
    let world = World::with(Endpoint::default().then(Some(error)));
    let sender = FIRST.sender;
    assert_eq!(world.told(sender).await, Err(told(37)));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(world.told(sender).await, Err(told(17)));
    assert_eq!(world.endpoint.fetches(), 1);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(world.token().await, Ok(2), "it has the time to wait");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_in_trouble_is_asked_once_for_all_who_wait() {
    let world = World::with(Endpoint::default().then(Some(TokenError::Unavailable)));
    let tokens = join_all((0..1000).map(|_| world.token())).await;
    assert!(tokens.iter().all(|token| *token == Err(TokenError::Unavailable)));
    assert_eq!(world.endpoint.fetches(), 1);
    assert_eq!(world.token().await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_told_at_once_until_the_next_try() {
    let world = World::with(Endpoint::default().always(TokenError::Refused));
    for push in 0..10_000 {
        assert_eq!(world.token().await, Err(TokenError::Refused), "push {push}");
        sleep(Duration::from_millis(36)).await;
    }
    let fetches = world.endpoint.fetches();
    assert!(
        (10..=20).contains(&fetches),
        "{fetches} in six minutes of pushes: back-off to half a minute or more"
    );
    sleep(HOUR).await;
    assert!(
        world.endpoint.fetches() <= fetches + 1,
        "nobody pushes, nobody is asked"
    );
}

#[tokio::test(start_paused = true)]
async fn mended_credentials_are_noticed_by_the_first_push_after_a_pause() {
    let world = World::with(
        Endpoint::default()
            .then(Some(TokenError::Refused))
            .then(Some(TokenError::Refused)),
    );
    assert_eq!(world.token().await, Err(TokenError::Refused));
    sleep(HOUR).await;
    assert_eq!(world.token().await, Ok(3));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_ahead_that_fails_leaves_the_token_in_use() {
    let world = World::with(Endpoint::default().then(None).always(TokenError::Unavailable));
    assert_eq!(world.token().await, Ok(1));
    for _ in 0..11 {
        sleep(Duration::from_secs(300)).await;
        assert_eq!(world.token().await, Ok(1));
    }
    assert!(world.endpoint.fetches() > 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_keeper_ends_its_task() {
    let world = World::with(Endpoint::default());
    let inner = Arc::downgrade(&world.endpoint.inner);
    drop(world);
    while inner.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_panics_is_followed_by_another_for_those_who_wait() {
    let world = World::with(Endpoint::default());
    world.endpoint.inner().panics = true;
    assert!(world.token().await.is_ok());
    assert_eq!(world.endpoint.fetches(), 2);
}
