//! Peers that talk, with planted values in all that they say and in all that lets them in.

use serde_json::{Value, json};

use super::{MARK, planted::Planted};
use crate::support::{
    answer::{Answer, Instance},
    peer::{Peer, hello, load, resume},
    sessions::Made,
    world::World,
};

/// A number whose 32 hexadecimal digits are found nowhere by chance.
const CONNECTION: u64 = 0xfeed_face_cafe_beef;

/// What lets peers in; planted while they talk, rightly and wrongly.
pub async fn talk(world: &World, instance: &Instance, planted: &mut Planted) {
    let rendezvous = format!("{MARK}{}", "R".repeat(30));
    let settings = json!({ "rendezvous": rendezvous, "e2e": "optional", "turn": true, MARK: MARK });
    let met = Answer::from(world.relay.session_request(instance, &settings)).await;
    let met = Made::read(&met);
    let session = world.relay.open_session(instance).await;
    for ticket in [&met.a, &session.a, &session.b] {
        planted.add("a ticket", ticket);
        // A part of it would help to guess the rest.
        planted.add("the end of a ticket", &ticket[ticket.len() - 24..]);
    }
    planted.add("a connection secret", &format!("{CONNECTION:032x}"));
    converse(&session).await;
    misbehave(&met).await;
    let deleted = world.relay.delete_session(instance, &session).await;
    assert_eq!(deleted.status, 204);
    let _ = session.refusal("a", load(1)).await;
}

async fn converse(session: &Made) {
    let (mut a, _) = session.join("a", load(CONNECTION)).await;
    let (mut b, _) = session.join("b", load(2)).await;
    for n in 1..=70 {
        a.message(n, MARK).await;
    }
    assert_eq!(b.next_of("msg").await["d"], MARK);
    assert_eq!(a.next_of("err").await["code"], "rate_limited");
    for frame in [
        json!({ "t": "ack", "seq": 1, MARK: MARK }),
        json!({ "t": "ice" }),
        json!({ "t": MARK }),
        json!({ "t": "bye", "mood": MARK }),
    ] {
        b.send(frame).await;
    }
    assert_eq!(b.end().await, 1000);
    let (mut a, _) = session.join("a", resume(CONNECTION, 2, 0)).await;
    a.send_text(&format!(r#"{{"t":"msg","n":"{MARK}","d":["{MARK}"#))
        .await;
    assert_eq!(a.end().await, 4400);
}

/// Every wrong way in, and bytes that are no frames.
async fn misbehave(session: &Made) {
    let with = |change: Value| {
        let mut hello = hello(&session.a, load(CONNECTION));
        let fields = hello.as_object_mut().unwrap();
        fields.extend(change.as_object().unwrap().clone());
        hello.to_string()
    };
    for first in [
        with(json!({ "ticket": format!("{}{MARK}", session.a) })),
        with(json!({ "ticket": MARK })),
        with(json!({ "cid": MARK })),
        with(json!({ "v": 2 })),
        with(json!({ "last": 999 })),
        with(json!({ "try": MARK })),
        json!({ "t": "msg", "n": 1, "d": MARK }).to_string(),
        MARK.repeat(1000),
        MARK.to_owned(),
    ] {
        let mut peer = Peer::connect(&session.url).await;
        peer.send_text(&first).await;
        assert!(peer.end().await > 1000);
    }
    // Binary, unmasked, and a close frame with a reason of its own.
    let (binary, unmasked, closing) = (0x82, 0x01, 0x88);
    for start in [[binary, 0x80], [unmasked, 0], [closing, 0x80]] {
        let masked = [0; 4];
        let mask = &masked[..if start[1] == 0 { 0 } else { 4 }];
        let reason = [&1000_u16.to_be_bytes(), MARK.as_bytes()].concat();
        let length = u8::try_from(reason.len()).unwrap();
        let mut peer = Peer::connect(&session.url).await;
        let bytes = [&[start[0], start[1] | length][..], mask, &reason].concat();
        peer.send_bytes(&bytes).await;
        peer.end().await;
    }
}
