//! What an APNs simulator is started with.

use serde::Serialize;

/// Which of the two APNs environments a simulator stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApnsEnvironment {
    /// `api.push.apple.com`
    Production,
    /// `api.sandbox.push.apple.com`
    Sandbox,
}

/// What happens to a stream opened beyond the limit. It is counted in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitEnforcement {
    /// Served like any other.
    CountOnly,
    /// Reset with REFUSED_STREAM, as RFC 9113 has it.
    #[default]
    Refuse,
    /// GOAWAY with the reason that APNs has been seen to give.
    GoAway,
}

/// Options of APNs, the same for both environments.
#[derive(Debug, Clone)]
pub struct ApnsOptions {
    /// Team that signs.
    pub team_id: String,
    /// Topic of the iOS app.
    pub bundle_id: String,
    /// Topic of the macOS app.
    pub bundle_id_macos: String,
    /// Stream limit until a valid JWT was seen on the connection.
    pub initial_stream_limit: u32,
    /// Stream limit after the first request with a valid JWT.
    pub raised_stream_limit: u32,
    /// Drops the limit to 1 after a refusal, until the next accepted notification.
    pub drop_limit_after_rejection: bool,
    /// What happens to a stream beyond the limit.
    pub limit_enforcement: LimitEnforcement,
    /// Refuses a JWT that comes less than 20 minutes after another change on the same connection.
    pub enforce_jwt_updates: bool,
}

impl Default for ApnsOptions {
    fn default() -> Self {
        Self {
            team_id: "SIMTEAM001".to_owned(),
            bundle_id: "fs.sovereign.simulator".to_owned(),
            bundle_id_macos: "fs.sovereign.simulator.macos".to_owned(),
            initial_stream_limit: 1,
            raised_stream_limit: 1000,
            drop_limit_after_rejection: false,
            limit_enforcement: LimitEnforcement::default(),
            enforce_jwt_updates: true,
        }
    }
}
