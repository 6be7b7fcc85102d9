//! A relay that drops, repeats, reorders, swaps and edits: only what the peer sealed, in its order, comes through.

use sovereign_relay_client::{
    protocol::signal::{
        frame::{Opaque, ServerFrame},
        id::{SessionId, Slot},
        seal::{OpenError, Sealer},
    },
    signal::{
        message::Message,
        session::{Event, Options, Rejection, Session},
    },
    trust::Trust,
};

use super::server::*;

fn note(sealer: &mut Sealer, number: u64) -> Opaque {
    let json = format!(r#"{{"kind":"note","negotiation":"","value":{number}}}"#);
    sealer.seal(&json).unwrap()
}

fn edited(sealed: &Opaque) -> Opaque {
    let text = sealed.expose();
    let (head, last) = text.split_at(text.len() - 1);
    Opaque::new(format!("{head}{}", if last == "A" { "B" } else { "A" }))
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn a_hostile_relay_can_drop_and_delay_and_nothing_else() {
    let server = Server::start().await;
    let options = Options::new(Trust::system().unwrap());
    let connecting = Session::connect(server.invitation(), &options);
    let (session, (mut peer, _)) = tokio::join!(connecting, server.welcome(welcome(Slot::A, 1, 0)));
    let mut session = session.unwrap();
    let sealer = |session, slot, r: u8| Sealer::new(&secret(), session, slot, [r; 16]);
    let mut truth = sealer(SESSION, Slot::B, 1);
    let [first, second, third, fourth, fifth] =
        std::array::from_fn(|number| note(&mut truth, number as u64 + 1));
    let reflected = note(&mut sealer(SESSION, Slot::A, 2), 9);
    let spliced = note(&mut sealer(SessionId::from_bytes([1; 16]), Slot::B, 4), 9);
    let mut reloaded = sealer(SESSION, Slot::B, 3);
    let anew = note(&mut reloaded, 6);
    let presented = [
        first.clone(),
        first,
        third.clone(),
        second,
        edited(&fourth),
        reflected,
        spliced,
        Opaque::new("e1.x"),
        Opaque::new(""),
        fifth,
        anew,
        third,
    ];
    for (index, content) in presented.into_iter().enumerate() {
        let (seq, generation) = (index as u64 + 1, 1);
        peer.say(&ServerFrame::Message {
            seq,
            generation,
            content,
        })
        .await;
    }
    let sealing = |error| Event::Rejected(Rejection::Sealing(error));
    let taken = |number: u64| {
        Event::Message(Message::Other {
            kind: "note".to_owned(),
            negotiation: String::new(),
            value: number.into(),
        })
    };
    for expected in [
        taken(1),
        sealing(OpenError::Replayed),
        Event::Missing(1),
        taken(3),
        sealing(OpenError::Replayed),
        sealing(OpenError::NotAuthentic),
        sealing(OpenError::NotAuthentic),
        sealing(OpenError::NotAuthentic),
        sealing(OpenError::Malformed),
        sealing(OpenError::Malformed),
        Event::Missing(1),
        taken(5),
        taken(6),
        sealing(OpenError::Retired),
    ] {
        assert_eq!(soon(session.next()).await, Some(expected));
    }
}
