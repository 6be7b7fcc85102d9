//! The document and the routes say the same.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sovereign_relay_protocol::{error::ErrorCode, limits, push::PushBody};

use super::{
    documented::{self, Seen},
    kit::{Relay, Request, message},
};

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

async fn document(relay: &Relay) -> Value {
    let answer = relay.send(Request::new("GET", "/openapi.json")).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json"))
    );
    answer.json()
}

fn operations(document: &Value) -> Vec<(String, BTreeSet<String>)> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |item: &Value| {
        item.as_object()
            .unwrap()
            .keys()
            .map(|m| m.to_uppercase())
            .collect()
    };
    paths
        .iter()
        .map(|(path, item)| (path.clone(), methods(item)))
        .collect()
}

#[actix_web::test]
async fn the_document_is_openapi_3_1_and_lists_every_route_of_the_contract() {
    let relay = Relay::start().await;
    let document = document(&relay).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths: Vec<_> = operations(&document).into_iter().map(|(path, _)| path).collect();
    let expected = [
        "/api/health",
        "/livez",
        "/openapi.json",
        "/readyz",
        "/v1/capabilities",
        "/v1/enroll",
        "/v1/enrollment",
        "/v1/keys/rotate",
        "/v1/push",
        "/v1/push/batch",
        "/v1/signal",
        "/v1/signal/sessions",
        "/v1/signal/sessions/{id}",
    ];
    assert_eq!(paths, expected);
}

#[actix_web::test]
async fn documented_methods_are_answered_and_all_others_are_a_405_that_names_them() {
    let relay = Relay::start().await;
    for (path, documented) in operations(&document(&relay).await) {
        for method in METHODS {
            let answer = relay.send(Request::new(method, &path)).await;
            if documented.contains(method) {
                assert!(!matches!(answer.status, 404 | 405), "{method} {path}: {answer:?}");
                continue;
            }
            assert_eq!(
                answer.refusal(),
                (405, "method_not_allowed".to_owned()),
                "{method} {path}"
            );
            let allowed = answer.header("allow").unwrap().split(", ").map(str::to_owned);
            let allowed: BTreeSet<_> = allowed.filter(|method| method != "HEAD").collect();
            assert_eq!(allowed, documented, "{method} {path}");
        }
    }
}

#[actix_web::test]
async fn every_route_of_the_app_is_documented() {
    let registered: BTreeSet<_> = crate::http::resources()
        .into_iter()
        .map(|(path, _)| path.to_owned())
        .collect();
    let relay = Relay::start().await;
    let documented: BTreeSet<_> = operations(&document(&relay).await)
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(registered, documented);
}

/// Each can at least fail inside: one without that is missing in the table of errors.
#[actix_web::test]
async fn every_operation_says_what_can_go_wrong_with_it() {
    let relay = Relay::start().await;
    let document = document(&relay).await;
    for (path, methods) in operations(&document) {
        for method in methods {
            let responses = &document["paths"][&path][method.to_lowercase()]["responses"];
            assert_eq!(
                responses["500"]["description"], "internal_error",
                "{method} {path}"
            );
        }
    }
}

#[test]
fn an_answer_that_the_document_does_not_know_is_found() {
    let document: Value = serde_json::from_str(crate::http::openapi::text()).unwrap();
    let fault = |method, path, status, error: &str| {
        let body = json!({ "error": error });
        let body = Some(&body);
        documented::check(
            &document,
            &Seen {
                method,
                path,
                status,
                body,
            },
        )
        .err()
    };
    assert_eq!(fault("POST", "/v1/push/batch", 429, "rate_limited"), None);
    assert_eq!(fault("GET", "/v1/signal/sessions/x?y", 404, "not_found"), None);
    assert_eq!(fault("PUT", "/v1/push", 405, "method_not_allowed"), None);
    assert_eq!(fault("GET", "/v1/nothing", 404, "not_found"), None);
    for (method, path, status, error, told) in [
        (
            "POST",
            "/v1/push/batch",
            409,
            "session_full",
            "POST /v1/push/batch answers 409",
        ),
        (
            "POST",
            "/v1/push",
            503,
            "not_found",
            "POST /v1/push: not_found is not documented for 503",
        ),
        (
            "HEAD",
            "/v1/signal/sessions/x",
            429,
            "",
            "GET /v1/signal/sessions/{id} answers 429",
        ),
        (
            "PUT",
            "/v1/push",
            400,
            "invalid_request",
            "PUT /v1/push is not documented and answers 400",
        ),
    ] {
        let fault = fault(method, path, status, error).unwrap();
        assert!(fault.starts_with(told), "{fault}");
    }
}

#[actix_web::test]
async fn every_error_code_and_every_reference_is_defined() {
    let relay = Relay::start().await;
    let document = document(&relay).await;
    let schemas = &document["components"]["schemas"];
    let codes: BTreeSet<_> = schemas["ErrorCode"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(codes, ErrorCode::ALL.iter().map(|code| code.as_str()).collect());
    for reference in references(&document) {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.get(name).is_some(), "{reference}");
    }
}

