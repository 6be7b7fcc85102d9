//! `GET /v1/capabilities`: what an instance's admin console needs to say what will work.
