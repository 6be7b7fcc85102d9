//! `log`: what became of a user's notifications. It answers "why did I get no push?" without a word of their content.

use serde::Serialize;
use sovereign_relay_protocol::platform::Platform;
use uuid::Uuid;

use super::{Context, accounts::Accounts, exit::CommandError, output, time};
use crate::store::LogEntry;

/// Most that is shown at once: a screenful of days.
const MOST: u32 = 1000;

/// `log`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Whose
    user: String,
    /// How many entries, the newest first
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
    limit: u32,
}

/// One attempt, as it is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View<'a> {
    at: u64,
    notification_id: Uuid,
    channel: &'static str,
    target_id: Uuid,
    /// `None`: a browser.
    platform: Option<Platform>,
    outcome: &'static str,
    reason: &'a str,
    attempt: u32,
    relay_host: Option<&'a str>,
}

/// Lists them.
pub(crate) async fn run(args: Args, context: &Context) -> Result<(), CommandError> {
    let store = context.store().await?;
    let user = Accounts::open(&store).await?.named(&args.user).await?;
    let entries = store.log_of(&user, args.limit).await?;
    let views: Vec<_> = entries.iter().map(View::of).collect();
    context.print(&views, || {
        let rows: Vec<_> = views.iter().map(View::row).collect();
        output::table(
            ["WHEN", "TO", "OUTCOME", "REASON", "ATTEMPT", "NOTIFICATION"],
            &rows,
        )
    })
}

impl<'a> View<'a> {
    /// Shows an entry.
    pub(crate) fn of(entry: &'a LogEntry) -> Self {
        Self {
            at: entry.at,
            notification_id: entry.notification_id,
            channel: entry.channel.as_str(),
            target_id: entry.target_id,
            platform: entry.platform,
            outcome: entry.outcome.as_str(),
            reason: entry.reason.as_str(),
            attempt: entry.attempt,
            relay_host: entry.relay_host.as_deref(),
        }
    }

    fn row(&self) -> [String; 6] {
        [
            time(self.at),
            self.platform.map_or("browser", Platform::as_str).to_owned(),
            self.outcome.to_owned(),
            self.reason.to_owned(),
            self.attempt.to_string(),
            self.notification_id.to_string(),
        ]
    }
}
