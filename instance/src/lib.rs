//! What a self-hosted instance embeds: device-token store, registration routes, encrypting fan-out.
