//! `POST /v1/push/batch`: up to 500 notifications in one request, answered in order.
//!
//! Each message is a push of its own: its own checks, its own place in the limits, its own deadline from the
//! moment its turn comes. A bad one is an error in its own place. A provider that answers nobody holds a whole batch up for
//! eight deadlines.

use std::net::IpAddr;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::HeaderMap,
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
    push::{self, IDEMPOTENCY_KEY},
    services::Services,
};

/// Send up to 500 notifications
///
/// The results come in the order of the messages: each an answer as of `/v1/push`, or an error of its own. Under an
/// idempotency key an earlier outcome is told again here too, but none is marked: there is no header for each, and one for
/// all is refused. Give a batch three minutes: where a provider answers nobody, a whole one takes 80 s, or 136 s where the
/// operator gives pushes the longest deadline, and its outcomes are told only to a caller that waits.
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
    refuse_one_key_for_all(request.headers())?;
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

/// A key for the whole batch would say nothing of the messages that were not sent yet when it was cut. Taken no notice
/// of, it would let a repeat ring every device twice.
fn refuse_one_key_for_all(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key(IDEMPOTENCY_KEY) {
        return Err(ApiError::invalid(
            "Idempotency-Key is for /v1/push; in a batch, put an idempotencyKey into each message",
        ));
    }
    Ok(())
}

/// A slow message holds nothing up but its own place: whatever ends first makes room for the next.
async fn deliver(services: &Services, holder: &KeyHolder, address: IpAddr, batch: Batch) -> Vec<BatchResult> {
    let numbered = batch.messages.into_iter().enumerate();
    let calls = numbered
        .map(|(place, message)| async move { (place, one(services, holder, address, message).await) });
    let mut results: Vec<_> = stream::iter(calls)
        .buffer_unordered(limits::BATCH_PARALLEL)
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
