//! An instance's life at this relay: `POST /v1/enroll`, `POST /v1/keys/rotate`, `DELETE /v1/enrollment`.
//!
//! All three spend the budget of the client's address. The decisions are [`crate::auth`]'s.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Payload},
};
use sovereign_relay_protocol::enroll::{EnrollAnswer, EnrollRequest, RotateAnswer, RotateRequest};

use crate::{
    auth::Enrollment,
    http::{
        context::RequestNotes,
        error::ApiError,
        extract::{bearer::bearer, caller},
        openapi::schema,
        services::Services,
    },
};

/// Enroll an instance
///
/// Gives a new instance its id and its key. No body is needed. A relay in invite mode wants the invite in the
/// Authorization header.
#[utoipa::path(
    post,
    path = "/v1/enroll",
    tag = "instances",
    request_body = Option<schema::EnrollRequest>,
    security((), ("invite" = [])),
    responses((status = 200, description = "Enrolled", body = EnrollAnswer))
)]
pub(crate) async fn enroll(
    request: HttpRequest,
    payload: Payload,
    services: Data<Services>,
) -> Result<HttpResponse, ApiError> {
    services.take_work()?;
    let invite = bearer(request.headers())?;
    let body = services.body(&request, payload, None).await?;
    let wanted = EnrollRequest::parse(&body)?;
    let address = services.address(&request)?;
    services.spend_enrollment(address).await?;
    let enrollment = Enrollment {
        request: wanted,
        invite,
        address,
    };
    let enrolled = services.authority.enroll(enrollment, services.now()).await?;
    RequestNotes::of(&request).instance(enrolled.instance_id);
    Ok(HttpResponse::Ok().json(enrolled))
}

/// Replace the instance key
///
/// The old key works on for the grace, 24 hours unless asked otherwise.
#[utoipa::path(
    post,
    path = "/v1/keys/rotate",
    tag = "instances",
    request_body = Option<schema::RotateRequest>,
    security(("instanceKey" = [])),
    responses((status = 200, description = "The new key", body = RotateAnswer))
)]
pub(crate) async fn rotate(
    request: HttpRequest,
    payload: Payload,
    services: Data<Services>,
) -> Result<HttpResponse, ApiError> {
    services.take_work()?;
    let holder = caller::for_rotation(&request, &services)?;
    let body = services.body(&request, payload, Some(&holder)).await?;
    let wanted = RotateRequest::parse(&body)?;
    services.spend_enrollment(services.address(&request)?).await?;
    let rotated = services
        .authority
        .rotate(&holder.key, wanted, services.now())
        .await?;
    Ok(HttpResponse::Ok().json(rotated))
}

/// Withdraw the instance
///
/// Revokes its keys for good and erases its record.
#[utoipa::path(
    delete,
    path = "/v1/enrollment",
    tag = "instances",
    security(("instanceKey" = [])),
    responses((status = 204, description = "Withdrawn"))
)]
pub(crate) async fn withdraw(
    request: HttpRequest,
    services: Data<Services>,
) -> Result<HttpResponse, ApiError> {
    services.take_work()?;
    let holder = caller::required(&request, &services)?;
    services.spend_enrollment(services.address(&request)?).await?;
    services.authority.withdraw(holder.caller, services.now()).await?;
    services.pushes.refresh(holder.caller.instance).await;
    services.signaling.end_instance(holder.caller.instance).await;
    Ok(HttpResponse::NoContent().finish())
}
