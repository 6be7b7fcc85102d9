//! A signaling session between this instance's side and a user's devices.
//!
//! ```text
//! invite: relay makes a session -> slot A's invitation is the caller's
//!                               -> slot B's goes to the user's devices, sealed, in a notification
//! ```
//!
//! The relay sees neither the secret that both invitations share nor what is said under it. All devices get the same
//! invitation: the one that joins first has the slot. The notification lives as long as the session.

use std::sync::Arc;

use serde_json::{Value, json};
use sovereign_relay_client::{
    http::sessions::{SessionSettings, invitation},
    protocol::{
        limits::SESSION_SECONDS_MAX,
        platform::Priority,
        signal::{
            id::{SessionId, Slot},
            session::SessionCreated,
        },
        time::UnixMillis,
    },
    signal::invitation::{Invitation, new_secret},
};
use thiserror::Error;
use tracing::warn;

use crate::{
    clock::Clock,
    fan_out::{FanOut, FanOutError, Report},
    notification::Notification,
    relay::{RelayCallError, RelayUnavailable, Relays},
    user::User,
};

/// `kind` of the notification's data, by which the app knows an invitation.
pub const KIND: &str = "signal";

/// Makes sessions and invites devices to them.
pub struct Signaling {
    relays: Arc<Relays>,
    fan_out: Arc<FanOut>,
    clock: Clock,
}

/// A session that devices were invited to.
#[derive(Debug)]
pub struct Invited {
    /// The caller's way in.
    pub invitation: Invitation,
    /// When it ends at the latest.
    pub expires_at: UnixMillis,
    /// Which devices were told. With none, nobody will come.
    pub report: Report,
}

/// Nobody was invited.
#[derive(Debug, Error)]
pub enum InviteError {
    /// The relay is off or made no session.
    #[error(transparent)]
    Relay(#[from] RelayCallError),
    /// The relay made a session of which this instance has only one side.
    #[error("the relay gave no ticket for each side")]
    Ticket,
    /// The invitation could not be sent.
    #[error(transparent)]
    FanOut(#[from] FanOutError),
}

impl Signaling {
    /// Sessions at the current relay of `relays`; invitations go by `fan_out`.
    pub fn new(relays: Arc<Relays>, fan_out: Arc<FanOut>) -> Self {
        Self {
            relays,
            fan_out,
            clock: Clock::system(),
        }
    }

    /// Makes a session and invites `user`'s devices, which show `title` and `body`.
    pub async fn invite(
        &self,
        user: &User,
        title: &str,
        body: &str,
        settings: &SessionSettings,
    ) -> Result<Invited, InviteError> {
        let relay = self.relays.current().ok_or(RelayUnavailable::Off);
        let relay = relay.map_err(RelayCallError::from)?;
        let session = self
            .relays
            .call(&relay, |instance| async move {
                instance.create_session(settings).await
            })
            .await?;
        let invited = self.hand_over(user, title, body, &session).await;
        if invited.is_err() {
            self.end(&relay, session.session_id).await;
        }
        invited
    }

    async fn hand_over(
        &self,
        user: &User,
        title: &str,
        body: &str,
        session: &SessionCreated,
    ) -> Result<Invited, InviteError> {
        let secret = new_secret();
        let ours = invitation(session, Slot::A, &secret).ok_or(InviteError::Ticket)?;
        let theirs = invitation(session, Slot::B, &secret).ok_or(InviteError::Ticket)?;
        let left = session.expires_at.seconds().saturating_sub(self.clock.seconds());
        let notification = Notification {
            data: Some(data(&theirs)),
            priority: Priority::High,
            ttl_seconds: u32::try_from(left).unwrap_or(u32::MAX).min(SESSION_SECONDS_MAX),
            ..Notification::new(title, body)
        };
        Ok(Invited {
            report: self.fan_out.send(user, &notification).await?,
            invitation: ours,
            expires_at: session.expires_at,
        })
    }

    /// Nobody knows the way in: it need not wait for its end.
    async fn end(&self, relay: &str, session: SessionId) {
        let ended = self
            .relays
            .call(
                relay,
                |instance| async move { instance.delete_session(session).await },
            )
            .await;
        if let Err(error) = ended {
            warn!(%error, "a session that nobody was invited to is left to its end");
        }
    }
}

/// What the app finds in the notification.
fn data(invitation: &Invitation) -> Value {
    let invitation: Value = serde_json::from_str(&invitation.to_json()).unwrap_or_default();
    json!({ "kind": KIND, "invitation": invitation })
}
