//! Who calls: the instance whose key the request carries.

use actix_web::HttpRequest;
use sovereign_relay_protocol::redacted::Redacted;

use crate::{
    auth::Caller,
    http::{context::RequestNotes, error::ApiError, extract::bearer::bearer, services::Services},
};

const NO_KEY: &str = "an instance key is needed: Authorization: Bearer <key>";

/// A key that was verified, and whose it is.
#[derive(Clone, Debug)]
pub(crate) struct KeyHolder {
    /// The instance.
    pub(crate) caller: Caller,
    /// Its key.
    pub(crate) key: Redacted,
}

/// Verifies a key and notes whose it is.
pub(crate) fn verify(
    key: Redacted,
    request: &HttpRequest,
    services: &Services,
) -> Result<KeyHolder, ApiError> {
    let caller = services.authority.verify(&key, services.now())?;
    RequestNotes::of(request).instance(caller.instance);
    Ok(KeyHolder { caller, key })
}

/// The holder of the key in the header, if there is one. Called before the body is read.
pub(crate) fn from_header(request: &HttpRequest, services: &Services) -> Result<Option<KeyHolder>, ApiError> {
    bearer(request.headers())?
        .map(|key| verify(key, request, services))
        .transpose()
}

/// The same where a key is needed.
pub(crate) fn required(request: &HttpRequest, services: &Services) -> Result<KeyHolder, ApiError> {
    from_header(request, services)?.ok_or_else(|| ApiError::unauthorized(NO_KEY))
}

/// The same for a rotation, where a key past its grace may still ask for its successor again.
pub(crate) fn for_rotation(request: &HttpRequest, services: &Services) -> Result<KeyHolder, ApiError> {
    let key = bearer(request.headers())?.ok_or_else(|| ApiError::unauthorized(NO_KEY))?;
    let caller = services.authority.verify_for_rotation(&key, services.now())?;
    RequestNotes::of(request).instance(caller.instance);
    Ok(KeyHolder { caller, key })
}

/// Header and body together, as `/v1/push` takes them: a key in both places must be the same one.
pub(crate) fn from_header_or_body(
    header: Option<KeyHolder>,
    body: Option<Redacted>,
    request: &HttpRequest,
    services: &Services,
) -> Result<KeyHolder, ApiError> {
    match (header, body) {
        (Some(holder), Some(key)) if holder.key != key => Err(keys_differ()),
        (Some(holder), _) => Ok(holder),
        (None, Some(key)) => verify(key, request, services),
        (None, None) => Err(ApiError::unauthorized(NO_KEY)),
    }
}

/// 400: the caller is unsure who it is.
pub(crate) fn keys_differ() -> ApiError {
    ApiError::invalid("instanceKey and the key in the Authorization header differ")
}
