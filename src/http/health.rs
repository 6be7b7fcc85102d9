//! `GET /api/health` and `/livez` (the process answers), `GET /readyz` (it should get traffic).
//!
//! `/readyz` is 503 only while the relay starts, stops, or can serve nobody: anything milder would take every
//! replica out of a load balancer at once for a fault that they share. Who asks it each second fills no log: an answer
//! that differs from the one before is told, once.

use std::sync::Arc;

use actix_web::{HttpResponse, web::Data};
use arc_swap::ArcSwapOption;
use serde::Serialize;
use sovereign_relay_protocol::error::ErrorCode;
use tracing::{info, warn};
use utoipa::ToSchema;

use crate::{
    http::{error::ApiError, services::Services},
    shutdown::Phase,
};

/// What `/readyz` judges.
#[derive(Clone, Default, Debug)]
pub struct Facts {
    /// Keys can be verified.
    pub enrollment_secret: bool,
    /// Credentials for one platform at least, in whichever environment.
    pub any_platform: bool,
    /// Records can be read and written.
    pub store_works: bool,
    /// Redis is configured and can't be reached.
    pub redis_is_away: bool,
    /// Providers whose circuit breaker is open.
    pub unreachable_providers: Vec<&'static str>,
}

/// Answer of `/livez` and `/api/health`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
}

/// Answer of `/readyz`.
#[derive(PartialEq, Eq, Serialize, ToSchema, Debug)]
pub(crate) struct Readiness {
    /// In one word.
    status: Status,
    /// Why it is not `ready`.
    reasons: Vec<String>,
    /// With 503, as in every error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorCode>,
    /// With 503: the reasons in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// How ready.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// 503: the parts are being put together.
    Starting,
    /// 200.
    Ready,
    /// 200: something is wrong, but what can be served is.
    Degraded,
    /// 503: asked to stop.
    Draining,
    /// 503: nothing can be served with this configuration.
    Unavailable,
}

impl Status {
    /// `None`: 200.
    fn code(self) -> Option<ErrorCode> {
        match self {
            Self::Ready | Self::Degraded => None,
            Self::Starting => Some(ErrorCode::Overloaded),
            Self::Draining => Some(ErrorCode::Draining),
            Self::Unavailable => Some(ErrorCode::NotConfigured),
        }
    }
}

impl Readiness {
    fn judge(phase: Phase, facts: &Facts) -> Self {
        let (status, reasons) = match phase {
            Phase::Starting => (Status::Starting, vec!["the relay is starting".to_owned()]),
            Phase::Draining | Phase::Closing => (Status::Draining, vec!["the relay is stopping".to_owned()]),
            Phase::Serving => Self::judge_serving(facts),
        };
        let error = status.code();
        Self {
            message: error.map(|_| reasons.join("; ")),
            status,
            reasons,
            error,
        }
    }

    fn judge_serving(facts: &Facts) -> (Status, Vec<String>) {
        let missing = missing(facts);
        if !missing.is_empty() {
            return (Status::Unavailable, missing);
        }
        let troubles = troubles(facts);
        let status = if troubles.is_empty() {
            Status::Ready
        } else {
            Status::Degraded
        };
        (status, troubles)
    }
}

/// Without this nobody can be served: pushes and sessions both need an instance's key.
fn missing(facts: &Facts) -> Vec<String> {
    let secret = (!facts.enrollment_secret).then_some("no enrollment secret is configured");
    secret.into_iter().map(str::to_owned).collect()
}

fn troubles(facts: &Facts) -> Vec<String> {
    let store = (!facts.store_works)
        .then(|| "the store takes no writes: nothing can be enrolled, and nothing revoked unless it is a full redis".to_owned());
    let redis = facts
        .redis_is_away
        .then(|| "redis can't be used: no session can be made, and no message is stored".to_owned());
    let platform =
        (!facts.any_platform).then(|| "no platform has credentials: only signaling is served".to_owned());
    let providers = facts
        .unreachable_providers
        .iter()
        .map(|name| format!("provider {name} does not answer"));
    let own = store.into_iter().chain(redis).chain(platform);
    own.chain(providers).collect()
}

