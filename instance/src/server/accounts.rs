//! The reference server's own users: a name, and a token of which only the hash is kept.
//!
//! A real host has sign-in of its own; this is the least that is honest without one. `user add` prints the token once.
//! An app sends it as a bearer token; the page trades it for a cookie that scripts can't read ([`super::session`]).
//!
//! A token is `<name>.<secret>`: the name finds the row, and the secret is 256 random bits, so that a plain SHA-256 of it
//! is as hard to turn back as the secret is to guess.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use sovereign_relay_protocol::redacted::Redacted;
use thiserror::Error;

use crate::{
    entropy::random_bytes,
    store::{Store, StoreError},
    user::User,
};

/// Longest name.
const NAME_CHARS: usize = 64;

/// The table is the server's alone: a host that embeds the crate has users already.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS instance_accounts \
     (name TEXT NOT NULL PRIMARY KEY, token_hash TEXT NOT NULL, created_at BIGINT NOT NULL)";

/// The users.
#[derive(Clone)]
pub(crate) struct Accounts {
    store: Store,
}

/// One of them, as the operator sees it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) created_at: u64,
}

/// A user could not be added.
#[derive(Debug, Error)]
pub(crate) enum AccountError {
    #[error("a name has 1 to 64 of the characters a-z, 0-9, `-` and `_`")]
    Name,
    #[error("there is a user of that name")]
    Taken,
    #[error("there is no user of that name")]
    Unknown,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for AccountError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Accounts {
    /// The users in a database; their table is made when it is missing.
    pub(crate) async fn open(store: &Store) -> Result<Self, AccountError> {
        // Of two processes that make the table at once, PostgreSQL lets one fail, although the table is there then.
        if sqlx::query(TABLE).execute(store.pool()).await.is_err() {
            sqlx::query(TABLE).execute(store.pool()).await?;
        }
        Ok(Self { store: store.clone() })
    }

    /// A new user, and the token that opens the account.
    pub(crate) async fn add(&self, name: &str, now: u64) -> Result<Redacted, AccountError> {
        check(name)?;
        let (token, hash) = new_token(name);
        let added = sqlx::query(
            "INSERT INTO instance_accounts (name, token_hash, created_at) VALUES ($1, $2, $3) \
             ON CONFLICT (name) DO NOTHING",
        )
        .bind(name)
        .bind(hash)
        .bind(i64::try_from(now).unwrap_or(i64::MAX))
        .execute(self.store.pool())
        .await?;
        if added.rows_affected() == 0 {
            Err(AccountError::Taken)
        } else {
            Ok(token)
        }
    }

    /// A new token; the one before opens nothing any more.
    pub(crate) async fn renew(&self, name: &str) -> Result<Redacted, AccountError> {
        let (token, hash) = new_token(name);
        let renewed = sqlx::query("UPDATE instance_accounts SET token_hash = $1 WHERE name = $2")
            .bind(hash)
            .bind(name)
            .execute(self.store.pool())
            .await?;
        if renewed.rows_affected() == 0 {
            Err(AccountError::Unknown)
        } else {
            Ok(token)
        }
    }

    /// Removes a user with all that is kept of them.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), AccountError> {
        let removed = sqlx::query("DELETE FROM instance_accounts WHERE name = $1")
            .bind(name)
            .execute(self.store.pool())
            .await?;
        self.store.forget_user(&User::new(name)).await?;
        if removed.rows_affected() == 0 {
            Err(AccountError::Unknown)
        } else {
            Ok(())
        }
    }

    /// The user of that name.
    pub(crate) async fn named(&self, name: &str) -> Result<User, AccountError> {
        let found: Option<String> = sqlx::query_scalar("SELECT name FROM instance_accounts WHERE name = $1")
            .bind(name)
            .fetch_optional(self.store.pool())
            .await?;
        found.map(User::new).ok_or(AccountError::Unknown)
    }

    /// All, by name.
    pub(crate) async fn all(&self) -> Result<Vec<Account>, AccountError> {
        let rows: Vec<(String, i64)> =
            sqlx::query_as("SELECT name, created_at FROM instance_accounts ORDER BY name")
                .fetch_all(self.store.pool())
                .await?;
        let account = |(name, created_at)| Account {
            name,
            created_at: u64::try_from(created_at).unwrap_or(0),
        };
        Ok(rows.into_iter().map(account).collect())
    }

    /// Whose token it is.
    pub(crate) async fn of_token(&self, token: &str) -> Result<Option<User>, AccountError> {
        let Some((name, secret)) = token.split_once('.') else {
            return Ok(None);
        };
        // Nobody's name; PostgreSQL fails at some texts instead of not finding them.
        if check(name).is_err() {
            return Ok(None);
        }
        let kept: Option<String> =
            sqlx::query_scalar("SELECT token_hash FROM instance_accounts WHERE name = $1")
                .bind(name)
                .fetch_optional(self.store.pool())
                .await?;
        // Of two hashes, how long they agree tells nothing about the secret.
        Ok((kept == Some(hash(secret))).then(|| User::new(name)))
    }
}

