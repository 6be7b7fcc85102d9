//! FCM HTTP v1.