/// The last answer of `/readyz`. None yet counts as `ready`.
#[derive(Default)]
pub struct Told(ArcSwapOption<(Status, Vec<String>)>);

impl Told {
    fn tell(&self, readiness: &Readiness) {
        let (status, reasons) = (readiness.status, &readiness.reasons);
        let is_same = |told: &(Status, Vec<String>)| told.0 == status && told.1 == *reasons;
        if self.0.load().as_deref().map_or(status == Status::Ready, is_same) {
            return;
        }
        self.0.store(Some(Arc::new((status, reasons.clone()))));
        let reasons = reasons.join("; ");
        match status {
            Status::Ready => info!("the relay is ready again"),
            Status::Starting | Status::Draining => info!(reasons, "the relay is not ready"),
            Status::Degraded => warn!(reasons, "the relay is degraded"),
            Status::Unavailable => warn!(reasons, "the relay can serve nobody"),
        }
    }
}

/// Whether the process answers
#[utoipa::path(
    get,
    path = "/livez",
    tag = "health",
    responses((status = 200, description = "It does", body = Health))
)]
pub(crate) async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "ok" })
}

/// Whether the process answers, at the path of the earlier relay
#[utoipa::path(
    get,
    path = "/api/health",
    tag = "health",
    responses((status = 200, description = "It does", body = Health))
)]
pub(crate) async fn api_health() -> HttpResponse {
    livez().await
}

/// Whether traffic should come here
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses(
        (status = 200, description = "Yes", body = Readiness),
        (status = 503, description = "No; the reasons say why. overloaded: it starts; draining: it stops; \
                                      not_configured: it has no enrollment secret", body = Readiness)
    )
)]
pub(crate) async fn readyz(services: Data<Services>) -> HttpResponse {
    let readiness = Readiness::judge(services.lifecycle.phase(), &(services.facts)());
    services.told.tell(&readiness);
    let mut response = match readiness.status.code() {
        None => HttpResponse::Ok(),
        Some(code) => ApiError::new(code, "").head(),
    };
    response.json(readiness)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> Facts {
        Facts {
            enrollment_secret: true,
            any_platform: true,
            store_works: true,
            redis_is_away: false,
            unreachable_providers: Vec::new(),
        }
    }

    fn judged(phase: Phase, facts: &Facts) -> (Status, u16) {
        let readiness = Readiness::judge(phase, facts);
        assert_eq!(
            readiness.reasons.is_empty(),
            readiness.status == Status::Ready,
            "reasons iff not ready"
        );
        let http = readiness.error.map_or(200, ErrorCode::status);
        (readiness.status, http)
    }

    #[test]
    fn a_serving_relay_is_ready_and_a_starting_or_stopping_one_is_not() {
        assert_eq!(judged(Phase::Starting, &well()), (Status::Starting, 503));
        assert_eq!(judged(Phase::Serving, &well()), (Status::Ready, 200));
        assert_eq!(judged(Phase::Draining, &well()), (Status::Draining, 503));
        assert_eq!(judged(Phase::Closing, &well()), (Status::Draining, 503));
    }

    #[test]
    fn half_a_relay_a_faulty_store_or_a_silent_provider_is_degraded_and_still_200() {
        let signaling_alone = Facts {
            any_platform: false,
            ..well()
        };
        assert_eq!(judged(Phase::Serving, &signaling_alone), (Status::Degraded, 200));
        let store = Facts {
            store_works: false,
            ..well()
        };
        assert_eq!(judged(Phase::Serving, &store), (Status::Degraded, 200));
        let redis = Facts {
            redis_is_away: true,
            ..well()
        };
        assert_eq!(judged(Phase::Serving, &redis), (Status::Degraded, 200));
        let provider = Facts {
            unreachable_providers: vec!["fcm"],
            ..well()
        };
        assert_eq!(judged(Phase::Serving, &provider), (Status::Degraded, 200));
    }

    #[test]
    fn a_relay_that_can_serve_nobody_says_why() {
        let nothing = Facts {
            enrollment_secret: false,
            any_platform: false,
            ..well()
        };
        assert_eq!(judged(Phase::Serving, &nothing), (Status::Unavailable, 503));
        assert_eq!(Readiness::judge(Phase::Serving, &nothing).reasons.len(), 1);
    }
}
