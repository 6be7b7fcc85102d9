//! OAuth access tokens, refreshed ahead by one task.
