//! `notify`: tells a user something. What can't be delivered at once stays in the outbox, which `serve` works off.

use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use serde_json::Value;
use sovereign_relay_protocol::{limits, platform::Priority};
use uuid::Uuid;

use super::{Context, exit::CommandError, output, parts::Parts, settings::RelaySettings};
use crate::{fan_out::Report, notification::Notification};

/// `notify`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Whom
    user: String,
    /// First line
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    title: String,
    /// The rest
    #[arg(long, default_value = "")]
    body: String,
    /// What a tap opens
    #[arg(long)]
    url: Option<String>,
    /// Replaces what is still shown under the same tag
    #[arg(long)]
    tag: Option<String>,
    /// JSON for the app
    #[arg(long, value_name = "JSON", value_parser = parse_json)]
    data: Option<Value>,
    /// Can wait until the device wakes
    #[arg(long)]
    low: bool,
    /// Seconds that it is worth being delivered; 0 is now or never
    #[arg(long, value_name = "SECONDS", default_value_t = limits::TTL_SECONDS)]
    ttl: u32,
    #[command(flatten)]
    relay: RelaySettings,
}

/// What became of it, for scripts and the page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told {
    notification_id: Uuid,
    /// Devices and browsers that it was for.
    targets: usize,
    sent: usize,
    pruned: usize,
    kept: usize,
    failed: usize,
    waiting: usize,
    expired: usize,
    dropped: usize,
}

/// Exit 0 when one device or browser was told, 3 when all of it waits, 1 otherwise.
pub(crate) async fn run(args: Args, context: &Context) -> Result<(), CommandError> {
    let parts = Parts::open(&context.store, &args.relay).await?;
    let user = parts.accounts.named(&args.user).await?;
    let report = parts
        .fan_out
        .send(&user, &args.notification())
        .await
        .map_err(CommandError::failed)?;
    let told = Told::of(&report);
    context.print(&told, || told.in_words())?;
    if told.sent > 0 {
        return Ok(());
    }
    if told.targets == 0 {
        let nobody = format!("nobody was told: {} has no device or browser yet", args.user);
        return Err(CommandError::failed(nobody));
    }
    if told.waiting > 0 {
        output::tell("What waits is delivered by `sovereign-instance serve`.");
        return Err(CommandError::unreachable("nobody was told yet"));
    }
    Err(CommandError::failed(format!(
        "nobody was told: `sovereign-instance log {}` says why",
        args.user
    )))
}

impl Args {
    fn notification(&self) -> Notification {
        Notification {
            url: self.url.clone(),
            tag: self.tag.clone(),
            data: self.data.clone(),
            priority: if self.low {
                Priority::Normal
            } else {
                Priority::High
            },
            ttl_seconds: self.ttl,
            ..Notification::new(self.title.clone(), self.body.clone())
        }
    }
}

impl Told {
    /// Of a report.
    pub(crate) fn of(report: &Report) -> Self {
        Self {
            notification_id: report.notification_id,
            targets: report.targets(),
            sent: report.sent,
            pruned: report.pruned,
            kept: report.kept,
            failed: report.failed,
            waiting: report.waiting,
            expired: report.expired,
            dropped: report.dropped,
        }
    }

    fn in_words(&self) -> String {
        let others = [
            (self.pruned, "gone and removed"),
            (self.kept, "registered again meanwhile"),
            (self.failed, "failed"),
            (self.waiting, "waiting for another attempt"),
            (self.expired, "too late"),
            (self.dropped, "dropped"),
        ];
        let others = others.iter().filter(|(count, _)| *count > 0);
        let words: String = others.map(|(count, what)| format!(", {count} {what}")).collect();
        format!("{} of {} told{words}", self.sent, self.targets)
    }
}

fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|_| "not JSON".to_owned())
}
