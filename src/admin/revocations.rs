//! `/admin/v1/revocations`: the revocation list out of one relay and into another.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header,
    web::{Data, Payload},
};
use serde::Serialize;

use super::Admin;
use crate::http::error::ApiError;

/// Most bytes of an import: a full list fits several times.
const IMPORT_BYTES: usize = 64 * 1024 * 1024;

#[derive(Serialize)]
struct Imported {
    imported: usize,
}

pub(super) async fn export(admin: Data<Admin>) -> HttpResponse {
    let list = admin.services.authority.export_revocations();
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .body(list)
}

/// Joins the list in: nothing that is refused today is let in again by it.
pub(super) async fn import(
    request: HttpRequest,
    payload: Payload,
    admin: Data<Admin>,
) -> Result<HttpResponse, ApiError> {
    let body = admin.body(&request, payload, IMPORT_BYTES).await?;
    let imported = admin.services.authority.import_revocations(&body).await?;
    for instance in imported.ended {
        admin.services.signaling.end_instance(instance).await;
    }
    let imported = imported.entries;
    Ok(HttpResponse::Ok().json(Imported { imported }))
}
