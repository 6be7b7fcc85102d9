//! `user`: who may sign in to the reference server.

use clap::Subcommand;
use serde::Serialize;
use sovereign_relay_protocol::redacted::Redacted;

use super::{
    Context,
    accounts::{AccountError, Accounts},
    exit::CommandError,
    output, time,
};

/// `user`.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Add a user and print the token to sign in with. It is printed once and kept as a hash
    Add(Named),
    /// Print a new token; the one before opens nothing any more
    Token(Named),
    /// Remove a user with all their devices and browsers
    Remove(Named),
    /// List the users
    List,
}

/// One user.
#[derive(clap::Args, Debug)]
pub(crate) struct Named {
    /// Name of the user: a-z, 0-9, `-` and `_`
    name: String,
}

#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
    token: &'a str,
}

#[derive(Serialize)]
struct Removed<'a> {
    removed: &'a str,
}

/// Does it.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CommandError> {
    let store = context.store().await?;
    let accounts = Accounts::open(&store).await?;
    match command {
        Command::Add(Named { name }) => print_token(
            &name,
            &accounts.add(&name, context.clock.seconds()).await?,
            context,
        ),
        Command::Token(Named { name }) => print_token(&name, &accounts.renew(&name).await?, context),
        Command::Remove(Named { name }) => {
            accounts.remove(&name).await?;
            context.print(&Removed { removed: &name }, || format!("{name} is removed"))
        }
        Command::List => {
            let all = accounts.all().await?;
            context.print(&all, || {
                let rows: Vec<_> = all
                    .iter()
                    .map(|account| [account.name.clone(), time(account.created_at)])
                    .collect();
                output::table(["NAME", "ADDED"], &rows)
            })
        }
    }
}

/// The one place where a token is shown.
fn print_token(name: &str, token: &Redacted, context: &Context) -> Result<(), CommandError> {
    context.print(
        &Added {
            name,
            token: token.expose(),
        },
        || token.expose().to_owned(),
    )?;
    if !context.json {
        output::tell(&format!(
            "This is the token of {name}, shown this once: keep it like a password."
        ));
    }
    Ok(())
}

impl From<AccountError> for CommandError {
    fn from(error: AccountError) -> Self {
        Self::failed(error)
    }
}
