//! What is posted to a token endpoint.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use sovereign_relay_protocol::{redacted::Redacted, time::UnixMillis};
use thiserror::Error;

/// How long an assertion is valid, in seconds: Google's maximum.
const ASSERTION_SECONDS: u64 = 3600;
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// How the relay proves itself.
pub(crate) enum Grant {
    /// RFC 7523: a JWT signed with the key of a service account.
    Assertion {
        /// RSA key.
        key: Box<EncodingKey>,
        /// `kid`.
        key_id: Option<String>,
        /// `iss`: the account's e-mail.
        issuer: String,
        /// `aud`: the token endpoint.
        audience: String,
        /// `scope`.
        scope: &'static str,
    },
    /// RFC 6749, 4.4.
    ClientCredentials {
        /// `client_id`.
        client_id: String,
        /// `client_secret`.
        client_secret: Redacted,
        /// `scope`.
        scope: &'static str,
    },
}

/// The key is none, or could not sign.
#[derive(Debug, Error)]
pub(crate) enum GrantError {
    /// Not a PEM of an RSA key.
    #[error("private_key is not the PEM of an RSA key")]
    Key,
    /// The crypto library refused.
    #[error("the assertion could not be signed")]
    Sign,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
}

impl Grant {
    /// An assertion by the PEM of an RSA key.
    pub(crate) fn assertion(
        key_pem: &Redacted,
        key_id: Option<String>,
        issuer: String,
        audience: String,
        scope: &'static str,
    ) -> Result<Self, GrantError> {
        let key = EncodingKey::from_rsa_pem(key_pem.expose().as_bytes()).map_err(|_| GrantError::Key)?;
        Ok(Self::Assertion {
            key: Box::new(key),
            key_id,
            issuer,
            audience,
            scope,
        })
    }

    /// The form to post now.
    pub(super) fn form(&self, now: UnixMillis) -> Result<Vec<(&'static str, String)>, GrantError> {
        match self {
            Self::Assertion {
                key,
                key_id,
                issuer,
                audience,
                scope,
            } => {
                let header = Header {
                    kid: key_id.clone(),
                    ..Header::new(Algorithm::RS256)
                };
                let iat = now.seconds();
                let claims = Claims {
                    iss: issuer,
                    scope,
                    aud: audience,
                    iat,
                    exp: iat + ASSERTION_SECONDS,
                };
                let assertion = jsonwebtoken::encode(&header, &claims, key).map_err(|_| GrantError::Sign)?;
                Ok(vec![
                    ("grant_type", JWT_BEARER.to_owned()),
                    ("assertion", assertion),
                ])
            }
            Self::ClientCredentials {
                client_id,
                client_secret,
                scope,
            } => Ok(vec![
                ("grant_type", "client_credentials".to_owned()),
                ("client_id", client_id.clone()),
                ("client_secret", client_secret.expose().to_owned()),
                ("scope", (*scope).to_owned()),
            ]),
        }
    }
}
