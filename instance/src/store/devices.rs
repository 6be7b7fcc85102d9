//! Native devices: table `push_device_tokens`.
//!
//! A token is an installed app, and belongs to whoever registered it last: on a shared phone that is the second user.
//! What was still to be sent to it for the first one is dropped in the same transaction, as it would be shown to the
//! wrong person.

use sovereign_relay_protocol::{
    platform::{Environment, Platform},
    redacted::Redacted,
};
use sqlx::any::AnyRow;
use uuid::Uuid;

use super::{
    Registered, Store, StoreError, outbox,
    room::{self, Kind, Newcomer},
    row::{self, Unreadable},
    sql::integer,
};
use crate::{entropy, user::User};

pub(super) const TABLE: &str = "push_device_tokens";

pub(super) const KIND: Kind = Kind {
    table: TABLE,
    address: "device_token",
};
const UPSERT: &str = "INSERT INTO push_device_tokens \
     (id, tenant_id, user_id, platform, device_token, public_key, relay_url, environment, created_at, last_used_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULL) \
     ON CONFLICT (device_token) DO UPDATE SET \
     tenant_id = excluded.tenant_id, user_id = excluded.user_id, platform = excluded.platform, \
     public_key = excluded.public_key, relay_url = excluded.relay_url, environment = excluded.environment, \
     created_at = excluded.created_at, last_used_at = NULL RETURNING id";
pub(super) const OF_USER: &str = "SELECT \
     id, tenant_id, user_id, platform, device_token, public_key, relay_url, environment, created_at, last_used_at \
     FROM push_device_tokens WHERE tenant_id = $1 AND user_id = $2 ORDER BY created_at, id";
pub(super) const PRUNE: &str = "DELETE FROM push_device_tokens \
     WHERE id = $1 AND created_at = $2 AND public_key = $3 AND created_at < $4";

/// A registered device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Row's id, which the user's other devices see.
    pub id: Uuid,
    /// Whose.
    pub user: User,
    /// Which provider.
    pub platform: Platform,
    /// The provider's address of it.
    pub token: Redacted,
    /// What is sent to it is sealed for this key.
    pub public_key: String,
    /// The relay it was registered with, which may have ceased to be the instance's relay since.
    pub relay_url: String,
    /// Apple's environment, where the app has named one; else the relay decides.
    pub environment: Option<Environment>,
    /// When this user registered it, with this key.
    pub created_at: u64,
    /// When something was last delivered to it.
    pub last_used_at: Option<u64>,
}

/// A device to register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewDevice {
    /// Whose.
    pub user: User,
    /// Which provider.
    pub platform: Platform,
    /// The provider's address of it.
    pub token: Redacted,
    /// Checked by the caller to be a P-256 point.
    pub public_key: String,
    /// The relay that the instance uses now.
    pub relay_url: String,
    /// Apple's environment, where the app names one.
    pub environment: Option<Environment>,
}

impl Store {
    /// Registers a device, or moves its token to this user, key and relay. A user has `limit` devices at most, one at
    /// least: those that were unused longest go in the same transaction, and what waits for them.
    pub async fn register_device(
        &self,
        device: &NewDevice,
        limit: u32,
        now: u64,
    ) -> Result<Registered, StoreError> {
        let mut transaction = self.begin().await?;
        let newcomer = device.newcomer();
        let removed = room::make(self.dialect, &mut transaction, KIND, newcomer, limit).await?;
        let id: String = sqlx::query_scalar(UPSERT)
            .bind(entropy::uuid().to_string())
            .bind(&device.user.tenant)
            .bind(&device.user.id)
            .bind(device.platform.as_str())
            .bind(device.token.expose())
            .bind(&device.public_key)
            .bind(&device.relay_url)
            .bind(device.environment.map(Environment::as_str))
            .bind(integer(now))
            .fetch_one(&mut *transaction)
            .await?;
        let owner = (&device.user, device.public_key.as_str());
        outbox::drop_unless(self.dialect, &mut transaction, &id, owner).await?;
        transaction.commit().await?;
        Ok(Registered {
            id: Uuid::parse_str(&id).unwrap_or_default(),
            removed,
        })
    }

    /// All of a user's devices, the first registered first.
    pub async fn devices_of(&self, user: &User) -> Result<Vec<Device>, StoreError> {
        let rows = sqlx::query(OF_USER)
            .bind(&user.tenant)
            .bind(&user.id)
            .fetch_all(&self.pool)
            .await?;
        Ok(row::readable(TABLE, &rows, device))
    }

    /// Signs a device out. Nothing that waits for it is sent any more. Whether this user had it.
    pub async fn remove_device(&self, user: &User, id: Uuid) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let removed =
            sqlx::query("DELETE FROM push_device_tokens WHERE id = $1 AND tenant_id = $2 AND user_id = $3")
                .bind(id.to_string())
                .bind(&user.tenant)
                .bind(&user.id)
                .execute(&mut *transaction)
                .await?;
        let removed = removed.rows_affected() > 0;
        if removed {
            outbox::drop_target(self.dialect, &mut transaction, &[id.to_string()]).await?;
        }
        transaction.commit().await?;
        Ok(removed)
    }

    /// Removes a device whose token its provider has called invalid since `invalid_since`, but only the registration
    /// as it was read before sending, and only when it is older: a token that was registered again meanwhile is good.
    /// Both times are rounded down, so the same second proves nothing and keeps it. Whether it is gone by this call.
    pub async fn prune_device(&self, read: &Device, invalid_since: u64) -> Result<bool, StoreError> {
        self.prune_device_as(read.id, read.created_at, &read.public_key, invalid_since)
            .await
    }

    /// [`Store::prune_device`] for what a row of the outbox remembers of the device.
    pub async fn prune_device_as(
        &self,
        id: Uuid,
        created_at: u64,
        public_key: &str,
        invalid_since: u64,
    ) -> Result<bool, StoreError> {
        let pruned = sqlx::query(PRUNE)
            .bind(id.to_string())
            .bind(integer(created_at))
            .bind(public_key)
            .bind(integer(invalid_since))
            .execute(&self.pool)
            .await?;
        Ok(pruned.rows_affected() > 0)
    }
}

impl NewDevice {
    fn newcomer(&self) -> Newcomer<'_> {
        Newcomer {
            user: &self.user,
            address: self.token.expose(),
        }
    }
}

fn device(row: &AnyRow) -> Result<Device, Unreadable> {
    Ok(Device {
        id: row::id(row, "id")?,
        user: row::user(row)?,
        platform: row::parsed(row, "platform", Platform::parse)?,
        token: row::redacted(row, "device_token")?,
        public_key: row::text(row, "public_key")?,
        relay_url: row::text(row, "relay_url")?,
        environment: row::optional(row, "environment", Environment::parse)?,
        created_at: row::number(row, "created_at")?,
        last_used_at: row::optional_number(row, "last_used_at")?,
    })
}
