//! What the tests over real sockets (`src/ws/tests/`) can't see from outside.

use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
};

use super::*;

/// Our end and the client's.
async fn pair() -> (Socket, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, client) = tokio::join!(listener.accept(), TcpStream::connect(address));
    let rest_of_the_handshake = BytesMut::with_capacity(8192);
    let socket = Socket::new(accepted.unwrap().0, rest_of_the_handshake, 1024);
    (socket, client.unwrap())
}

fn room(socket: &Socket) -> [usize; 2] {
    [socket.input.capacity(), socket.output.capacity()]
}

#[tokio::test]
async fn buffers_are_there_only_while_there_is_something_in_them() {
    let (mut socket, mut client) = pair().await;
    assert_eq!(room(&socket), [0; 2], "after the handshake");
    client.write_all(b"\x81\x82\0\0\0\0hi").await.unwrap();
    socket.readable().await.unwrap();
    assert_eq!(socket.fill().unwrap(), 8);
    assert_eq!(socket.next(), Ok(Some(Input::Text(Bytes::from_static(b"hi")))));
    assert_eq!(socket.next(), Ok(None));
    socket.queue(Message::Text("ho".into()));
    assert_eq!(socket.write().unwrap(), Wrote::Some);
    assert_eq!(room(&socket), [0; 2], "after a message each way");
}

#[tokio::test]
async fn the_system_holds_little_for_a_client_that_does_not_read() {
    let (socket, _client) = pair().await;
    let options = SockRef::from(&socket.io);
    for bytes in [
        options.send_buffer_size().unwrap(),
        options.recv_buffer_size().unwrap(),
    ] {
        assert!((1..=2 * SYSTEM_BUFFER).contains(&bytes), "{bytes}");
    }
}

#[tokio::test]
async fn however_many_pings_come_one_pong_waits_and_the_latest_is_answered_after_it() {
    let (mut socket, _client) = pair().await;
    socket.queue(Message::Text("before".into()));
    let before = socket.waiting();
    for number in 0..1000_u16 {
        socket.answer(&number.to_be_bytes());
    }
    assert_eq!(socket.waiting(), before + 4);
    // All but the end of the pong.
    socket.wrote(before + 3);
    assert_eq!(socket.waiting(), 1);
    socket.wrote(1);
    assert_eq!(&*socket.output, [0x8a, 2, 0x03, 0xe7]);
    socket.wrote(4);
    assert_eq!(socket.waiting(), 0);
    socket.answer(b"");
    assert_eq!(&*socket.output, [0x8a, 0]);
}

#[tokio::test]
async fn what_is_taken_back_begins_at_a_frame_whatever_their_lengths() {
    let (mut socket, _client) = pair().await;
    let lengths = [0, 1, 125, 126, 65_535, 65_536];
    let frames = lengths.map(|length: usize| {
        let header = [2, 4, 10][usize::from(length > 125) + usize::from(length > 65_535)];
        header + length
    });
    let mut ends = Vec::new();
    for frame in frames {
        ends.push(ends.last().unwrap_or(&0) + frame);
    }
    let cuts = ends.iter().flat_map(|end| [end - 1, *end, end + 1]);
    for written in cuts.filter(|written| written <= ends.last().unwrap()) {
        for length in lengths {
            socket.queue(Message::Text("x".repeat(length).into()));
        }
        // Byte by byte through the headers, then at once.
        for _ in 0..written.min(20) {
            socket.wrote(1);
        }
        socket.wrote(written - written.min(20));
        socket.cut();
        let end = ends.iter().find(|end| **end >= written).unwrap();
        assert_eq!(socket.waiting(), end - written, "{written}");
        socket.wrote(socket.waiting());
    }
}
