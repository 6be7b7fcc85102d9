//! From an instance's call to two peers that talk.

use std::sync::Arc;

use sovereign_instance::{
    config::{Limits, RelayChoice},
    relay::{RelayCallError, RelayUnavailable},
    signal::{InviteError, KIND, Signaling},
};
use sovereign_relay_client::{
    http::sessions::SessionSettings,
    protocol::{platform::Platform, signal::frame::Mood},
    signal::{
        invitation::Invitation,
        message::Message,
        session::{Event, Options, Session},
    },
    trust::Trust,
};

use crate::kit::{DEADLINE, Instance, World, user};

fn signaling(instance: &Instance) -> Signaling {
    Signaling::new(Arc::clone(&instance.relays), Arc::clone(&instance.fan_out))
}

#[tokio::test]
async fn a_device_that_is_invited_by_a_notification_talks_to_the_caller() {
    let world = World::start().await;
    let device = world.device(Platform::Ios).await;
    let settings = SessionSettings::default();
    let invited = signaling(&world.instance)
        .invite(&user(), "Call", "Ada calls", &settings)
        .await
        .unwrap();
    assert_eq!(invited.report.sent, 1);
    let opened = world.opened_by(&device);
    assert_eq!(opened["data"]["kind"], KIND);
    let theirs = Invitation::parse(&opened["data"]["invitation"].to_string()).unwrap();
    assert_eq!(theirs.session_id, invited.invitation.session_id);
    let options = Options::new(Trust::system().unwrap());
    let talk = async {
        let (mut ours, mut theirs) = tokio::try_join!(
            Session::connect(invited.invitation, &options),
            Session::connect(theirs, &options),
        )
        .unwrap();
        let offer = Message::Offer {
            negotiation: "first".to_owned(),
            sdp: "v=0\r\n".to_owned(),
        };
        let _ = ours.send(&offer).await.unwrap();
        let heard = next_message(&mut theirs).await;
        assert_eq!(heard, offer);
        let answer = Message::Answer {
            negotiation: "first".to_owned(),
            sdp: "v=0\r\n".to_owned(),
        };
        let _ = theirs.send(&answer).await.unwrap();
        assert_eq!(next_message(&mut ours).await, answer);
        ours.close(Mood::Direct).await;
        theirs.close(Mood::Direct).await;
    };
    tokio::time::timeout(DEADLINE, talk).await.unwrap();
}

#[tokio::test]
async fn with_the_relay_off_there_are_no_sessions() {
    let world = World::start().await;
    let clock = world.ahead.clock();
    let off = Instance::open(&world.database(), RelayChoice::Off, &clock, Limits::default()).await;
    let settings = SessionSettings::default();
    let refused = signaling(&off).invite(&user(), "Call", "", &settings).await;
    let refused = refused.unwrap_err();
    assert!(matches!(
        refused,
        InviteError::Relay(RelayCallError::Unavailable(RelayUnavailable::Off))
    ));
}

async fn next_message(session: &mut Session) -> Message {
    loop {
        if let Event::Message(message) = session.next().await.expect("the session lives") {
            return message;
        }
    }
}
