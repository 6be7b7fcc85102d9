//! The revocation list in memory.
