//! The answers of "FCM error codes", and those seen beside them, for scripts.

use serde_json::{Value, json};

use crate::behaviour::{Behaviour, RetryAfter};

const FCM_ERROR: &str = "type.googleapis.com/google.firebase.fcm.v1.FcmError";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
const QUOTA_FAILURE: &str = "type.googleapis.com/google.rpc.QuotaFailure";
const BAD_TOKEN_MESSAGE: &str = "The registration token is not a valid FCM registration token";

/// An error in Google's envelope, with any details.
pub fn error(code: u16, status: &str, message: &str, details: Vec<Value>) -> Behaviour {
    let mut error = json!({ "code": code, "message": message, "status": status });
    if let Value::Object(fields) = &mut error
        && !details.is_empty()
    {
        fields.insert("details".to_owned(), Value::Array(details));
    }
    Behaviour::status(code)
        .header("content-type", "application/json; charset=UTF-8")
        .body(json!({ "error": error }).to_string())
}

/// An error with an `FcmError` detail of any `errorCode`, known or not.
pub fn fcm_error(code: u16, status: &str, error_code: &str) -> Behaviour {
    error(
        code,
        status,
        "Something went wrong.",
        vec![fcm_detail(error_code)],
    )
}

/// 404 `UNREGISTERED`: the device is gone.
pub fn unregistered() -> Behaviour {
    error(
        404,
        "NOT_FOUND",
        "Requested entity was not found.",
        vec![fcm_detail("UNREGISTERED")],
    )
}

/// 404 without `FcmError`: the project is unknown or not set up, the token says nothing.
pub fn not_found_without_fcm_error() -> Behaviour {
    error(404, "NOT_FOUND", "Requested entity was not found.", Vec::new())
}

/// 400 in the documented shape of a bad token: `FcmError` INVALID_ARGUMENT, the sentence, and no field violation.
pub fn bad_token() -> Behaviour {
    error(
        400,
        "INVALID_ARGUMENT",
        BAD_TOKEN_MESSAGE,
        vec![fcm_detail("INVALID_ARGUMENT")],
    )
}

/// 400 in the other shape of a bad token: a `BadRequest` that names `message.token` besides.
pub fn bad_token_with_violation() -> Behaviour {
    let details = vec![
        fcm_detail("INVALID_ARGUMENT"),
        violation("message.token", BAD_TOKEN_MESSAGE),
    ];
    error(400, "INVALID_ARGUMENT", BAD_TOKEN_MESSAGE, details)
}

/// 400 about the payload: a `BadRequest` that names another field.
pub fn bad_data() -> Behaviour {
    let message = "Invalid value at 'message.data[0].value' (TYPE_STRING), 12";
    error(
        400,
        "INVALID_ARGUMENT",
        message,
        vec![violation("message.data[0].value", message)],
    )
}

/// 400 about the size, with `FcmError` INVALID_ARGUMENT as a bad token has.
pub fn too_large() -> Behaviour {
    error(
        400,
        "INVALID_ARGUMENT",
        "Android message is too big",
        vec![fcm_detail("INVALID_ARGUMENT")],
    )
}

/// 401 without `FcmError`: the bearer token is not good.
pub fn unauthenticated() -> Behaviour {
    let message = "Request had invalid authentication credentials.";
    error(401, "UNAUTHENTICATED", message, Vec::new())
}

/// 401 `THIRD_PARTY_AUTH_ERROR`.
pub fn third_party_auth_error() -> Behaviour {
    fcm_error(401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR")
}

/// 403 `SENDER_ID_MISMATCH`: a token of another project.
pub fn sender_id_mismatch() -> Behaviour {
    error(
        403,
        "PERMISSION_DENIED",
        "SenderId mismatch",
        vec![fcm_detail("SENDER_ID_MISMATCH")],
    )
}

/// 403 without `FcmError`: the account may not send.
pub fn permission_denied() -> Behaviour {
    let message = "Permission 'cloudmessaging.messages.create' denied on resource.";
    error(403, "PERMISSION_DENIED", message, Vec::new())
}

/// 429 of the project's quota, with a `QuotaFailure` that names the project.
pub fn project_quota(retry_after: RetryAfter) -> Behaviour {
    quota(
        "project:sovereign-simulator",
        "Message rate quota of the project exceeded",
        retry_after,
    )
}

/// 429 of one device's rate, with a `QuotaFailure` that names the device.
pub fn device_quota(retry_after: RetryAfter) -> Behaviour {
    quota("device", "Message rate quota of the device exceeded", retry_after)
}

/// 429 without any detail.
pub fn too_many_requests(retry_after: RetryAfter) -> Behaviour {
    error(
        429,
        "RESOURCE_EXHAUSTED",
        "Resource has been exhausted.",
        Vec::new(),
    )
    .retry_after(retry_after)
}

/// 500 `INTERNAL`.
pub fn internal() -> Behaviour {
    error(
        500,
        "INTERNAL",
        "Internal error encountered.",
        vec![fcm_detail("INTERNAL")],
    )
}

/// 503 `UNAVAILABLE`.
pub fn unavailable(retry_after: RetryAfter) -> Behaviour {
    let details = vec![fcm_detail("UNAVAILABLE")];
    error(
        503,
        "UNAVAILABLE",
        "The service is currently unavailable.",
        details,
    )
    .retry_after(retry_after)
}

/// 502 with an HTML page.
pub fn html_bad_gateway() -> Behaviour {
    Behaviour::html(502)
}

/// A field violation as a detail, for [`error`].
pub fn violation(field: &str, description: &str) -> Value {
    json!({ "@type": BAD_REQUEST, "fieldViolations": [{ "field": field, "description": description }] })
}

/// An `FcmError` as a detail, for [`error`].
pub fn fcm_detail(error_code: &str) -> Value {
    json!({ "@type": FCM_ERROR, "errorCode": error_code })
}

fn quota(subject: &str, description: &str, retry_after: RetryAfter) -> Behaviour {
    let failure = json!({
        "@type": QUOTA_FAILURE,
        "violations": [{ "subject": subject, "description": description }],
    });
    let details = vec![fcm_detail("QUOTA_EXCEEDED"), failure];
    error(429, "RESOURCE_EXHAUSTED", description, details).retry_after(retry_after)
}
