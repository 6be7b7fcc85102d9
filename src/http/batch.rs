//! `POST /v1/push/batch`: up to 500 notifications in one request, answered in order.
//!
//! Each message is a push of its own: its own checks, its own place in the limits, its own deadline from the
//! moment its turn comes. A bad one is an error in its own place.

use std::net::IpAddr;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Payload},
};
use futures_util::{StreamExt, stream};
use sovereign_relay_protocol::{
    batch::{Batch, BatchAnswer, BatchResult},
    limits,
    push::{InvalidPush, PushBody},
};
use tracing::info;

use crate::http::{
    error::ApiError,
    extract::caller::{self, KeyHolder},
    openapi::schema,
    push,
    services::Services,
};

/// Messages of one batch under way at the same time. A quarter of what one instance may have under way, so that
/// a batch neither starves the instance's single pushes nor runs into its own bound.
const BATCH_PARALLEL: usize = 64;
const _: () = assert!(BATCH_PARALLEL * 4 <= limits::CONCURRENT_PUSHES);

/// Send up to 500 notifications
///
/// The results come in the order of the messages: each an answer as of `/v1/push`, or an error of its own. Under an
/// idempotency key an earlier outcome is told again here too, but none is marked: there is no header for each.
#[utoipa::path(
    post,
    path = "/v1/push/batch",
    tag = "push",
    request_body = schema::BatchRequest,
    security(("instanceKey" = [])),
    responses((status = 200, description = "Every message was dealt with", body = BatchAnswer))
)]
pub(crate) async fn push_batch(
    request: HttpRequest,
    payload: Payload,
    services: Data<Services>,
) -> Result<HttpResponse, ApiError> {
    services.take_work()?;
    let holder = caller::required(&request, &services)?;
    let body = services.batch_body(&request, payload, &holder).await?;
    let batch = Batch::parse(&body)?;
    // Until the last message is answered: they have taken over what the body held.
    let _share = body.into_share();
    let address = services.address(&request)?;
    let results = deliver(&services, &holder, address, batch).await;
    log_summary(&results);
    Ok(HttpResponse::Ok().json(BatchAnswer { results }))
}

/// A slow message holds nothing up but its own place: whatever ends first makes room for the next.
async fn deliver(services: &Services, holder: &KeyHolder, address: IpAddr, batch: Batch) -> Vec<BatchResult> {
    let numbered = batch.messages.into_iter().enumerate();
    let calls = numbered
        .map(|(place, message)| async move { (place, one(services, holder, address, message).await) });
    let mut results: Vec<_> = stream::iter(calls)
        .buffer_unordered(BATCH_PARALLEL)
        .collect()
        .await;
    results.sort_unstable_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

async fn one(
    services: &Services,
    holder: &KeyHolder,
    address: IpAddr,
    message: Result<PushBody, InvalidPush>,
) -> BatchResult {
    match try_one(services, holder, address, message).await {
        Ok(result) => result,
        Err(error) => error.into_batch_result(),
    }
}

async fn try_one(
    services: &Services,
    holder: &KeyHolder,
    address: IpAddr,
    message: Result<PushBody, InvalidPush>,
) -> Result<BatchResult, ApiError> {
    let PushBody {
        message,
        instance_key,
    } = message?;
    if instance_key.is_some_and(|key| key != holder.key) {
        return Err(caller::keys_differ());
    }
    let answered = push::send(services, holder.caller, address, message).await?;
    Ok(BatchResult::Answer(answered.answer))
}

fn log_summary(results: &[BatchResult]) {
    use sovereign_relay_protocol::push::PushResult::{Failed, InvalidToken, Sent};
    let with = |wanted| {
        let matching =
            |result: &&BatchResult| matches!(result, BatchResult::Answer(answer) if answer.result == wanted);
        results.iter().filter(matching).count()
    };
    let refused = results
        .iter()
        .filter(|result| matches!(result, BatchResult::Refused { .. }))
        .count();
    info!(
        sent = with(Sent),
        invalid_token = with(InvalidToken),
        failed = with(Failed),
        refused,
        "batch answered"
    );
}
