//! What the playground prints: for people, or as one JSON object for programs.

use std::io::{self, Write as _};

use serde_json::json;

use super::{
    Args,
    device::Device,
    page::Page,
    stage::Stage,
    tour::{self, Step},
};

/// Enough of an opaque text to see that it is one.
const SHOWN_CHARS: usize = 64;

/// Prints the tour.
pub(super) struct Report {
    json: bool,
    once: bool,
}

impl Report {
    pub(super) fn new(args: Args) -> Self {
        Self {
            json: args.json,
            once: args.once,
        }
    }

    /// Where everything is.
    pub(super) fn opening(&self, stage: &Stage) -> io::Result<()> {
        self.people(&format!(
            "Sovereign Relay playground\n\n  relay      {}\n  APNs       {}\n  FCM        {}\n  WNS        {}\n  instance   {} (enrolled just now)\n",
            stage.url(),
            stage.simulators.apns.endpoint(),
            stage.simulators.fcm.endpoint(),
            stage.simulators.wns.endpoint(),
            stage.instance.instance_id,
        ))
    }

    /// One notification's way, seen from each side.
    pub(super) fn step(&self, device: &Device, step: &Step) -> io::Result<()> {
        let arrived = match &step.opened {
            Ok(opened) => format!("device opened   {opened}"),
            Err(error) => format!("NOT DELIVERED   {error:#}"),
        };
        let envelope = step.envelope.as_deref().map_or("nothing".to_owned(), shortened);
        self.people(&format!(
            "{}\n  instance sealed {}\n  relay saw       {}\n  provider saw    {envelope}\n  {arrived}\n",
            device.platform.as_str(),
            step.notification,
            shortened(&step.sealed),
        ))
    }

    /// The result, and what to try next while the page is there.
    pub(super) fn closing(&self, stage: &Stage, page: Option<&Page>, delivered: usize) -> anyhow::Result<()> {
        if self.json {
            let addresses = self.addresses(stage, page, delivered)?;
            return Ok(self.print(&addresses.to_string())?);
        }
        self.people(&format!(
            "{delivered} of {} notifications delivered and opened.",
            stage.devices.len()
        ))?;
        if let Some(page) = page {
            self.people(
                "\nPush something yourself; what arrives at a device is opened here. Or make a signaling session.\n",
            )?;
            self.people(&format!(
                "  curl {}/v1/capabilities\n  curl -X POST {0}/v1/enroll\n",
                stage.url()
            ))?;
            for device in &stage.devices {
                self.people(&curl(stage, device)?)?;
            }
            self.people(&curl_session(stage))?;
            self.people(&format!(
                "See two browser tabs shake hands through the relay (Ctrl-C ends all of this):\n\n  {}\n",
                page.url
            ))?;
        }
        Ok(())
    }

    /// Something that a person sent.
    pub(super) fn arrival(&self, device: &Device, opened: &anyhow::Result<String>) -> anyhow::Result<()> {
        if self.json {
            let line = json!({ "platform": device.platform, "opened": opened.as_ref().ok() });
            return Ok(self.print(&line.to_string())?);
        }
        let text = match opened {
            Ok(opened) => format!("{} device opened {opened}", device.platform.as_str()),
            Err(error) => format!(
                "{} device got something it cannot open: {error:#}",
                device.platform.as_str()
            ),
        };
        Ok(self.people(&text)?)
    }

    fn addresses(
        &self,
        stage: &Stage,
        page: Option<&Page>,
        delivered: usize,
    ) -> anyhow::Result<serde_json::Value> {
        let devices = stage.devices.iter().map(|device| {
            let sealed = device.seal(&json!({ "title": "Hello" }))?;
            Ok(json!({
                "platform": device.platform,
                "deviceToken": device.token,
                "publicKey": device.public_key(),
                "encryptedPayload": sealed,
            }))
        });
        Ok(json!({
            "url": stage.url(),
            "pageUrl": page.map(|page| &page.url),
            "adminUrl": format!("http://{}", stage.relay.admin_addr),
            "instanceId": stage.instance.instance_id,
            "instanceKey": stage.instance.instance_key,
            "delivered": delivered,
            "devices": devices.collect::<anyhow::Result<Vec<_>>>()?,
        }))
    }

    fn people(&self, text: &str) -> io::Result<()> {
        if self.json { Ok(()) } else { self.print(text) }
    }

    /// With `--once` there is an exit code to find out, also for a reader that went away (`| head`).
    fn print(&self, text: &str) -> io::Result<()> {
        match writeln!(io::stdout().lock(), "{text}") {
            Err(error) if self.once && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

fn curl(stage: &Stage, device: &Device) -> anyhow::Result<String> {
    let notification =
        json!({ "title": "Hello", "body": format!("from curl to {}", device.platform.as_str()) });
    let body = tour::body(device, &device.seal(&notification)?);
    Ok(format!(
        "  curl {}/v1/push -H 'authorization: Bearer {}' -H 'content-type: application/json' -d '{body}'\n",
        stage.url(),
        stage.instance.instance_key,
    ))
}

fn curl_session(stage: &Stage) -> String {
    format!(
        "  curl -X POST {}/v1/signal/sessions -H 'authorization: Bearer {}'\n",
        stage.url(),
        stage.instance.instance_key,
    )
}

fn shortened(text: &str) -> String {
    let head: String = text.chars().take(SHOWN_CHARS).collect();
    if head.len() == text.len() {
        head
    } else {
        format!("{head}... ({} bytes)", text.len())
    }
}
