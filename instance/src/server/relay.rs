//! `relay`: which relay new registrations get, and how this instance stands with it.
//!
//! `set`, `off` and `default` write a setting of the database, which is stronger than SOVEREIGN_RELAY_URL. A server that
//! runs takes it over within seconds ([`super::serve`]).

use clap::Subcommand;
use serde::Serialize;
use sovereign_relay_client::http::error::CallError;
use sovereign_relay_protocol::{error::ErrorCode, redacted::Redacted, signal::id::SessionId};

use super::{
    Context,
    exit::CommandError,
    output,
    parts::{CHOICE_SETTING, Parts},
    settings::RelaySettings,
    time,
};
use crate::{
    config::RelayChoice,
    relay::{RelayCallError, RelayStatus, RelayUnavailable, RotateError},
};

/// `relay`.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Say which relay is used, and how this instance stands with each that it has used
    Status(RelaySettings),
    /// Use another relay from now on. Devices stay with the one they registered with until they register again
    Set {
        /// Address of the relay
        url: RelayChoice,
    },
    /// Use no relay: native devices are neither registered nor told, and there are no signaling sessions
    Off,
    /// Take the word of `set` or `off` back: SOVEREIGN_RELAY_URL holds, or else the relay of the project
    Default,
    /// Get a new key from the relay; the one before works for a day more
    Rotate(One),
    /// Enroll again after the relay has revoked this instance, or without waiting any longer
    Resume(One),
}

/// One relay.
#[derive(clap::Args, Debug)]
pub(crate) struct One {
    /// Address of the relay; without it, the one that is used now
    url: Option<RelayChoice>,
    #[command(flatten)]
    settings: RelaySettings,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    /// `None`: off.
    current: Option<String>,
    relays: Vec<View>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    url: String,
    state: &'static str,
    instance_id: Option<String>,
    enrolled_at: Option<u64>,
    next_attempt_at: Option<u64>,
    note: String,
}

#[derive(Serialize)]
struct Chosen {
    relay: String,
}

/// Does it.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CommandError> {
    match command {
        Command::Status(settings) => status(&settings, context).await,
        Command::Set { url } => choose(Some(url), context).await,
        Command::Off => choose(Some(RelayChoice::Off), context).await,
        Command::Default => choose(None, context).await,
        Command::Rotate(one) => {
            let (parts, url) = one.open(context).await?;
            parts.relays.rotate(&url).await.inspect_err(|error| {
                if may_be_lost(error) {
                    output::tell("The relay may have changed the key already: rotate again within a day.");
                }
            })?;
            context.print(&Chosen { relay: url.clone() }, || format!("{url} gave a new key"))
        }
        Command::Resume(one) => {
            let (parts, url) = one.open(context).await?;
            parts.relays.resume(&url).await?;
            ask(&parts, &url).await?;
            context.print(&Chosen { relay: url.clone() }, || {
                format!("{url} is in use again")
            })
        }
    }
}

impl One {
    async fn open(self, context: &Context) -> Result<(Parts, String), CommandError> {
        let parts = Parts::open(&context.store, &self.settings).await?;
        let url = match &self.url {
            Some(named) => named.url().map(str::to_owned),
            None => parts.relays.current(),
        };
        let url = url.ok_or_else(|| CommandError::failed("the relay is turned off"))?;
        Ok((parts, url))
    }
}

/// Whether the relay may have given a key that did not arrive.
fn may_be_lost(error: &RotateError) -> bool {
    match error {
        RotateError::Call(RelayCallError::Call(error)) => match error {
            CallError::NoAnswer(_) | CallError::Unreadable(_) => true,
            CallError::NotSent(_) | CallError::Refused(_) => false,
        },
        RotateError::Call(RelayCallError::Unavailable(_)) => false,
        RotateError::Store(_) | RotateError::Outrun => true,
    }
}

/// Asks for a session that nobody has made: an answer of "there is none" is one to a key that works.
async fn ask(parts: &Parts, url: &str) -> Result<(), CommandError> {
    let nobodys = SessionId::from_bytes([0; 16]);
    let asked = parts
        .relays
        .call(url, |instance| async move { instance.session(nobodys).await })
        .await;
    match asked {
        Ok(_) => Ok(()),
        Err(RelayCallError::Call(CallError::Refused(refusal)))
            if refusal.code == Some(ErrorCode::NotFound) =>
        {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

async fn status(settings: &RelaySettings, context: &Context) -> Result<(), CommandError> {
    let parts = Parts::open(&context.store, settings).await?;
    let relays = parts.relays.status().await?.into_iter().map(View::from).collect();
    let status = Status {
        current: parts.relays.current(),
        relays,
    };
    context.print(&status, || {
        let rows: Vec<_> = status.relays.iter().map(View::row).collect();
        let table = output::table(["RELAY", "STATE", "INSTANCE", "SINCE", "NOTE"], &rows);
        format!(
            "in use: {}\n\n{table}",
            status.current.as_deref().unwrap_or("off")
        )
    })
}

async fn choose(choice: Option<RelayChoice>, context: &Context) -> Result<(), CommandError> {
    let store = context.store().await?;
    let Some(choice) = choice else {
        store.remove_setting(CHOICE_SETTING).await?;
        let words = "as SOVEREIGN_RELAY_URL says".to_owned();
        return context.print(
            &Chosen {
                relay: "default".to_owned(),
            },
            || words,
        );
    };
    let text = choice.to_string();
    store
        .put_setting(CHOICE_SETTING, &Redacted::new(text.clone()))
        .await?;
    context.print(&Chosen { relay: text.clone() }, || text)
}

impl From<RelayStatus> for View {
    fn from(status: RelayStatus) -> Self {
        Self {
            url: status.relay_url,
            state: status.state.as_str(),
            instance_id: status.instance_id,
            enrolled_at: status.enrolled_at,
            next_attempt_at: Some(status.next_attempt_at).filter(|at| *at > 0),
            note: status.note,
        }
    }
}

impl View {
    fn row(&self) -> [String; 5] {
        [
            self.url.clone(),
            self.state.to_owned(),
            self.instance_id.clone().unwrap_or_else(|| "-".to_owned()),
            self.enrolled_at.map_or_else(|| "-".to_owned(), time),
            self.note.clone(),
        ]
    }
}

impl From<RelayUnavailable> for CommandError {
    fn from(error: RelayUnavailable) -> Self {
        match error {
            RelayUnavailable::Revoked => Self::refused(error),
            RelayUnavailable::BackingOff { .. } => Self::unreachable(format!(
                "{error}: `sovereign-instance relay status` says why, `relay resume` tries at once"
            )),
            RelayUnavailable::Off | RelayUnavailable::Address(_) | RelayUnavailable::Store(_) => {
                Self::failed(error)
            }
        }
    }
}

impl From<RelayCallError> for CommandError {
    fn from(error: RelayCallError) -> Self {
        match error {
            RelayCallError::Unavailable(error) => error.into(),
            RelayCallError::Call(CallError::Refused(refusal)) => Self::refused(refusal),
            RelayCallError::Call(error) => Self::unreachable(error),
        }
    }
}

impl From<RotateError> for CommandError {
    fn from(error: RotateError) -> Self {
        match error {
            RotateError::Call(error) => error.into(),
            RotateError::Store(error) => error.into(),
            RotateError::Outrun => Self::failed(error),
        }
    }
}
