//! Settings that the instance keeps for itself, such as its VAPID key: table `push_settings`.

use sovereign_relay_protocol::redacted::Redacted;

use super::{Store, StoreError};

impl Store {
    /// The value, if there is one.
    pub async fn setting(&self, name: &str) -> Result<Option<Redacted>, StoreError> {
        let value: Option<String> = sqlx::query_scalar("SELECT value FROM push_settings WHERE name = $1")
            .bind(name)
            .fetch_optional(&self.pool)
            .await?;
        Ok(value.map(Redacted::new))
    }

    /// Sets it, whatever it was.
    pub async fn put_setting(&self, name: &str, value: &Redacted) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO push_settings (name, value) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )
        .bind(name)
        .bind(value.expose())
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Back to the default. Whether it was set.
    pub async fn remove_setting(&self, name: &str) -> Result<bool, StoreError> {
        let removed = sqlx::query("DELETE FROM push_settings WHERE name = $1")
            .bind(name)
            .execute(&self.pool)
            .await?;
        Ok(removed.rows_affected() > 0)
    }

    /// Sets it unless it is set, and gives the value that holds: of two processes that start at once, both get one key.
    pub async fn setting_or(&self, name: &str, value: &Redacted) -> Result<Redacted, StoreError> {
        sqlx::query("INSERT INTO push_settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
            .bind(name)
            .bind(value.expose())
            .execute(&self.pool)
            .await?;
        Ok(self.setting(name).await?.unwrap_or_else(|| value.clone()))
    }
}
