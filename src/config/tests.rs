//! Precedence, refusals and secrecy of the whole configuration.
