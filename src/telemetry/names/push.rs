//! Pushes and the providers that deliver them.

use super::{APNS, Metric, OAUTH, PROVIDER, REASON, counter, gauge, of, seconds};

pub(super) const PUSHES: &[Metric] = &[
    counter(
        "relay_pushes_total",
        &[
            PROVIDER,
            of(
                "result",
                &["sent", "invalid_token", "failed", "unreachable", "overloaded"],
            ),
            REASON,
        ],
        "Pushes that came to a provider's lane, by what their caller was told",
    ),
    gauge(
        "relay_pushes_in_flight",
        &[],
        "Pushes that instances have under way",
    ),
    gauge(
        "relay_lane_queue",
        &[PROVIDER],
        "Pushes that wait for their turn at a provider",
    ),
    gauge(
        "relay_lane_in_flight",
        &[PROVIDER],
        "Pushes that a provider has not answered",
    ),
    gauge(
        "relay_breaker_state",
        &[PROVIDER],
        "Whether a provider is called: 0 yes, 1 probes alone, 2 not",
    ),
    gauge(
        "relay_fuse_open",
        &[
            of("scope", &[]),
            of("fuse", &["conditional", "single_instance", "certain"]),
        ],
        "1 while verdicts on devices are held back, since too many of a topic or project are called bad: conditional, those that need proof; single_instance, the same of one instance; certain, all",
    ),
    seconds(
        "relay_provider_seconds",
        &[PROVIDER],
        "Time of a push at its provider, retries included",
    ),
];

pub(super) const PROVIDERS: &[Metric] = &[
    counter(
        "relay_provider_refuses_relay_total",
        &[PROVIDER, REASON],
        "Answers that refuse the relay itself (credentials, topic, project): the operator must act",
    ),
    counter(
        "relay_provider_unreadable_answers_total",
        &[PROVIDER],
        "Answers whose body could not be read",
    ),
    counter("relay_oauth_requests_total", &[OAUTH], "Access tokens asked for"),
    counter(
        "relay_apns_answers_total",
        &[APNS, REASON],
        "Answers of APNs by its own reason, retried ones included",
    ),
    gauge("relay_apns_connections", &[APNS], "Open connections to APNs"),
    counter(
        "relay_apns_dial_failures_total",
        &[APNS],
        "Connections to APNs that could not be opened",
    ),
    counter(
        "relay_apns_connections_ended_total",
        &[APNS, of("reason", &["done", "lost", "silent"])],
        "Connections to APNs that ended; silent: a ping went unanswered",
    ),
    counter(
        "relay_apns_connections_replaced_total",
        &[APNS],
        "Connections to APNs that were open but gave no good answer, and were replaced",
    ),
    counter(
        "relay_apns_goaways_total",
        &[APNS, REASON],
        "GOAWAYs of APNs by its own reason",
    ),
    counter(
        "relay_apns_tokens_signed_total",
        &[],
        "Provider tokens signed for APNs; Apple refuses more than one in 20 minutes",
    ),
];