fn check(name: &str) -> Result<(), AccountError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let good = (1..=NAME_CHARS).contains(&name.len()) && name.bytes().all(plain);
    if good { Ok(()) } else { Err(AccountError::Name) }
}

fn new_token(name: &str) -> (Redacted, String) {
    let secret = Redacted::new(URL_SAFE_NO_PAD.encode(random_bytes::<32>()));
    let token = Redacted::new(format!("{name}.{}", secret.expose()));
    (token, hash(secret.expose()))
}

fn hash(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{postgres::Server, sqlite};

    async fn accounts() -> (tempfile::TempDir, Accounts) {
        let (directory, store) = sqlite().await;
        let accounts = Accounts::open(&store).await.unwrap();
        (directory, accounts)
    }

    async fn a_token_lives_until_it_is_renewed_or_the_user_removed(accounts: &Accounts) {
        let first = accounts.add("ann", 7).await.unwrap();
        assert!(matches!(accounts.add("ann", 8).await, Err(AccountError::Taken)));
        assert_eq!(
            accounts.of_token(first.expose()).await.unwrap(),
            Some(User::new("ann"))
        );
        let second = accounts.renew("ann").await.unwrap();
        assert_eq!(accounts.of_token(first.expose()).await.unwrap(), None);
        assert_eq!(
            accounts.of_token(second.expose()).await.unwrap(),
            Some(User::new("ann"))
        );
        let ann = Account {
            name: "ann".to_owned(),
            created_at: 7,
        };
        assert_eq!(accounts.all().await.unwrap(), [ann]);
        assert_eq!(accounts.named("ann").await.unwrap(), User::new("ann"));
        accounts.remove("ann").await.unwrap();
        assert_eq!(accounts.of_token(second.expose()).await.unwrap(), None);
        assert_eq!(accounts.of_token("ann\0.x").await.unwrap(), None);
        assert!(matches!(accounts.named("ann").await, Err(AccountError::Unknown)));
    }

    #[tokio::test]
    async fn a_token_opens_its_account_on_sqlite() {
        let (_directory, accounts) = accounts().await;
        a_token_lives_until_it_is_renewed_or_the_user_removed(&accounts).await;
    }

    #[tokio::test]
    async fn a_token_opens_its_account_on_postgresql_and_many_may_open_the_table_at_once() {
        let server = Server::start();
        let url = server.database("accounts").await;
        let store = Store::connect(&url).await.unwrap();
        let opened = futures_util::future::join_all((0..8).map(|_| Accounts::open(&store))).await;
        for accounts in opened {
            a_token_lives_until_it_is_renewed_or_the_user_removed(&accounts.unwrap()).await;
        }
        store.close().await;
    }

    #[tokio::test]
    async fn what_is_no_token_opens_nothing() {
        let (_directory, accounts) = accounts().await;
        let token = accounts.add("ann", 0).await.unwrap();
        accounts.add("bob", 0).await.unwrap();
        let secret = token.expose().split_once('.').unwrap().1;
        for wrong in [
            "",
            ".",
            "ann",
            "ann.",
            "ann.x",
            secret,
            &format!("bob.{secret}"),
            &format!("Ann.{secret}"),
        ] {
            assert_eq!(accounts.of_token(wrong).await.unwrap(), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn the_database_holds_no_token() {
        let (directory, accounts) = accounts().await;
        let token = accounts.add("ann", 0).await.unwrap();
        let secret = token.expose().split_once('.').unwrap().1.to_owned();
        accounts.store.close().await;
        for file in std::fs::read_dir(directory.path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(
                !bytes
                    .windows(secret.len())
                    .any(|window| window == secret.as_bytes())
            );
        }
    }

    #[tokio::test]
    async fn names_are_plain_and_unique() {
        let (_directory, accounts) = accounts().await;
        accounts.add("a-b_1", 0).await.unwrap();
        assert!(matches!(accounts.add("a-b_1", 0).await, Err(AccountError::Taken)));
        for wrong in ["", "Ann", "a.b", "a b", "ä", &"a".repeat(65)] {
            assert!(
                matches!(accounts.add(wrong, 0).await, Err(AccountError::Name)),
                "{wrong}"
            );
        }
        assert!(matches!(
            accounts.renew("nobody").await,
            Err(AccountError::Unknown)
        ));
        assert!(matches!(
            accounts.remove("nobody").await,
            Err(AccountError::Unknown)
        ));
    }
}
