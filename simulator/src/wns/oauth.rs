//! WNS's token endpoints: client credentials against an access token, in the two dialects of Microsoft.
//!
//! The legacy one gives `expires_in` as a number, Entra's as strings.

use http::{HeaderMap, HeaderValue, Response, StatusCode, request::Parts};
use serde_json::{Value, json};

use crate::{
    behaviour::{Behaviour, Ending},
    net::{
        http::{Reply, Usual, end},
        server::Connection,
    },
    oauth::IssuedToken,
    script::Asked,
    simulator::Shared,
    wns::{Wns, WnsOptions},
};

/// Path of the legacy endpoint.
pub(crate) const LEGACY_PATH: &str = "/accesstoken.srf";
/// What follows the tenant in Entra's path.
pub(crate) const ENTRA_SUFFIX: &str = "/oauth2/v2.0/token";
const LEGACY_SCOPE: &str = "notify.windows.com";
const ENTRA_SCOPE: &str = "https://wns.windows.com/.default";

/// The two dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `login.live.com`
    Legacy,
    /// `login.microsoftonline.com`
    Entra,
}

/// The dialect of a token endpoint's path; `None` is no token endpoint.
pub(crate) fn dialect(path: &str) -> Option<Dialect> {
    if path == LEGACY_PATH {
        return Some(Dialect::Legacy);
    }
    path.ends_with(ENTRA_SUFFIX).then_some(Dialect::Entra)
}

/// Answers a request for an access token.
pub(crate) async fn token(
    shared: &Shared<Wns>,
    dialect: Dialect,
    head: &Parts,
    body: &[u8],
    connection: &Connection,
) -> Reply {
    let tokens = &shared.provider.tokens;
    tokens.count_request();
    if let Err((error, description)) = judge(&shared.provider.options, dialect, head, body) {
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
        let now = shared.clock.unix_millis();
        success = Response::new(issued(dialect, &tokens.issue(now), now).to_string().into());
    }
    let json_type = HeaderValue::from_static("application/json; charset=utf-8");
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, json_type)]);
    end(behaviour.ending, Usual { success, headers }, &connection.gate).await
}

fn issued(dialect: Dialect, token: &IssuedToken, now_millis: i64) -> Value {
    let lifetime = token.expires_in_seconds;
    match dialect {
        Dialect::Legacy => {
            json!({ "token_type": "bearer", "access_token": token.text, "expires_in": lifetime })
        }
        Dialect::Entra => {
            let now = now_millis.div_euclid(1000);
            let expires_on = now.saturating_add_unsigned(lifetime);
            json!({
                "token_type": "Bearer",
                "expires_in": lifetime.to_string(),
                "ext_expires_in": lifetime.to_string(),
                "expires_on": expires_on.to_string(),
                "not_before": now.to_string(),
                "resource": "https://wns.windows.com/",
                "access_token": token.text,
            })
        }
    }
}

fn judge(
    options: &WnsOptions,
    dialect: Dialect,
    head: &Parts,
    body: &[u8],
) -> Result<(), (&'static str, &'static str)> {
    let field = |name: &str| {
        url::form_urlencoded::parse(body)
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    };
    if head.method != http::Method::POST {
        return Err(("invalid_request", "the token endpoint takes POST"));
    }
    if field("grant_type") != "client_credentials" {
        return Err(("unsupported_grant_type", "grant_type must be client_credentials"));
    }
    let (client_id, scope) = match dialect {
        Dialect::Legacy => (&options.package_sid, LEGACY_SCOPE),
        Dialect::Entra => (&options.client_id, ENTRA_SCOPE),
    };
    let is_tenant =
        dialect == Dialect::Legacy || head.uri.path() == format!("/{}{ENTRA_SUFFIX}", options.tenant_id);
    if field("client_id") != *client_id || field("client_secret") != options.client_secret || !is_tenant {
        return Err(("invalid_client", "unknown client, secret or tenant"));
    }
    // Microsoft's own samples differ in the trailing slash.
    if field("scope").trim_end_matches('/') != scope {
        return Err(("invalid_scope", "unknown scope"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legacy_dialect_has_numbers_and_entra_has_strings() {
        let token = IssuedToken {
            text: "t".to_owned(),
            expires_in_seconds: 86_399,
        };
        assert_eq!(issued(Dialect::Legacy, &token, 0)["expires_in"], 86_399);
        let entra = issued(Dialect::Entra, &token, 1_000);
        assert_eq!(
            (&entra["expires_in"], &entra["expires_on"]),
            (&json!("86399"), &json!("86400"))
        );
    }

    #[test]
    fn the_path_names_the_dialect() {
        assert_eq!(dialect("/accesstoken.srf"), Some(Dialect::Legacy));
        assert_eq!(dialect("/tenant/oauth2/v2.0/token"), Some(Dialect::Entra));
        assert_eq!(dialect("/"), None);
    }
}
