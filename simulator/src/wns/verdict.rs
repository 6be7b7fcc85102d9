//! The answers of "Push notification service request and response headers", for scripts. All but [`bare`] carry the
//! `X-WNS-...` fields that mark them as the service's own.

use crate::behaviour::{Behaviour, RetryAfter};

/// A status with an `X-WNS-Error-Description`.
pub fn refused(status: u16, description: &str) -> Behaviour {
    Behaviour::status(status).header("x-wns-error-description", description)
}

/// A status without any field of WNS, as some proxy would answer.
pub fn bare(status: u16) -> Behaviour {
    Behaviour::status(status).bare()
}

/// 401: the access token is not good.
pub fn unauthorized() -> Behaviour {
    refused(401, "The access token is expired or invalid")
}

/// 403: the access token is of another app than the channel.
pub fn forbidden() -> Behaviour {
    refused(
        403,
        "The cloud service is not authorized to send a notification to this URI",
    )
}

/// 404: no such channel.
pub fn not_found() -> Behaviour {
    refused(404, "The channel URI is not valid or is not recognized by WNS")
}

/// 406: throttled, with a wait or none.
pub fn throttled(retry_after: RetryAfter) -> Behaviour {
    refused(406, "The cloud service exceeded its throttle limit").retry_after(retry_after)
}

/// 410: the channel has expired.
pub fn channel_expired() -> Behaviour {
    refused(410, "The channel expired")
}

/// 410: the channel was revoked.
pub fn channel_revoked() -> Behaviour {
    refused(410, "The channel was revoked by the user")
}

/// 410: the sending domain is blocked.
pub fn domain_blocked() -> Behaviour {
    refused(
        410,
        "Domain Blocked: the sending domain has been blocked because of abuse",
    )
}

/// 410 without a description.
pub fn gone() -> Behaviour {
    Behaviour::status(410)
}

/// 503, with a wait or none.
pub fn unavailable(retry_after: RetryAfter) -> Behaviour {
    refused(503, "The server is currently unavailable").retry_after(retry_after)
}

/// 200, but the notification was dropped.
pub fn dropped() -> Behaviour {
    with_status("dropped")
}

/// 200, but the channel is throttled.
pub fn channel_throttled() -> Behaviour {
    with_status("channelthrottled")
}

/// 200 with any notification status, in both fields that carry it.
pub fn with_status(status: &str) -> Behaviour {
    Behaviour::status(200)
        .header("x-wns-status", status)
        .header("x-wns-notificationstatus", status)
}

/// A redirect, which no sender may follow.
pub fn redirect(status: u16, location: &str) -> Behaviour {
    Behaviour::status(status).header("location", location)
}
