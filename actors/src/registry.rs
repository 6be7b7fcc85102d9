//! Finds the actor of an instance, starts it, replaces it when it died.
