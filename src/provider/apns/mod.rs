//! APNs.
