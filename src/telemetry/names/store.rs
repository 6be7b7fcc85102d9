//! What is kept: records, and what replicas share.

use metrics::Unit;

use super::{Metric, counter, gauge};

pub(super) const RECORDS: &[Metric] = &[
    gauge(
        "relay_instance_actors",
        &[],
        "Instances that pushed or signaled lately",
    ),
    counter(
        "relay_instance_actor_restarts_total",
        &[],
        "Instances' actors that panicked and were replaced: a fault of the relay",
    ),
    counter("relay_enrollments_total", &[], "Instances enrolled"),
    counter(
        "relay_abuse_suspensions_total",
        &[],
        "Instances that the relay suspended by itself",
    ),
    gauge("relay_revocations", &[], "Revoked keys that are remembered"),
    counter(
        "relay_store_failed_commits_total",
        &[],
        "Writes that the embedded store could not make durable",
    ),
    counter(
        "relay_store_reopened_total",
        &[],
        "Times that the embedded store came back after a fault",
    ),
];

pub(super) const REPLICAS: &[Metric] = &[
    gauge(
        "relay_redis_up",
        &[],
        "1 while Redis answers, with REDIS_URL alone",
    ),
    gauge(
        "relay_replicas",
        &[],
        "Replicas that share the limits, as last heard",
    ),
    Metric {
        unit: Unit::Seconds,
        ..gauge(
            "relay_clock_off_seconds",
            &[],
            "How far this machine's clock and Redis' differ; tickets take 60",
        )
    },
    gauge(
        "relay_signal_slots_held",
        &[],
        "Slots of shared sessions whose connection is here",
    ),
    counter(
        "relay_limit_leases_failed_total",
        &[],
        "Leases of shared limits and enrollments that Redis did not answer in time: a local share decides",
    ),
    counter(
        "relay_store_read_anew_total",
        &[],
        "Times that revocations, suspensions and limits were read as a whole, since changes may have been missed",
    ),
    counter(
        "relay_store_data_lost_total",
        &[],
        "Times that Redis was found emptied, or without revocations that are known here",
    ),
];
