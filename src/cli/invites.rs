//! `invite`: single-use words that let an instance enroll where `RELAY_ENROLLMENT=invite`.

use std::time::Duration;

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use sovereign_relay_protocol::time::UnixMillis;

use super::{AdminFlags, admin_api::AdminApi, exit::CommandError, output};
use crate::{auth::InviteView, config::duration_flag, defaults::INVITE_MAX};

/// `invite`.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Make an invite and print it; it is shown this once
    Create(Create),
    /// Invites that can still be used
    List(List),
}

/// `invite create`.
#[derive(clap::Args, Debug)]
pub(crate) struct Create {
    /// How long it can be used: 30m, 24h, 7d
    #[arg(long, default_value = "7d", value_parser = duration_flag(INVITE_MAX))]
    ttl: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminFlags,
}

/// `invite list`.
#[derive(clap::Args, Debug)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminFlags,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    ttl_seconds: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    invite: String,
    expires_at: UnixMillis,
    /// Absent: a relay of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enrollment: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    invites: Vec<InviteView>,
}

/// Does it.
pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Create(args) => create(args).await,
        Command::List(args) => list(args).await,
    }
}

async fn create(args: Create) -> Result<(), CommandError> {
    let api = AdminApi::find(&args.admin.flags)?;
    let created: Created = api
        .post(
            "/invites",
            &Wanted {
                ttl_seconds: args.ttl.as_secs(),
            },
        )
        .await?;
    if let Some(mode @ ("open" | "closed")) = created.enrollment.as_deref() {
        output::tell(&format!(
            "this relay's RELAY_ENROLLMENT is {mode}: nobody needs an invite until it is `invite`"
        ));
    }
    if args.json {
        return output::print_json(&created);
    }
    output::tell(&format!(
        "usable once, until {}:",
        created.expires_at.to_rfc3339()
    ));
    output::print(&created.invite)
}

async fn list(args: List) -> Result<(), CommandError> {
    let api = AdminApi::find(&args.admin.flags)?;
    let listed: Listed = api.get("/invites").await?;
    if args.json {
        return output::print_json(&listed);
    }
    let row = |invite: &InviteView| {
        vec![
            invite.id.clone(),
            invite.created_at.to_rfc3339(),
            invite.expires_at.to_rfc3339(),
        ]
    };
    let rows: Vec<_> = listed.invites.iter().map(row).collect();
    output::print(&output::table(&["ID", "MADE", "EXPIRES"], &rows))
}
