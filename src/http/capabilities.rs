//! `GET /v1/capabilities`: what will work here. Needs no key.

use actix_web::{HttpResponse, web::Data};
use sovereign_relay_actors::ports::{Providers, PushProvider};
use sovereign_relay_protocol::{
    capabilities::{Capabilities, PerPlatform, PushLimits, Signaling},
    envelope::{self, AlertTitles},
    limits,
    platform::{Environment, Platform},
    redacted::Redacted,
    signal::SUBPROTOCOL,
};

use crate::http::services::Services;

/// What this relay can do
///
/// Platforms it has credentials for, and the numbers a caller plans with.
#[utoipa::path(
    get,
    path = "/v1/capabilities",
    tag = "relay",
    responses((status = 200, description = "What will work", body = Capabilities))
)]
pub(crate) async fn capabilities(services: Data<Services>) -> HttpResponse {
    HttpResponse::Ok().json(Capabilities {
        platforms: PerPlatform::of(|platform| is_configured(&services.providers, platform)),
        signaling: signaling(&services),
        limits: push_limits(&services),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Whether a push to `platform` that names no environment finds credentials.
fn is_configured(providers: &Providers, platform: Platform) -> bool {
    provider_of(providers, platform).scope(platform).is_some()
}

/// Whether any push at all finds credentials.
pub(crate) fn is_any_configured(providers: &Providers) -> bool {
    let has = |provider: &dyn PushProvider, platforms: &[Platform]| {
        platforms
            .iter()
            .any(|platform| provider.scope(*platform).is_some())
    };
    has(providers.fcm.as_ref(), &[Platform::Android])
        || has(providers.wns.as_ref(), &[Platform::Windows])
        || has(providers.apns_production.as_ref(), &APPLE)
        || has(providers.apns_sandbox.as_ref(), &APPLE)
}

const APPLE: [Platform; 2] = [Platform::Ios, Platform::Macos];

fn provider_of(providers: &Providers, platform: Platform) -> &dyn PushProvider {
    match platform {
        Platform::Android => providers.fcm.as_ref(),
        Platform::Windows => providers.wns.as_ref(),
        Platform::Ios | Platform::Macos => match providers.default_environment {
            Environment::Production => providers.apns_production.as_ref(),
            Environment::Sandbox => providers.apns_sandbox.as_ref(),
        },
    }
}

fn signaling(services: &Services) -> Signaling {
    Signaling {
        subprotocols: vec![SUBPROTOCOL.to_owned()],
        durability: Some(services.signaling.durability),
        limits: Some(services.signaling.sessions.limits()),
    }
}

fn push_limits(services: &Services) -> PushLimits {
    PushLimits {
        body_bytes: limits::BODY_BYTES,
        batch_body_bytes: limits::BATCH_BODY_BYTES,
        batch_messages: limits::BATCH_MESSAGES,
        payload_bytes: PerPlatform::of(|platform| payload_bytes(platform, &services.titles)),
        pushes_per_minute: services.pushes.per_minute(),
        concurrent_pushes: limits::CONCURRENT_PUSHES,
        device_pushes_per_minute: limits::TOKEN_PER_INSTANCE_PER_MINUTE,
        ttl_seconds: limits::TTL_SECONDS,
    }
}

/// What the envelope leaves of the provider's limit.
fn payload_bytes(platform: Platform, titles: &AlertTitles) -> usize {
    let nothing = Redacted::new("");
    match platform {
        Platform::Ios | Platform::Macos => {
            limits::APNS_BODY_BYTES.saturating_sub(envelope::apns_body(&nothing, titles.of(platform)).len())
        }
        Platform::Android => {
            let keys: usize = envelope::fcm_data(&nothing)
                .iter()
                .map(|(key, _)| key.len())
                .sum();
            limits::FCM_DATA_BYTES.saturating_sub(keys)
        }
        Platform::Windows => limits::WNS_BODY_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_limits_are_exactly_what_the_size_check_lets_through() {
        let titles = AlertTitles {
            ios: " ".to_owned(),
            macos: "A \"new\" message".to_owned(),
        };
        for platform in Platform::ALL {
            let most = payload_bytes(platform, &titles);
            let fits =
                |length| envelope::check_size(platform, &Redacted::new("A".repeat(length)), &titles).is_ok();
            assert!(fits(most), "{platform:?}");
            assert!(!fits(most + 1), "{platform:?}");
        }
    }
}
