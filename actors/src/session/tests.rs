//! The actor and its registry on one thread with a paused clock; the store is the record, and fails on demand.

mod connections;
mod crowds;
mod faults;
mod overtaking;
mod shelf;
mod support;
