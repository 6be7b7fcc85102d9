//! Repeats of a push under the same idempotency key.
