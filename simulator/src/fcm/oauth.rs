//! The token endpoint of the service account: an RS256 assertion against an access token (RFC 7523).

use http::{HeaderMap, HeaderValue, Response, StatusCode, request::Parts};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use rcgen::{KeyPair, PKCS_RSA_SHA256};
use serde::Deserialize;
use serde_json::json;

use crate::{
    behaviour::{Behaviour, Ending},
    entropy::random_hex,
    error::SimulatorError,
    fcm::{Fcm, ServiceAccount},
    net::{
        http::{Reply, Usual, end},
        server::Connection,
    },
    script::Asked,
    simulator::Shared,
};

/// Path of `token_uri`.
pub(crate) const TOKEN_PATH: &str = "/token";
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPES: [&str; 2] = [
    "https://www.googleapis.com/auth/firebase.messaging",
    "https://www.googleapis.com/auth/cloud-platform",
];
/// `exp` may be this much later than `iat`: an hour and the five minutes that Google allows on top.
const MAX_LIFETIME_SECONDS: i64 = 3600 + 300;
/// How far `iat` may be ahead of the clock.
const MAX_SKEW_SECONDS: i64 = 300;

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    scope: String,
    iat: i64,
    exp: i64,
}

impl ServiceAccount {
    pub(crate) fn generate() -> Result<Self, SimulatorError> {
        let pair = KeyPair::generate_for(&PKCS_RSA_SHA256)?;
        Ok(Self {
            private_key_pem: pair.serialize_pem(),
            key_id: random_hex::<20>(),
            verifying_key: DecodingKey::from_rsa_pem(pair.public_key_pem().as_bytes())?,
        })
    }
}

/// Answers a request for an access token.
pub(crate) async fn token(shared: &Shared<Fcm>, head: &Parts, body: &[u8], connection: &Connection) -> Reply {
    let tokens = &shared.provider.tokens;
    tokens.count_request();
    if let Err((error, description)) = judge(shared, head, body) {
        let body = json!({ "error": error, "error_description": description });
        return Reply::json(StatusCode::BAD_REQUEST, &body);
    }
    let behaviour = tokens
        .script
        .decide(Asked::default())
        .unwrap_or_else(Behaviour::accept);
    if behaviour.delay_ms > 0 {
        tokio::time::sleep(behaviour.delay()).await;
    }
    let mut success = Response::default();
    if behaviour.ending == Ending::Accept {
        let issued = tokens.issue(shared.clock.unix_millis());
        let body = json!({
            "access_token": issued.text,
            "expires_in": issued.expires_in_seconds,
            "token_type": "Bearer",
        });
        success = Response::new(body.to_string().into());
    }
    let json_type = HeaderValue::from_static("application/json; charset=utf-8");
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, json_type)]);
    end(behaviour.ending, Usual { success, headers }, &connection.gate).await
}

type Refusal = (&'static str, &'static str);

fn judge(shared: &Shared<Fcm>, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
    if head.method != http::Method::POST {
        return Err(("invalid_request", "The token endpoint takes POST."));
    }
    let mut form = url::form_urlencoded::parse(body);
    let grant_type = form
        .find(|(name, _)| name == "grant_type")
        .map(|(_, value)| value);
    if grant_type.as_deref() != Some(GRANT_TYPE) {
        return Err(("unsupported_grant_type", "Invalid grant_type"));
    }
    let assertion = url::form_urlencoded::parse(body).find(|(name, _)| name == "assertion");
    let (_, assertion) = assertion.ok_or(("invalid_request", "Missing required parameter: assertion"))?;
    judge_assertion(shared, head, &assertion)
}

fn judge_assertion(shared: &Shared<Fcm>, head: &Parts, assertion: &str) -> Result<(), Refusal> {
    let account = &shared.provider.account;
    let mut validation = Validation::new(Algorithm::RS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let claims = jsonwebtoken::decode::<Claims>(assertion, &account.verifying_key, &validation)
        .map_err(|_| ("invalid_grant", "Invalid JWT Signature."))?
        .claims;
    if claims.iss != shared.provider.options.client_email {
        return Err(("invalid_grant", "Invalid grant: account not found"));
    }
    if !is_own_uri(&claims.aud, head) {
        return Err(("invalid_grant", "Invalid JWT: Failed audience check."));
    }
    if !claims.scope.split(' ').any(|scope| SCOPES.contains(&scope)) {
        return Err((
            "invalid_scope",
            "Invalid OAuth scope or ID token audience provided.",
        ));
    }
    let now = shared.clock.unix_seconds();
    let lifetime = claims.exp.saturating_sub(claims.iat);
    let is_timely = claims.exp > now && claims.iat <= now.saturating_add(MAX_SKEW_SECONDS);
    if !(1..=MAX_LIFETIME_SECONDS).contains(&lifetime) || !is_timely {
        return Err((
            "invalid_grant",
            "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.",
        ));
    }
    Ok(())
}

/// Whether `aud` is the URI that was asked.
fn is_own_uri(audience: &str, head: &Parts) -> bool {
    let host = head.headers.get("host").and_then(|host| host.to_str().ok());
    let authority = head.uri.authority().map(http::uri::Authority::as_str).or(host);
    authority.is_some_and(|authority| audience == format!("https://{authority}{TOKEN_PATH}"))
}
