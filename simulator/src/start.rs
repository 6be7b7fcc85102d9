//! Puts the simulators together.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use crate::{
    SimulatorOptions, Simulators,
    apns::{
        Apns, ApnsEnvironment, ApnsSimulator,
        auth::Keys,
        connection::ApnsService,
        devices::{DeviceList, Devices},
        registry::Registry,
    },
    ca::CertificateAuthority,
    clock::SimulatorClock,
    error::SimulatorError,
    fcm::{Fcm, FcmSimulator, ServiceAccount, service::FcmService},
    net::http::HttpServer,
    oauth::TokenBook,
    simulator::{Shared, Simulator},
    wns::{Wns, WnsSimulator, service::WnsService},
};

pub(crate) async fn start(options: SimulatorOptions) -> Result<Simulators, SimulatorError> {
    let starter = Starter {
        authority: CertificateAuthority::generate()?,
        clock: Arc::default(),
        keys: Keys::generate(&options.apns.team_id)?,
        devices: DeviceList::default(),
        options,
    };
    Ok(Simulators {
        apns: starter.apns(ApnsEnvironment::Production, 0).await?,
        apns_sandbox: starter.apns(ApnsEnvironment::Sandbox, 1).await?,
        fcm: starter.fcm(2).await?,
        wns: starter.wns(3).await?,
        ca_pem: starter.authority.pem().to_owned(),
        clock: starter.clock,
    })
}

struct Starter {
    authority: CertificateAuthority,
    clock: Arc<SimulatorClock>,
    keys: Keys,
    devices: DeviceList,
    options: SimulatorOptions,
}

impl Starter {
    async fn apns(&self, environment: ApnsEnvironment, place: u16) -> Result<ApnsSimulator, SimulatorError> {
        let options = &self.options;
        let shared = self.shared(Apns {
            environment,
            options: options.apns.clone(),
            devices: Devices::new(self.devices.clone(), environment, options.strict),
            keys: self.keys.clone(),
            registry: Registry::new(options.apns.raised_stream_limit),
        });
        let config = self.authority.server_config(&[b"h2"])?;
        let service = Arc::new(ApnsService {
            shared: Arc::clone(&shared),
        });
        Simulator::start(self.port(place), config, shared, service).await
    }

    async fn fcm(&self, place: u16) -> Result<FcmSimulator, SimulatorError> {
        let options = &self.options.fcm;
        let shared = self.shared(Fcm {
            options: options.clone(),
            strict: self.options.strict,
            devices: Mutex::new(HashSet::new()),
            tokens: TokenBook::new(options.token_lifetime_seconds),
            account: ServiceAccount::generate()?,
        });
        let config = self.authority.server_config(&[b"h2", b"http/1.1"])?;
        let service = Arc::new(FcmService {
            shared: Arc::clone(&shared),
        });
        Simulator::start(self.port(place), config, shared, Arc::new(HttpServer { service })).await
    }

    async fn wns(&self, place: u16) -> Result<WnsSimulator, SimulatorError> {
        let options = &self.options.wns;
        let shared = self.shared(Wns {
            options: options.clone(),
            strict: self.options.strict,
            channels: Mutex::new(HashSet::new()),
            tokens: TokenBook::new(options.token_lifetime_seconds),
        });
        let config = self.authority.server_config(&[b"http/1.1"])?;
        let service = Arc::new(WnsService {
            shared: Arc::clone(&shared),
        });
        Simulator::start(self.port(place), config, shared, Arc::new(HttpServer { service })).await
    }

    fn shared<P: crate::Provider>(&self, provider: P) -> Arc<Shared<P>> {
        Arc::new(Shared::new(
            provider,
            self.options.inbox_capacity,
            Arc::clone(&self.clock),
        ))
    }

    fn port(&self, place: u16) -> u16 {
        match self.options.first_port {
            0 => 0,
            first => first.saturating_add(place),
        }
    }
}
