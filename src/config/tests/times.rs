//! A stop lasts 20 s; the grace and the deadline of a push have to fit into it together.

use super::*;

fn times(grace: &str, deadline: &str) -> Result<Config, ConfigError> {
    load(&[("RELAY_DRAIN_GRACE", grace), ("RELAY_PUSH_DEADLINE", deadline)])
}

#[test]
fn a_grace_and_a_deadline_that_fit_a_stop_are_taken() {
    for (grace, deadline) in [("0s", "17s"), ("15s", "2s"), ("7s", "10s"), ("6500ms", "10500ms")] {
        assert!(times(grace, deadline).is_ok(), "{grace} {deadline}");
    }
}

#[test]
fn a_grace_and_a_deadline_that_a_stop_would_cut_are_refused_by_name() {
    for (grace, deadline) in [("15s", "10s"), ("1ms", "17s"), ("7s", "10001ms")] {
        let error = times(grace, deadline).unwrap_err().to_string();
        assert!(
            error.contains("RELAY_DRAIN_GRACE") && error.contains("RELAY_PUSH_DEADLINE"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let alone = load(&[("RELAY_DRAIN_GRACE", "8s")]).unwrap_err().to_string();
    assert_eq!(
        alone,
        "RELAY_DRAIN_GRACE (8s) and RELAY_PUSH_DEADLINE (10s) are longer together than the 17s that a stop leaves \
         them: lower one"
    );
}
