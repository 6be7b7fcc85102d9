//! `instances`: what the operator sees of enrolled instances and does to them.

use std::time::Duration;

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};

use super::{AdminFlags, admin_api::AdminApi, exit::CommandError, output, report};
use crate::{
    auth::InstanceView,
    config::duration_flag,
    defaults::{INSTANCE_PER_MINUTE_MAX, SUSPENSION_MAX, SUSPENSION_REASON_CHARS},
    store::RECORDS_PAGE,
};

/// `instances`.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// All instances with a record, in the order of their ids
    List(List),
    /// One instance
    Show(One),
    /// Refuse an instance's pushes and new sessions (403) for a while, or until it is resumed
    Suspend(Suspend),
    /// End a suspension
    Resume(One),
    /// Withdraw an instance's keys for good (401); it has to enroll anew
    Revoke(One),
    /// Set how many pushes a minute an instance may send
    ///
    /// More than the default also takes it out of the limit and the turn that young instances of one address share.
    Limit(Limit),
    /// Say whether peers in an instance's signaling sessions get TURN credentials
    ///
    /// With `default`, as at the start, RELAY_TURN_FOR decides. `deny` holds whatever it says.
    Turn(Turn),
}

/// `instances list`.
#[derive(clap::Args, Debug)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminFlags,
}

/// One instance.
#[derive(clap::Args, Debug)]
pub(crate) struct One {
    /// Id of the instance
    #[arg(value_parser = parse_id)]
    instance: InstanceId,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminFlags,
}

/// `instances suspend`.
#[derive(clap::Args, Debug)]
pub(crate) struct Suspend {
    #[command(flatten)]
    one: One,
    /// Why, for you and your colleagues; it is stored
    #[arg(long, value_parser = parse_reason)]
    reason: String,
    /// How long: 30m, 24h, 7d; without it, until resumed
    #[arg(long = "for", value_name = "TIME", value_parser = duration_flag(SUSPENSION_MAX))]
    length: Option<Duration>,
}

/// `instances limit`.
#[derive(clap::Args, Debug)]
pub(crate) struct Limit {
    #[command(flatten)]
    one: One,
    /// Pushes a minute, or `default`
    #[arg(value_parser = parse_limit)]
    per_minute: PerMinute,
}

/// `instances turn`.
#[derive(clap::Args, Debug)]
pub(crate) struct Turn {
    /// Whether they do
    #[arg(value_enum)]
    word: Word,
    #[command(flatten)]
    one: One,
}

/// The operator's word.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Word {
    /// It gets them
    Allow,
    /// It gets none
    Deny,
    /// RELAY_TURN_FOR decides
    Default,
}

impl Word {
    fn turn(self) -> Option<bool> {
        match self {
            Self::Allow => Some(true),
            Self::Deny => Some(false),
            Self::Default => None,
        }
    }
}

/// A limit, or the relay's default.
#[derive(Clone, Copy, Debug)]
struct PerMinute(Option<u32>);

#[derive(Serialize, Deserialize)]
struct Page {
    instances: Vec<InstanceView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<InstanceId>,
}

#[derive(Serialize)]
struct Suspension<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WantedLimit {
    per_minute: Option<u32>,
}

#[derive(Serialize)]
struct WantedTurn {
    turn: Option<bool>,
}

/// A change that needs no more words.
#[derive(Serialize)]
struct Nothing {}

/// Does it.
pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::List(args) => list(args).await,
        Command::Show(one) => {
            let api = AdminApi::find(&one.admin.flags)?;
            let view = api.get(&format!("/instances/{}", one.instance)).await?;
            print(&view, one.json)
        }
        Command::Suspend(args) => suspend(args).await,
        Command::Resume(one) => change(&one, "resume", &Nothing {}).await,
        Command::Revoke(one) => revoke(&one).await,
        Command::Limit(args) => {
            change(
                &args.one,
                "limit",
                &WantedLimit {
                    per_minute: args.per_minute.0,
                },
            )
            .await
        }
        Command::Turn(Turn { word, one }) => {
            let turn = word.turn();
            change(&one, "turn", &WantedTurn { turn }).await
        }
    }
}

async fn list(args: List) -> Result<(), CommandError> {
    let api = AdminApi::find(&args.admin.flags)?;
    let mut instances: Vec<InstanceView> = Vec::new();
    let mut path = format!("/instances?limit={RECORDS_PAGE}");
    loop {
        let page: Page = api.get(&path).await?;
        instances.extend(page.instances);
        let Some(next) = page.next else { break };
        path = format!("/instances?limit={RECORDS_PAGE}&after={next}");
    }
    if args.json {
        return output::print_json(&Page {
            instances,
            next: None,
        });
    }
    let rows: Vec<_> = instances.iter().map(report::instance_row).collect();
    output::print(&output::table(&report::INSTANCE_HEADINGS, &rows))
}

async fn suspend(args: Suspend) -> Result<(), CommandError> {
    let seconds = args.length.map(|length| length.as_secs());
    let body = Suspension {
        reason: &args.reason,
        seconds,
    };
    let view = send_change(&args.one, "suspend", &body).await?;
    print(&view, args.one.json)?;
    report::doubt(&view).iter().for_each(|doubt| output::tell(doubt));
    if let Some(letter) = report::letter(&view) {
        output::tell(&letter);
    }
    Ok(())
}

async fn change(one: &One, verb: &str, body: &impl Serialize) -> Result<(), CommandError> {
    let view = send_change(one, verb, body).await?;
    print(&view, one.json)?;
    report::doubt(&view).iter().for_each(|doubt| output::tell(doubt));
    Ok(())
}

/// That the instance has ended is what was asked for.
async fn revoke(one: &One) -> Result<(), CommandError> {
    let view = send_change(one, "revoke", &Nothing {}).await?;
    print(&view, one.json)?;
    report::no_record(&view)
        .iter()
        .for_each(|doubt| output::tell(doubt));
    Ok(())
}

async fn send_change(one: &One, verb: &str, body: &impl Serialize) -> Result<InstanceView, CommandError> {
    let api = AdminApi::find(&one.admin.flags)?;
    api.post(&format!("/instances/{}/{verb}", one.instance), body)
        .await
}

fn print(view: &InstanceView, json: bool) -> Result<(), CommandError> {
    if json {
        output::print_json(view)
    } else {
        output::print(&report::instance(view))
    }
}

fn parse_id(text: &str) -> Result<InstanceId, String> {
    InstanceId::parse(text).ok_or_else(|| "an instance id is a UUID, as `instances list` shows it".to_owned())
}

fn parse_limit(text: &str) -> Result<PerMinute, String> {
    if text == "default" {
        return Ok(PerMinute(None));
    }
    let number = text.parse().ok();
    number
        .filter(|number| (1..=INSTANCE_PER_MINUTE_MAX).contains(number))
        .map(|number| PerMinute(Some(number)))
        .ok_or_else(|| format!("a number of pushes, 1 to {INSTANCE_PER_MINUTE_MAX}, or `default`"))
}

fn parse_reason(text: &str) -> Result<String, String> {
    let fits = (1..=SUSPENSION_REASON_CHARS).contains(&text.chars().count());
    (fits && !text.chars().any(char::is_control))
        .then(|| text.to_owned())
        .ok_or_else(|| format!("a line of 1 to {SUSPENSION_REASON_CHARS} characters"))
}

/// A time for people, or a dash.
pub(super) fn time_or_dash(at: Option<UnixMillis>) -> String {
    at.map_or_else(|| "-".to_owned(), UnixMillis::to_rfc3339)
}
