//! Two peers in one program: they meet in a session of a relay and shake hands.
//!
//! ```sh
//! cargo run -p sovereign-relay-client --example signal -- http://127.0.0.1:4002
//! ```
#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::{env, error::Error};

use sovereign_relay_client::{
    http::{
        Relay,
        sessions::{SessionSettings, invitation},
    },
    protocol::{
        enroll::EnrollRequest,
        signal::{frame::Mood, id::Slot},
    },
    signal::{
        invitation::{Invitation, new_secret},
        message::Message,
        session::{Event, Options, Session},
    },
    trust::Trust,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&env::args().nth(1).ok_or("usage: signal <relay>")?).await
}

/// The whole of it, at the relay `base`.
pub(crate) async fn run(base: &str) -> Result<(), Box<dyn Error>> {
    let trust = Trust::system()?;
    let relay = Relay::new(base, &trust)?;
    let instance = relay.instance(relay.enroll(&EnrollRequest::default(), None).await?.instance_key);
    let session = instance.create_session(&SessionSettings::default()).await?;
    // The relay never sees the secret: the second invitation travels by another channel.
    let secret = new_secret();
    let ours = invitation(&session, Slot::A, &secret).ok_or("no ticket")?;
    let theirs = invitation(&session, Slot::B, &secret).ok_or("no ticket")?;
    let options = Options::new(trust);
    tokio::try_join!(offer(ours, &options), answer(theirs, &options))?;
    instance.delete_session(session.session_id).await?;
    Ok(())
}

async fn offer(invitation: Invitation, options: &Options) -> Result<(), Box<dyn Error>> {
    let mut session = Session::connect(invitation, options).await?;
    let offer = Message::Offer {
        negotiation: "first".to_owned(),
        sdp: "v=0\r\n".to_owned(),
    };
    session.send(&offer).await?.stored().await?;
    println!("a: the relay has the offer");
    while let Some(event) = session.next().await {
        if let Event::Message(Message::Answer { .. }) = event {
            println!("a: here is the answer");
            break;
        }
    }
    session.close(Mood::Direct).await;
    Ok(())
}

async fn answer(invitation: Invitation, options: &Options) -> Result<(), Box<dyn Error>> {
    let mut session = Session::connect(invitation, options).await?;
    while let Some(event) = session.next().await {
        if let Event::Message(Message::Offer { negotiation, .. }) = event {
            println!("b: here is the offer");
            let sdp = "v=0\r\n".to_owned();
            let answer = Message::Answer { negotiation, sdp };
            session.send(&answer).await?.stored().await?;
            break;
        }
    }
    session.close(Mood::Direct).await;
    Ok(())
}
