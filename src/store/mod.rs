//! What outlives a restart.
