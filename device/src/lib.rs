//! What an app embeds: a key that never leaves the device, registration, opening of notifications.
