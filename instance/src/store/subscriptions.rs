//! Browsers (RFC 8030, RFC 8291): table `push_subscriptions`.

use sovereign_relay_protocol::redacted::Redacted;
use sqlx::any::AnyRow;
use uuid::Uuid;

use super::{
    Registered, Store, StoreError, outbox,
    room::{self, Kind, Newcomer},
    row::{self, Unreadable},
    sql::integer,
};
use crate::{entropy, user::User};

pub(super) const TABLE: &str = "push_subscriptions";

pub(super) const KIND: Kind = Kind {
    table: TABLE,
    address: "endpoint",
};
const UPSERT: &str = "INSERT INTO push_subscriptions \
     (id, tenant_id, user_id, endpoint, p256dh, auth, created_at, last_used_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, NULL) \
     ON CONFLICT (endpoint) DO UPDATE SET \
     tenant_id = excluded.tenant_id, user_id = excluded.user_id, p256dh = excluded.p256dh, \
     auth = excluded.auth, created_at = excluded.created_at, last_used_at = NULL RETURNING id";
pub(super) const OF_USER: &str = "SELECT id, tenant_id, user_id, endpoint, p256dh, auth, created_at, last_used_at \
     FROM push_subscriptions WHERE tenant_id = $1 AND user_id = $2 ORDER BY created_at, id";
pub(super) const PRUNE: &str =
    "DELETE FROM push_subscriptions WHERE id = $1 AND created_at = $2 AND p256dh = $3";

/// A browser that has subscribed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subscription {
    /// Row's id.
    pub id: Uuid,
    /// Whose.
    pub user: User,
    /// The push service's address of it: whoever has it can send to it.
    pub endpoint: Redacted,
    /// The browser's public key.
    pub p256dh: String,
    /// The secret shared with the browser.
    pub auth: Redacted,
    /// When this user subscribed, with these keys.
    pub created_at: u64,
    /// When something was last delivered to it.
    pub last_used_at: Option<u64>,
}

/// A browser to subscribe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSubscription {
    /// Whose.
    pub user: User,
    /// The push service's address of it.
    pub endpoint: Redacted,
    /// The browser's public key, checked by the caller.
    pub p256dh: String,
    /// The secret shared with the browser, checked by the caller.
    pub auth: Redacted,
}

impl Store {
    /// Subscribes a browser, or moves its endpoint to this user and these keys. A user has `limit` browsers at most, one
    /// at least: those that were unused longest go in the same transaction, and what waits for them.
    pub async fn subscribe(
        &self,
        subscription: &NewSubscription,
        limit: u32,
        now: u64,
    ) -> Result<Registered, StoreError> {
        let mut transaction = self.begin().await?;
        let newcomer = subscription.newcomer();
        let removed = room::make(self.dialect, &mut transaction, KIND, newcomer, limit).await?;
        let id: String = sqlx::query_scalar(UPSERT)
            .bind(entropy::uuid().to_string())
            .bind(&subscription.user.tenant)
            .bind(&subscription.user.id)
            .bind(subscription.endpoint.expose())
            .bind(&subscription.p256dh)
            .bind(subscription.auth.expose())
            .bind(integer(now))
            .fetch_one(&mut *transaction)
            .await?;
        let owner = (&subscription.user, subscription.p256dh.as_str());
        outbox::drop_unless(self.dialect, &mut transaction, &id, owner).await?;
        transaction.commit().await?;
        Ok(Registered {
            id: Uuid::parse_str(&id).unwrap_or_default(),
            removed,
        })
    }

    /// All of a user's browsers, the first subscribed first.
    pub async fn subscriptions_of(&self, user: &User) -> Result<Vec<Subscription>, StoreError> {
        let rows = sqlx::query(OF_USER)
            .bind(&user.tenant)
            .bind(&user.id)
            .fetch_all(&self.pool)
            .await?;
        Ok(row::readable(TABLE, &rows, subscription))
    }

    /// Unsubscribes all of a user's browsers. Nothing that waits for them is sent any more. How many there were.
    pub async fn unsubscribe_all(&self, user: &User) -> Result<u64, StoreError> {
        let mut transaction = self.begin().await?;
        let removed: Vec<String> = sqlx::query_scalar(
            "DELETE FROM push_subscriptions WHERE tenant_id = $1 AND user_id = $2 RETURNING id",
        )
        .bind(&user.tenant)
        .bind(&user.id)
        .fetch_all(&mut *transaction)
        .await?;
        outbox::drop_target(self.dialect, &mut transaction, &removed).await?;
        transaction.commit().await?;
        Ok(u64::try_from(removed.len()).unwrap_or(u64::MAX))
    }

    /// Removes a browser whose push service calls it gone, but only as it was read before sending. Whether it is gone
    /// by this call.
    pub async fn prune_subscription(
        &self,
        id: Uuid,
        created_at: u64,
        p256dh: &str,
    ) -> Result<bool, StoreError> {
        let pruned = sqlx::query(PRUNE)
            .bind(id.to_string())
            .bind(integer(created_at))
            .bind(p256dh)
            .execute(&self.pool)
            .await?;
        Ok(pruned.rows_affected() > 0)
    }
}

impl NewSubscription {
    fn newcomer(&self) -> Newcomer<'_> {
        Newcomer {
            user: &self.user,
            address: self.endpoint.expose(),
        }
    }
}

fn subscription(row: &AnyRow) -> Result<Subscription, Unreadable> {
    Ok(Subscription {
        id: row::id(row, "id")?,
        user: row::user(row)?,
        endpoint: row::redacted(row, "endpoint")?,
        p256dh: row::text(row, "p256dh")?,
        auth: row::redacted(row, "auth")?,
        created_at: row::number(row, "created_at")?,
        last_used_at: row::optional_number(row, "last_used_at")?,
    })
}
