//! Stand-ins for APNs, FCM and WNS that speak the real wire, judge what they get by the vendors' documented rules, and
//! can be told to misbehave. For the playground, the black-box tests and load tests; nothing here is for production.
//!
//! [`Simulators::start`] opens four TLS servers on loopback under a CA of their own; a relay started with
//! [`Simulators::relay_environment`] uses them as its providers. A test makes devices (`new_token`, `new_channel`),
//! scripts what requests are met with ([`Script`], [`Behaviour`]), and reads what devices got ([`Inbox`]).
//!
//! Where to look: [`simulator`] (what all have in common), [`apns`], [`fcm`], [`wns`], [`behaviour`], [`script`],
//! [`inbox`], [`control`] (the same over HTTP, for the binary).

pub mod apns;
pub mod behaviour;
mod ca;
mod clock;
pub mod control;
mod entropy;
mod environment;
mod error;
pub mod fcm;
pub mod inbox;
mod net;
mod oauth;
pub mod script;
pub mod simulator;
mod start;
mod sync;
pub mod wns;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use apns::{
    ApnsDelivery, ApnsEnvironment, ApnsKey, ApnsOptions, ApnsSimulator, ApnsStats, JwtUse, LimitEnforcement,
};
pub use behaviour::{Answer, Behaviour, Ending, Pace, RetryAfter};
pub use clock::SimulatorClock;
pub use error::SimulatorError;
pub use fcm::{FcmDelivery, FcmOptions, FcmSimulator};
pub use inbox::{Inbox, InboxTimeout};
pub use script::{Rule, Script};
pub use simulator::{Provider, Request, Simulator};
pub use wns::{WnsDelivery, WnsOptions, WnsSimulator};

/// What the simulators are started with.
#[derive(Debug, Clone)]
pub struct SimulatorOptions {
    /// Makes well-shaped addresses that nobody made here unknown (`BadDeviceToken`, `UNREGISTERED`, 404) instead of
    /// alive.
    pub strict: bool,
    /// What an inbox keeps; more is counted and dropped.
    pub inbox_capacity: usize,
    /// First of four ports in a row; 0 lets the system choose each.
    pub first_port: u16,
    /// APNs.
    pub apns: ApnsOptions,
    /// FCM.
    pub fcm: FcmOptions,
    /// WNS.
    pub wns: WnsOptions,
}

impl Default for SimulatorOptions {
    fn default() -> Self {
        Self {
            strict: false,
            inbox_capacity: DEFAULT_INBOX_CAPACITY,
            first_port: 0,
            apns: ApnsOptions::default(),
            fcm: FcmOptions::default(),
            wns: WnsOptions::default(),
        }
    }
}

/// Enough for any test, and under 100 MB with the largest payloads.
const DEFAULT_INBOX_CAPACITY: usize = 20_000;

/// All four stand-ins. Dropping it aborts their tasks, [`Simulators::stop`] joins them.
pub struct Simulators {
    /// APNs, production.
    pub apns: ApnsSimulator,
    /// APNs, sandbox.
    pub apns_sandbox: ApnsSimulator,
    /// FCM and its token endpoint.
    pub fcm: FcmSimulator,
    /// WNS and its token endpoints.
    pub wns: WnsSimulator,
    /// The CA that signed the servers' certificates.
    pub ca_pem: String,
    clock: Arc<SimulatorClock>,
}

impl Simulators {
    /// Opens the servers.
    pub async fn start(options: SimulatorOptions) -> Result<Self, SimulatorError> {
        start::start(options).await
    }

    /// Writes the CA to `simulator-ca.pem` in `directory` and returns that path.
    pub fn write_ca(&self, directory: &Path) -> Result<PathBuf, SimulatorError> {
        let path = directory.join("simulator-ca.pem");
        match std::fs::write(&path, &self.ca_pem) {
            Ok(()) => Ok(path),
            Err(source) => Err(SimulatorError::WriteCa { path, source }),
        }
    }

    /// The clock by which JWTs and OAuth tokens are judged.
    pub fn clock(&self) -> &SimulatorClock {
        &self.clock
    }

    /// Records what arrives (the default), or only counts it so that memory stays flat under load.
    pub fn set_recording(&self, recording: bool) {
        self.apns.set_recording(recording);
        self.apns_sandbox.set_recording(recording);
        self.fcm.set_recording(recording);
        self.wns.set_recording(recording);
    }

    /// Ends all connections and joins all tasks.
    pub async fn stop(mut self) {
        self.apns.server.stop().await;
        self.apns_sandbox.server.stop().await;
        self.fcm.server.stop().await;
        self.wns.server.stop().await;
    }
}

#[cfg(test)]
mod tests;
