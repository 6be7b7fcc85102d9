//! The contract every store passes.
