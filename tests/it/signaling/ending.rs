//! After the answer to DELETE or to a revocation no message is delivered, however many are on their way. That the answer
//! waits for each connection to fall silent is proved where it can be held up, in the session actor's tests.

use std::sync::Arc;

use reqwest::Method;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use crate::support::{
    DEADLINE,
    cutter::below,
    peer::load,
    relay::{Relay, RelayOptions},
    sessions::Made,
};

/// As many as one slot may say at once.
const BURST: u64 = 60;
const MESSAGE: &[u8] = br#"{"t":"msg""#;

/// What has arrived, byte by byte: nothing is hidden in a library's buffer.
#[derive(Default)]
struct Arrived(Vec<u8>);

impl Arrived {
    /// Takes what is there now; whether it was the end.
    fn take(&mut self, stream: &TcpStream) -> bool {
        let mut chunk = [0; 4096];
        loop {
            match stream.try_read(&mut chunk) {
                Ok(0) => return true,
                Ok(read) => self.0.extend_from_slice(&chunk[..read]),
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }

    async fn take_until(&mut self, stream: &TcpStream, enough: impl Fn(&[u8]) -> bool) {
        let taking = async {
            while !self.take(stream) && !enough(&self.0) {
                stream.readable().await.unwrap();
            }
        };
        timeout(DEADLINE, taking).await.expect("enough arrives");
    }
}

fn messages(bytes: &[u8]) -> usize {
    bytes
        .windows(MESSAGE.len())
        .filter(|window| *window == MESSAGE)
        .count()
}

/// Whether there is a close frame (RFC 6455, 5.5.1) with this code.
fn is_closed(bytes: &[u8], code: u16) -> bool {
    let [high, low] = code.to_be_bytes();
    bytes
        .windows(4)
        .any(|window| window[0] == 0x88 && window[2..] == [high, low])
}

/// Ends a session while a burst is on its way, at any moment of it.
async fn end_in_a_burst(session: &Made, code: u16, end: impl AsyncFnOnce()) {
    let (b, _) = session.join("b", load(2)).await;
    let (mut a, _) = session.join("a", load(1)).await;
    let stream = b.socket.get_ref();
    a.messages(1..=BURST).await;
    let mut arrived = Arrived::default();
    let some = below(BURST as usize);
    arrived.take_until(stream, |bytes| messages(bytes) >= some).await;
    end().await;
    // Whatever was written before the answer is here when the answer is.
    arrived.take(stream);
    let before = arrived.0.len();
    arrived.take_until(stream, |bytes| is_closed(bytes, code)).await;
    assert!(is_closed(&arrived.0, code));
    assert_eq!(messages(&arrived.0[before..]), 0, "after {some} messages");
    assert_eq!(a.end().await, code);
}

/// All at once, so that connections wait for their turn when the answer goes out.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_delivered_after_a_delete_was_acknowledged() {
    let relay = Arc::new(Relay::start(RelayOptions::new()).await);
    let instance = relay.enroll().await;
    let mut bursts = JoinSet::new();
    for _ in 0..60 {
        let (relay, instance) = (relay.clone(), instance.clone());
        bursts.spawn(async move {
            let session = relay.open_session(&instance).await;
            end_in_a_burst(&session, 4410, async || {
                assert_eq!(relay.delete_session(&instance, &session).await.status, 204);
            })
            .await;
            assert_eq!(relay.look_at(&instance, &session).await.status, 404);
            assert_eq!(session.refusal("b", load(3)).await, 4404);
        });
    }
    bursts.join_all().await;
}

#[tokio::test]
async fn nothing_is_delivered_to_an_instance_after_its_revocation_was_acknowledged() {
    let relay = Relay::start(RelayOptions::new()).await;
    for nth in 0..10 {
        let instance = relay.enroll_from(&format!("203.0.113.{nth}")).await;
        let session = relay.open_session(&instance).await;
        end_in_a_burst(&session, 4403, async || {
            let path = format!("/admin/v1/instances/{}/revoke", instance.id);
            let answer = relay.admin(Method::POST, &path, None).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        })
        .await;
        assert_eq!(session.refusal("b", load(3)).await, 4403);
    }
}
