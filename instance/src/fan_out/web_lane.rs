//! Browsers: what the fan-out needs of Web Push, and a lane's rows through it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use sovereign_relay_client::protocol::{redacted::Redacted, time::UnixMillis};

use super::{
    FanOut,
    verdict::{Later, Met},
};
use crate::{
    store::{OutboxRow, Subscription},
    web_push::{self, Delivery, WebPush},
};

/// Web Push, as far as the fan-out needs it.
pub trait Browsers: Send + Sync {
    /// Seals JSON for a browser; a word for the log where that can't be done. Called off the async threads.
    fn seal(&self, browser: &Subscription, json: &str) -> Result<Vec<u8>, &'static str>;

    /// Posts what was sealed to the row's address, with its priority and tag and the time that is left to it.
    fn post<'a>(
        &'a self,
        row: &'a OutboxRow,
        sealed: Vec<u8>,
        ttl_seconds: u32,
        now: UnixMillis,
    ) -> BoxFuture<'a, Posted>;
}

/// What a push service answered. Reasons are words of a closed set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// It has it.
    Sent,
    /// The subscription is no more.
    Gone {
        /// Why.
        reason: &'static str,
    },
    /// Not now.
    Later {
        /// Why.
        reason: &'static str,
        /// Seconds that it asks for.
        after: Option<u64>,
    },
    /// Never.
    Never {
        /// Why.
        reason: &'static str,
    },
}

impl Browsers for WebPush {
    fn seal(&self, browser: &Subscription, json: &str) -> Result<Vec<u8>, &'static str> {
        let (endpoint, auth) = (browser.endpoint.expose(), browser.auth.expose());
        let subscription = web_push::Subscription::parse(endpoint, &browser.p256dh, auth, self.addresses())
            .map_err(|_| "subscription")?;
        web_push::seal(&subscription, json).map_err(|_| "not_sealed")
    }

    fn post<'a>(
        &'a self,
        row: &'a OutboxRow,
        sealed: Vec<u8>,
        ttl_seconds: u32,
        now: UnixMillis,
    ) -> BoxFuture<'a, Posted> {
        async move {
            let delivery = Delivery {
                priority: row.priority,
                ttl_seconds,
                tag: row.collapse_id.as_ref().map(Redacted::expose),
            };
            WebPush::post(self, row.address.expose(), sealed, &delivery, now)
                .await
                .into()
        }
        .boxed()
    }
}

impl From<web_push::Outcome> for Posted {
    fn from(outcome: web_push::Outcome) -> Self {
        let reason = outcome.reason();
        match outcome {
            web_push::Outcome::Sent => Self::Sent,
            web_push::Outcome::Gone => Self::Gone { reason },
            web_push::Outcome::Retry { after, .. } => Self::Later {
                reason,
                after: after.map(|after| after.as_secs()),
            },
            // The operator may mend it.
            web_push::Outcome::Misconfigured(_) => Self::Later { reason, after: None },
            web_push::Outcome::Failed(_) => Self::Never { reason },
        }
    }
}

impl From<Posted> for Met {
    fn from(posted: Posted) -> Self {
        match posted {
            Posted::Sent => Self::Sent,
            Posted::Gone { reason } => Self::Gone { since: None, reason },
            Posted::Later { reason, after } => Self::Later(Later {
                reason,
                after,
                forgotten: true,
                // Each browser has its own push service.
                shared: false,
            }),
            Posted::Never { reason } => Self::Never { reason },
        }
    }
}

impl FanOut {
    /// What each row met, in their order.
    pub(super) async fn post_all(&self, rows: &[OutboxRow]) -> Vec<Met> {
        let posts: Vec<BoxFuture<'_, Met>> = rows.iter().map(|row| self.post(row).boxed()).collect();
        stream::iter(posts)
            .buffered(self.limits.browsers_at_once.max(1))
            .collect()
            .await
    }

    async fn post(&self, row: &OutboxRow) -> Met {
        let Ok(sealed) = STANDARD.decode(row.sealed.expose()) else {
            return Met::Never {
                reason: "unreadable_row",
            };
        };
        let now = self.clock.now();
        let left = row.ttl_until.saturating_sub(now.seconds());
        let ttl_seconds = u32::try_from(left).unwrap_or(u32::MAX);
        self.browsers.post(row, sealed, ttl_seconds, now).await.into()
    }
}
