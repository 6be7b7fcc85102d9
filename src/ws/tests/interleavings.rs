//! Ten thousand resumes, each among other things that happen at that moment.

use futures_util::{StreamExt as _, stream};
use sovereign_relay_protocol::signal::id::SessionId;

use super::{kit::*, *};

const SESSIONS: usize = 200;
/// A connection secret may be resumed sixty times a minute.
const RESUMES: u64 = 50;
const WAITING: u64 = 50;

/// Any number below `bound`.
fn below(kit: &Kit, bound: u8) -> u8 {
    let mut bytes = [0; 1];
    kit.endpoint.entropy.fill(&mut bytes);
    bytes[0] % bound
}

/// What the peer does while the other one resumes.
struct Restless<'a> {
    kit: &'a Kit,
    session: SessionId,
    peer: Peer,
    attempt: u64,
    said: u64,
}

impl Restless<'_> {
    async fn act(&mut self) {
        for _ in 0..below(self.kit, 8) {
            tokio::task::yield_now().await;
        }
        match below(self.kit, 4) {
            0 => self.peer.message(self.said + 1, "news").await,
            1 => self.peer.send(json!({"t": "ack", "seq": 0})).await,
            2 => {
                self.attempt += 1;
                let dial = resume(2, self.attempt, 0);
                let (peer, welcome) = self.kit.join(self.session, "b", dial).await;
                self.peer = peer;
                self.said = welcome["next"].as_u64().unwrap() - 1;
            }
            _ => {}
        }
    }

    /// Hears whether what it said was taken, or too fast. The answer to a message comes before that to a later ping.
    async fn settle(&mut self) {
        self.peer.send(json!({"t": "ping"})).await;
        loop {
            let frame = self.peer.next().await;
            match frame["t"].as_str().unwrap() {
                "ack" => self.said = frame["n"].as_u64().unwrap(),
                "pong" => return,
                _ => {}
            }
        }
    }
}

async fn resumes(kit: &Kit) -> u64 {
    let session = kit.session().await;
    let (mut old, _) = kit.join(session, "a", load(1)).await;
    let (mut peer, _) = kit.join(session, "b", load(2)).await;
    for n in 1..=WAITING {
        peer.message(n, "waits").await;
    }
    while peer.next_of("ack").await["n"] != WAITING {}
    let mut restless = Restless {
        kit,
        session,
        peer,
        attempt: 1,
        said: WAITING,
    };
    for attempt in 2..2 + RESUMES {
        let mut socket = kit.socket().await;
        // The connection before is there still, or was lost a moment ago.
        let kept = (below(kit, 2) == 0).then_some(old);
        let resuming = async {
            socket.hello(session, "a", resume(1, attempt, 0)).await;
            socket.next().await
        };
        let (first, ()) = tokio::join!(resuming, restless.act());
        assert_eq!(first["t"], "welcome", "before all else: {first}");
        assert_eq!(socket.next_of("msg").await["seq"], 1);
        restless.settle().await;
        drop(kept);
        old = socket;
    }
    RESUMES
}

#[actix_web::test]
async fn in_ten_thousand_resumes_with_fifty_messages_waiting_the_welcome_is_the_first_frame() {
    let kit = Kit::start().await;
    // Fewer at a time than an address may have before the door.
    let sessions = stream::iter(0..SESSIONS)
        .map(|_| resumes(&kit))
        .buffer_unordered(16);
    let welcomed: u64 = sessions.fold(0, async |sum, resumes| sum + resumes).await;
    assert_eq!(welcomed, 10_000);
}
