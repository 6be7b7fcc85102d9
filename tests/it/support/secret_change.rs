//! The steps in which an operator changes the enrollment secret.

use super::relay::RelayOptions;

const OLD: &str = "the secret that all replicas had so far";
const NEW: &str = "the secret that all replicas shall have";

/// What relays are started with, step by step.
pub fn steps() -> [RelayOptions; 4] {
    let step = |current: &str| RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", current);
    [
        step(OLD),
        step(OLD).set("RELAY_ENROLLMENT_SECRET_PREVIOUS", NEW),
        step(NEW).set("RELAY_ENROLLMENT_SECRET_PREVIOUS", OLD),
        step(NEW),
    ]
}