#[actix_web::test]
async fn the_lifetimes_that_are_taken_are_documented_as_they_are() {
    let relay = Relay::start().await;
    let document = document(&relay).await;
    let bounds = |schema: &str| {
        let field = &document["components"]["schemas"][schema]["properties"]["ttlSeconds"];
        [&field["minimum"], &field["maximum"], &field["default"]].map(|bound| bound.as_u64().unwrap())
    };
    let session = [
        limits::SESSION_SECONDS_MIN,
        limits::SESSION_SECONDS_MAX,
        limits::SESSION_SECONDS,
    ];
    assert_eq!(bounds("SessionBody"), session.map(u64::from));
    let push = [0, limits::TTL_SECONDS, limits::TTL_SECONDS];
    assert_eq!(bounds("PushRequest"), push.map(u64::from));
}

fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(map) => {
            let own = map.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(map.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[actix_web::test]
async fn answers_have_the_documented_status_and_only_documented_fields() {
    let relay = Relay::start().await;
    let document = document(&relay).await;
    let key = relay.enroll().await;
    let batch = json!({"messages": [message(), {}]});
    let made = Request::new("POST", "/v1/signal/sessions").key(&key);
    let made = relay.send(made).await.json();
    let session = made["sessionId"].as_str().unwrap();
    let calls = [
        ("POST", "/v1/enroll", Request::new("POST", "/v1/enroll")),
        ("POST", "/v1/push", Request::push().key(&key)),
        ("POST", "/v1/push", Request::push()),
        (
            "POST",
            "/v1/push/batch",
            Request::new("POST", "/v1/push/batch").key(&key).json(&batch),
        ),
        ("GET", "/v1/capabilities", Request::new("GET", "/v1/capabilities")),
        ("GET", "/api/health", Request::new("GET", "/api/health")),
        ("GET", "/livez", Request::new("GET", "/livez")),
        ("GET", "/readyz", Request::new("GET", "/readyz")),
        (
            "POST",
            "/v1/keys/rotate",
            Request::new("POST", "/v1/keys/rotate").key(&key),
        ),
        (
            "POST",
            "/v1/signal/sessions",
            Request::new("POST", "/v1/signal/sessions").key(&key),
        ),
        (
            "GET",
            "/v1/signal/sessions/{id}",
            Request::new("GET", &format!("/v1/signal/sessions/{session}")).key(&key),
        ),
    ];
    for (method, path, request) in calls {
        let answer = relay.send(request).await;
        let operation = &document["paths"][path][method.to_lowercase()];
        let response = &operation["responses"][answer.status.to_string()];
        let schema = &response["content"]["application/json"]["schema"];
        check(&document, schema, &answer.json()).unwrap_or_else(|wrong| panic!("{method} {path}: {wrong}"));
    }
}

/// The part of JSON Schema that the document uses for answers: references, alternatives, objects, also put together
/// of several, arrays.
fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return check(
            document,
            document.pointer(&reference[1..]).ok_or("dangling reference")?,
            value,
        );
    }
    if let Some(options) = schema["oneOf"].as_array() {
        let fits = options
            .iter()
            .any(|option| check(document, option, value).is_ok());
        return fits
            .then_some(())
            .ok_or_else(|| format!("{value} fits no alternative"));
    }
    if schema["allOf"].is_array() {
        return check(document, &merged(document, schema), value);
    }
    let properties = schema["properties"].as_object();
    match value {
        Value::Object(map) => {
            let properties = properties.ok_or_else(|| format!("{value} is an object, {schema} is not"))?;
            for required in schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                map.get(required)
                    .ok_or_else(|| format!("{required} is missing"))?;
            }
            map.iter().try_for_each(|(name, field)| {
                check(
                    document,
                    properties
                        .get(name)
                        .ok_or_else(|| format!("{name} is not documented"))?,
                    field,
                )
            })
        }
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| check(document, &schema["items"], item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => check_scalar(schema, value),
    }
}

/// One object with the fields of all parts.
fn merged(document: &Value, schema: &Value) -> Value {
    let mut whole = json!({"properties": {}, "required": []});
    for part in schema["allOf"].as_array().unwrap() {
        let part = match part["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..]).unwrap(),
            None => part,
        };
        let (fields, names) = (part["properties"].as_object(), part["required"].as_array());
        for (name, field) in fields.unwrap() {
            whole["properties"][name] = field.clone();
        }
        let required = whole["required"].as_array_mut().unwrap();
        required.extend(names.into_iter().flatten().cloned());
    }
    whole
}

fn check_scalar(schema: &Value, value: &Value) -> Result<(), String> {
    let name = match value {
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Null | Value::Array(_) | Value::Object(_) => "null",
    };
    let allowed = match &schema["type"] {
        Value::Array(types) => types.iter().any(|kind| kind == name),
        kind => kind == name,
    };
    allowed
        .then_some(())
        .ok_or_else(|| format!("{value} is no {}", schema["type"]))
}

#[test]
fn every_documented_field_of_a_push_is_read_by_the_parser() {
    use utoipa::OpenApi;
    let document = serde_json::to_value(crate::http::openapi::PublicApi::openapi()).unwrap();
    let properties = document["components"]["schemas"]["PushRequest"]["properties"]
        .as_object()
        .unwrap();
    assert_eq!(properties.len(), 9);
    for name in properties.keys() {
        let mut body = message();
        // No field is an object: the parser must notice.
        body[name] = json!({});
        assert!(PushBody::parse(body.to_string().as_bytes()).is_err(), "{name}");
    }
}
