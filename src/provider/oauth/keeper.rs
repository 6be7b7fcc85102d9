//! The one task that fetches tokens, and the pushes that wait for it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{StatusCode, Url, header::HeaderValue};
use sovereign_relay_actors::ports::{Clock, Entropy};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    grant::Grant,
    response::{self, Issued},
    state::State,
};
use crate::provider::http::read_body;

/// A token endpoint that takes longer is treated as unreachable.
const FETCH_LIMIT: Duration = Duration::from_secs(8);
/// Tokens are a few KiB at most; Entra's are the longest.
const BODY_LIMIT: usize = 64 * 1024;

/// A token as it goes into `Authorization`.
#[derive(Clone)]
pub(crate) struct AccessToken {
    /// `Bearer ...`, marked sensitive.
    pub(crate) header: HeaderValue,
    /// Tells this token from the one before and the one after.
    pub(crate) serial: u64,
}

/// No token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenError {
    /// The endpoint was not reached before the deadline.
    Unreachable,
    /// It answers, but with an error of its own.
    Unavailable,
    /// It refuses the relay's credentials.
    Refused,
}

/// What waiting pushes are told.
#[derive(Clone, Default)]
struct Board {
    token: Option<AccessToken>,
    failure: Option<TokenError>,
    /// Grows with each finished fetch.
    fetches: u64,
}

struct Shared {
    provider: &'static str,
    grant: Grant,
    endpoint: Url,
    http: reqwest::Client,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    state: Mutex<State>,
    board: watch::Sender<Board>,
    wake: Notify,
}

/// Keeps one access token fresh. Dropping it ends its task.
pub(crate) struct TokenKeeper {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl TokenKeeper {
    /// Starts the task; it calls nobody until a push wants a token.
    pub(crate) fn start(
        provider: &'static str,
        grant: Grant,
        endpoint: Url,
        http: reqwest::Client,
        (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>),
        runtime: &Handle,
    ) -> Self {
        let shared = Arc::new(Shared {
            provider,
            grant,
            endpoint,
            http,
            clock,
            entropy,
            state: Mutex::default(),
            board: watch::Sender::default(),
            wake: Notify::new(),
        });
        let task = runtime.spawn(keep(Arc::clone(&shared)));
        Self { shared, task }
    }

    /// A usable token, waiting for one until `deadline` on the monotonic clock.
    pub(crate) async fn token(&self, deadline: Duration) -> Result<AccessToken, TokenError> {
        let mut board = self.shared.board.subscribe();
        let first_seen = board.borrow().fetches;
        loop {
            let now = self.shared.clock.now();
            let usable = self.shared.state().on_wanted(now.mono);
            let (token, failure, fetches) = {
                let seen = board.borrow_and_update();
                (seen.token.clone(), seen.failure, seen.fetches)
            };
            if let Some(token) = token.filter(|token| Some(token.serial) == usable) {
                return Ok(token);
            }
            self.shared.wake.notify_one();
            match failure {
                Some(TokenError::Refused) => return Err(TokenError::Refused),
                Some(error) if fetches > first_seen => return Err(error),
                Some(_) | None => {}
            }
            if timeout(now.until(deadline), board.changed()).await.is_err() {
                return Err(failure.unwrap_or(TokenError::Unreachable));
            }
        }
    }

    /// The provider answered 401 to this token. Returns whether another one can be had at once; if not, pushes are
    /// told that the credentials are refused until the next fetch.
    pub(crate) fn refused(&self, token: &AccessToken) -> bool {
        let mendable = self.shared.state().on_refused(token.serial);
        if !mendable {
            self.shared
                .board
                .send_modify(|board| board.failure = Some(TokenError::Refused));
        }
        self.shared.wake.notify_one();
        mendable
    }
}

impl Drop for TokenKeeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn jitter(&self) -> f64 {
        let mut byte = [0];
        self.entropy.fill(&mut byte);
        f64::from(u8::from_ne_bytes(byte)) / f64::from(u8::MAX)
    }
}

async fn keep(shared: Arc<Shared>) {
    loop {
        let due = shared.state().fetch_due();
        let Some(due) = due else {
            shared.wake.notified().await;
            continue;
        };
        let wait = shared.clock.now().until(due);
        if !wait.is_zero() {
            tokio::select! {
                () = sleep(wait) => {}
                () = shared.wake.notified() => {}
            }
            continue;
        }
        let outcome = fetch(&shared).await;
        publish(&shared, outcome);
    }
}

fn publish(shared: &Shared, outcome: Result<Issued, TokenError>) {
    let now = shared.clock.now().mono;
    let fetches = shared.board.borrow().fetches + 1;
    let issued = outcome.and_then(|issued| header(&issued).map(|header| (issued, header)));
    match issued {
        Ok((issued, header)) => {
            shared.state().on_fetched(fetches, issued.lifetime, now);
            let token = Some(AccessToken {
                header,
                serial: fetches,
            });
            shared.board.send_replace(Board {
                token,
                failure: None,
                fetches,
            });
        }
        Err(error) => {
            let jitter = shared.jitter();
            shared.state().on_failed(now, jitter);
            shared.board.send_modify(|board| {
                board.failure = Some(error);
                board.fetches = fetches;
            });
        }
    }
}

fn header(issued: &Issued) -> Result<HeaderValue, TokenError> {
    let text = format!("Bearer {}", issued.token.expose());
    let mut header = HeaderValue::from_str(&text).map_err(|_| TokenError::Unavailable)?;
    header.set_sensitive(true);
    Ok(header)
}

/// One request to the token endpoint. Its failure is logged here, once, whatever number of pushes wait for it.
async fn fetch(shared: &Shared) -> Result<Issued, TokenError> {
    metrics::counter!("relay_oauth_requests_total", "provider" => shared.provider).increment(1);
    let form = shared.grant.form(shared.clock.now().unix).map_err(|error| {
        tracing::error!(provider = shared.provider, %error, "no access token can be asked for");
        TokenError::Refused
    })?;
    let request = shared
        .http
        .post(shared.endpoint.clone())
        .form(&form)
        .timeout(FETCH_LIMIT);
    let response = request.send().await.map_err(|error| {
        let error = error.without_url();
        tracing::warn!(provider = shared.provider, %error, "token endpoint not reached");
        TokenError::Unreachable
    })?;
    let status = response.status();
    let body = read_body(response, BODY_LIMIT, FETCH_LIMIT)
        .await
        .unwrap_or_default();
    if status == StatusCode::OK
        && let Some(issued) = response::parse(&body)
    {
        return Ok(issued);
    }
    let refused = matches!(status.as_u16(), 400 | 401 | 403);
    let (code, status) = (response::error_code(&body), status.as_u16());
    if refused {
        tracing::error!(
            provider = shared.provider,
            status,
            code,
            "token endpoint refuses the relay's credentials"
        );
        return Err(TokenError::Refused);
    }
    tracing::warn!(
        provider = shared.provider,
        status,
        code,
        "token endpoint gives no token"
    );
    Err(TokenError::Unavailable)
}
