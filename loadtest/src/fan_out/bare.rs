//! The least that anyone has to do: read the devices, seal for each, post batches of 500 one after the other. Nothing
//! is kept, so what a crash or a busy relay leaves undone is lost.

use anyhow::{Context as _, bail};
use sovereign_instance::{store::Store, user::User};
use sovereign_relay_client::{
    http::{InstanceKey, Relay, push::PushOutcome},
    trust::Trust,
};
use sovereign_relay_protocol::{
    limits::BATCH_MESSAGES,
    push::PushMessage,
    redacted::Redacted,
    seal::{DevicePublicKey, seal},
};

use super::{
    figures::{Began, Figures},
    work,
};
use crate::instance::random;

/// Where.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long)]
    database: String,
    #[arg(long)]
    relay: String,
}

/// Posts all.
pub(super) async fn run(options: Options) -> anyhow::Result<Figures> {
    let store = Store::connect(&options.database).await?;
    let row = store.relay(&options.relay).await?.context("not enrolled")?;
    let key = row.instance_key.context("not enrolled")?;
    let relay = Relay::new(&options.relay, &Trust::system()?)?;
    let instance = relay.instance(InstanceKey::new(key.expose()));
    let began = Began::now()?;
    let devices = store.devices_of(&User::new(work::USER)).await?;
    let json = work::content().to_string();
    for chunk in devices.chunks(BATCH_MESSAGES) {
        let messages = chunk.iter().map(|device| {
            let key = DevicePublicKey::from_base64(&device.public_key)?;
            let sealed = Redacted::new(seal(&json, &key, random)?);
            Ok(PushMessage::new(device.platform, device.token.clone(), sealed))
        });
        let messages: Vec<PushMessage> = messages.collect::<anyhow::Result<_>>()?;
        for outcome in instance.push_batch(&messages).await? {
            let Ok(PushOutcome::Sent { .. }) = outcome else {
                bail!("not sent: {outcome:?}");
            };
        }
    }
    began.figures()
}
