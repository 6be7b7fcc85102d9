//! What a client reads of a connection that ends in the middle of a frame.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use super::*;
use crate::ws::{
    door::{Door, DoorBounds},
    socket::Wrote,
};

const OVER: End = End::Close(CloseCode::SessionOver);
const LENGTH: u16 = 30_000;
const MANY: usize = 100;
/// A client's close frame without a code, masked with zeros (RFC 6455, 5.2).
const CLIENTS_CLOSE: [u8; 6] = [0x88, 0x80, 0, 0, 0, 0];

/// With nobody else about to leave.
fn leave() -> Stay {
    Door::new(DoorBounds::default(), 100).leave(0)
}

/// A socket whose client has not read for so long that a frame is written in part. Another waits behind it.
async fn stalled() -> (Socket, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, client) = tokio::join!(listener.accept(), TcpStream::connect(address));
    let mut socket = Socket::new(accepted.unwrap().0, Default::default(), 1024);
    socket.writable().await.unwrap();
    // More than the system holds, at once: what it takes then ends anywhere.
    for _ in 0..MANY {
        socket.queue(message('m'));
    }
    while socket.write().unwrap() == Wrote::Some {}
    socket.cut();
    assert!(socket.waiting() > 0, "a frame is begun");
    socket.queue(message('y'));
    (socket, client.unwrap())
}

fn message(content: char) -> Message {
    Message::Text(content.to_string().repeat(LENGTH.into()).into())
}

/// The frames in what was read, and what is left of one that was cut off: first byte and payload of each.
fn frames(mut bytes: &[u8]) -> (Vec<(u8, &[u8])>, &[u8]) {
    let mut frames = Vec::new();
    loop {
        let (first, header, length) = match bytes {
            [first, 126, high, low, ..] => (*first, 4, usize::from(u16::from_be_bytes([*high, *low]))),
            [first, length, ..] if *length < 126 => (*first, 2, usize::from(*length)),
            rest => return (frames, rest),
        };
        let Some(payload) = bytes.get(header..header + length) else {
            return (frames, bytes);
        };
        frames.push((first, payload));
        bytes = &bytes[header + length..];
    }
}

#[tokio::test]
async fn the_frame_that_is_begun_is_finished_before_the_silence_and_only_the_end_follows() {
    let (mut socket, mut client) = stalled().await;
    client.write_all(&CLIENTS_CLOSE).await.unwrap();
    let (mut reading, _writing) = client.into_split();
    let read = tokio::spawn(async move {
        let mut bytes = Vec::new();
        reading.read_to_end(&mut bytes).await.unwrap();
        bytes
    });
    assert_eq!(finish(&mut socket, OVER).await, OVER);
    assert_eq!(socket.waiting(), 0, "nothing of a message is left to be written");
    close(&mut socket, OVER, leave).await;
    drop(socket);

    let bytes = read.await.unwrap();
    let (frames, rest) = frames(&bytes);
    assert_eq!(rest, [0; 0]);
    let ((last, code), messages) = frames.split_last().unwrap();
    assert_eq!((*last, &code[..2]), (0x88, &4410_u16.to_be_bytes()[..]));
    assert!(!messages.is_empty());
    for (first, payload) in messages {
        assert_eq!((*first, payload.len()), (0x81, usize::from(LENGTH)));
        assert!(
            payload.iter().all(|byte| *byte == b'm'),
            "the one behind was taken back"
        );
    }
}

#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "the paused clock")]
async fn a_client_that_does_not_take_the_rest_of_a_frame_gets_nothing_more() {
    let (mut socket, mut client) = stalled().await;
    let began = Instant::now();
    let end = finish(&mut socket, OVER).await;
    let untold = End::Untold(CloseCode::SessionOver);
    assert_eq!((end, began.elapsed().as_secs()), (untold, FINISHING.as_secs()));
    assert_eq!(end.reason(), OVER.reason(), "counted as what it is");
    close(&mut socket, end, leave).await;
    drop(socket);

    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).await.unwrap();
    let (frames, rest) = frames(&bytes);
    assert!(frames.iter().all(|(first, _)| *first == 0x81), "no close frame");
    assert!(
        (1..usize::from(LENGTH) + 4).contains(&rest.len()),
        "cut off in the middle"
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_client_that_is_gone() {
    let (mut socket, client) = stalled().await;
    assert_eq!(finish(&mut socket, End::Lost).await, End::Lost);
    drop(client);
    let untold = End::Untold(CloseCode::SessionOver);
    assert_eq!(finish(&mut socket, OVER).await, untold);
    assert_eq!(finish(&mut socket, End::ByClient).await, End::Lost);
}
