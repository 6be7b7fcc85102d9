//! Puts the parts of an instance together from the settings. Every command takes what it needs from here.

use std::{fs, sync::Arc};

use sovereign_relay_client::trust::Trust;
use sovereign_relay_protocol::redacted::Redacted;

use super::{
    accounts::Accounts,
    exit::CommandError,
    settings::{RelaySettings, StoreSettings},
};
use crate::{
    clock::Clock,
    config::{Limits, RelayChoice},
    fan_out::FanOut,
    relay::{Identity, Relays},
    routes::Registration,
    store::Store,
    web_push::{self, Addresses, Contact, VapidKey, WebPush},
};

/// Name of the setting that `relay set` and `relay off` write.
pub(crate) const CHOICE_SETTING: &str = "relay_choice";
/// Whom push services may ask when the operator names nobody: those who made the program.
const PROJECT: &str = "https://github.com/sovereignfs/sovereign-relay";

/// An instance.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) accounts: Accounts,
    pub(crate) relays: Arc<Relays>,
    pub(crate) fan_out: Arc<FanOut>,
    pub(crate) registration: Arc<Registration>,
}

impl Parts {
    /// Opens the database and makes all that works on it.
    pub(crate) async fn open(
        store_settings: &StoreSettings,
        settings: &RelaySettings,
    ) -> Result<Self, CommandError> {
        let store = Store::connect(&store_settings.url()?).await?;
        let accounts = Accounts::open(&store).await.map_err(CommandError::failed)?;
        let relays = Arc::new(relays(&store, settings).await?);
        let web_push = web_push(&store, settings).await?;
        let registration = registration(&store, &relays, &web_push, settings);
        let fan_out = FanOut::new(store.clone(), relays.clone(), web_push, Limits::default());
        Ok(Self {
            store,
            accounts,
            relays,
            fan_out: Arc::new(fan_out),
            registration: Arc::new(registration),
        })
    }
}

/// The relay that holds: what the operator set last, else the settings of this process.
pub(crate) async fn choice(store: &Store, configured: &RelayChoice) -> Result<RelayChoice, CommandError> {
    match store.setting(CHOICE_SETTING).await? {
        None => Ok(configured.clone()),
        Some(set) => set.expose().parse().map_err(CommandError::failed),
    }
}

async fn relays(store: &Store, settings: &RelaySettings) -> Result<Relays, CommandError> {
    let trust = match extra_certificates(settings)? {
        Some(pem) => Trust::with_extra(&pem),
        None => Trust::system(),
    };
    let identity = Identity {
        name: settings.instance_name.as_deref().map(Redacted::new),
        // The relay's operator wants an address; push services want a URI, which may be a page.
        contact: settings.contact.as_deref().and_then(mail_address),
        invite: settings.relay_invite.as_deref().map(Redacted::new),
    };
    let choice = choice(store, &settings.choice()?).await?;
    Ok(Relays::new(
        store.clone(),
        choice,
        trust.map_err(CommandError::failed)?,
        identity,
    ))
}

/// Of `mailto:ops@example.org?subject=push` (RFC 6068) the address.
fn mail_address(contact: &str) -> Option<Redacted> {
    let rest = contact.strip_prefix("mailto:")?;
    rest.split('?').next().map(Redacted::new)
}

async fn web_push(store: &Store, settings: &RelaySettings) -> Result<Arc<WebPush>, CommandError> {
    let kept =
        VapidKey::kept(async |name, value| Ok::<_, anyhow::Error>(store.setting_or(name, &value).await?));
    let key = kept.await.map_err(CommandError::failed)?;
    let contact =
        Contact::parse(settings.contact.as_deref().unwrap_or(PROJECT)).map_err(CommandError::usage)?;
    let settings = web_push::Settings {
        addresses: addresses(settings),
        extra_ca: extra_certificates(settings)?,
        ..web_push::Settings::default()
    };
    WebPush::new(&key, contact, &settings)
        .map(Arc::new)
        .map_err(CommandError::failed)
}

fn registration(
    store: &Store,
    relays: &Arc<Relays>,
    web_push: &WebPush,
    settings: &RelaySettings,
) -> Registration {
    let relays = relays.clone();
    let current = Arc::new(move || relays.current());
    let registration = Registration::new(store.clone(), current, Clock::system())
        .with_web_push(web_push.public_key().to_owned());
    match addresses(settings) {
        Addresses::Public => registration,
        Addresses::PublicAndLoopback => registration.with_test_endpoints(),
    }
}

fn addresses(settings: &RelaySettings) -> Addresses {
    if settings.allow_test_endpoints {
        Addresses::PublicAndLoopback
    } else {
        Addresses::Public
    }
}

fn extra_certificates(settings: &RelaySettings) -> Result<Option<String>, CommandError> {
    let Some(file) = &settings.ca_file else {
        return Ok(None);
    };
    let read = fs::read_to_string(file);
    read.map(Some)
        .map_err(|error| CommandError::failed(format!("{}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_relay_s_operator_is_told_a_mail_address_and_nothing_else() {
        let told = |contact| mail_address(contact).map(|address| address.expose().to_owned());
        assert_eq!(told("mailto:ops@example.org").as_deref(), Some("ops@example.org"));
        assert_eq!(
            told("mailto:ops@example.org?subject=push").as_deref(),
            Some("ops@example.org")
        );
        assert_eq!(told("https://example.org/contact"), None);
    }
}
