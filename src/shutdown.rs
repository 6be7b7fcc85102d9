//! Stops in order: readiness, listeners, pushes in flight, actors, providers, store.
