//! Registry and actors on real arbiters, with lanes, store and clock in the tests' hands.

mod faults;
mod pushes;
mod repeats;
mod sessions;
mod spans;
mod standing;
mod store;
mod support;
