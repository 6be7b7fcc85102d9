//! `devices`: what a user is told on. Neither tokens nor keys are shown.

use serde::Serialize;
use sovereign_relay_protocol::platform::{Environment, Platform};
use uuid::Uuid;

use super::{Context, accounts::Accounts, exit::CommandError, output, time};

/// `devices`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Whose
    user: String,
}

/// A device or a browser.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    id: Uuid,
    /// `None`: a browser.
    platform: Option<Platform>,
    created_at: u64,
    last_used_at: Option<u64>,
    /// Of a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    relay_url: Option<String>,
    /// Of an Apple device whose app has named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Environment>,
}

/// Lists them.
pub(crate) async fn run(args: Args, context: &Context) -> Result<(), CommandError> {
    let store = context.store().await?;
    let user = Accounts::open(&store).await?.named(&args.user).await?;
    let devices = store.devices_of(&user).await?.into_iter().map(|device| View {
        id: device.id,
        platform: Some(device.platform),
        created_at: device.created_at,
        last_used_at: device.last_used_at,
        relay_url: Some(device.relay_url),
        environment: device.environment,
    });
    let browsers = store
        .subscriptions_of(&user)
        .await?
        .into_iter()
        .map(|browser| View {
            id: browser.id,
            platform: None,
            created_at: browser.created_at,
            last_used_at: browser.last_used_at,
            relay_url: None,
            environment: None,
        });
    let all: Vec<_> = devices.chain(browsers).collect();
    context.print(&all, || {
        let rows: Vec<_> = all.iter().map(View::row).collect();
        output::table(["ID", "KIND", "REGISTERED", "LAST TOLD", "RELAY"], &rows)
    })
}

impl View {
    fn kind(&self) -> String {
        let kind = self.platform.map_or("browser", Platform::as_str);
        match self.environment {
            Some(environment) => format!("{kind}, {}", environment.as_str()),
            None => kind.to_owned(),
        }
    }

    fn row(&self) -> [String; 5] {
        [
            self.id.to_string(),
            self.kind(),
            time(self.created_at),
            self.last_used_at.map_or_else(|| "never".to_owned(), time),
            self.relay_url.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    }
}
