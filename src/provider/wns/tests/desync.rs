//! HTTP/1.1 connections on which answers and requests are out of step.

use tokio::net::TcpStream;

use super::*;

const SENT: &str = "HTTP/1.1 200 OK\r\nX-WNS-Status: received\r\ncontent-length: 0\r\n\r\n";
const EXPIRED: &str =
    "HTTP/1.1 410 Gone\r\nX-WNS-Error-Description: channel expired\r\ncontent-length: 0\r\n\r\n";

/// Answers each request on a connection with the next of `answers`, then closes it.
async fn serve(mut socket: TcpStream, answers: &[&str]) {
    for answer in answers {
        let mut request = Vec::new();
        while !request.ends_with(b"sealed") {
            request.push(socket.read_u8().await.unwrap());
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// Pushes to two devices at a server whose first connection answers the second with what belongs to another.
async fn second_outcome(on_the_first: &str, on_the_fresh_one: Option<&str>) -> Outcome {
    // Without a second answer it waits all that time.
    let patience = Duration::from_secs(if on_the_fresh_one.is_some() { 60 } else { 2 });
    let world = World::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = async move {
        let (socket, _) = listener.accept().await.unwrap();
        serve(socket, &[SENT, on_the_first]).await;
        let Some(answer) = on_the_fresh_one else {
            return;
        };
        let (socket, _) = listener.accept().await.unwrap();
        serve(socket, &[answer]).await;
    };
    let pushes = async {
        let to = |device: &str| format!("http://localhost:{port}/?token={device}");
        let first = world.push_to(&to("a"), 60).await;
        assert!(matches!(first, Outcome::Sent { .. }), "{first:?}");
        world.push_within(&to("b"), 60, patience).await
    };
    let both = async { tokio::join!(pushes, server) };
    let (outcome, ()) = tokio::time::timeout(Duration::from_secs(90), both)
        .await
        .expect("every connection expected is opened");
    outcome
}

#[tokio::test]
async fn an_answer_too_many_on_a_reused_connection_ends_no_device() {
    let outcome = second_outcome(EXPIRED, Some(SENT)).await;
    assert!(matches!(outcome, Outcome::Sent { .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_device_whose_end_a_fresh_connection_confirms_is_gone() {
    let outcome = second_outcome(EXPIRED, Some(EXPIRED)).await;
    assert!(
        matches!(
            outcome,
            Outcome::Gone {
                reason: Reason::ExpiredToken,
                ..
            }
        ),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_end_that_can_not_be_confirmed_is_not_told() {
    let outcome = second_outcome(EXPIRED, None).await;
    assert_eq!(outcome, Outcome::Unreachable);
}
