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

fn room(socket: &Socket) -> [usize; 3] {
    [
        socket.input.capacity(),
        socket.output.capacity(),
        socket.ends.capacity(),
    ]
}

#[tokio::test]
async fn buffers_are_there_only_while_there_is_something_in_them() {
    let (mut socket, mut client) = pair().await;
    assert_eq!(room(&socket), [0; 3], "after the handshake");
    client.write_all(b"\x81\x82\0\0\0\0hi").await.unwrap();
    socket.readable().await.unwrap();
    assert_eq!(socket.fill().unwrap(), 8);
    assert_eq!(socket.next(), Ok(Some(Input::Text(Bytes::from_static(b"hi")))));
    assert_eq!(socket.next(), Ok(None));
    socket.queue(Message::Text("ho".into()));
    assert_eq!(socket.write().unwrap(), Wrote::Some);
    assert_eq!(room(&socket), [0; 3], "after a message each way");
}
