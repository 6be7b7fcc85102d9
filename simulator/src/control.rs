//! The simulators over HTTP, for the binary.
