//! Holds answers against the OpenAPI document: a status or an error code that an operation gives and the document keeps
//! to itself is a branch that no generated client has.
//!
//! The kits of both sides' tests, `http`'s own and those of the whole relay, ask here about every answer they read.

use serde_json::Value;

/// An answer and the request that it belongs to.
pub(crate) struct Seen<'a> {
    pub(crate) method: &'a str,
    /// With or without a query.
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    /// `None` where it has none, or none that is JSON.
    pub(crate) body: Option<&'a Value>,
}

/// What the document should have said. Of a path that it doesn't know it says nothing.
pub(crate) fn check(document: &Value, seen: &Seen<'_>) -> Result<(), String> {
    let path = seen.path.split('?').next().unwrap_or_default();
    let paths = document["paths"].as_object().expect("paths");
    let Some((template, item)) = paths.iter().find(|(template, _)| fits(template, path)) else {
        return Ok(());
    };
    let method = if seen.method == "HEAD" { "GET" } else { seen.method };
    let route = format!("{method} {template}");
    let code = seen.body.and_then(|body| body["error"].as_str());
    let Some(operation) = item.get(method.to_lowercase()) else {
        return if seen.status == 405 {
            Ok(())
        } else {
            Err(format!("{route} is not documented and answers {}", seen.status))
        };
    };
    let response = operation["responses"]
        .get(seen.status.to_string())
        .ok_or_else(|| {
            format!(
                "{route} answers {} {code:?}, which is not documented",
                seen.status
            )
        })?;
    let named = |code: &str| {
        let text = response["description"].as_str().unwrap_or_default();
        text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .any(|word| word == code)
    };
    match code {
        Some(code) if seen.status >= 400 && !named(code) => {
            Err(format!("{route}: {code} is not documented for {}", seen.status))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether a path is one of those that a template stands for.
fn fits(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if wanted == given || wanted.starts_with('{') => {}
            (None | Some(_), None | Some(_)) => return false,
        }
    }
}
