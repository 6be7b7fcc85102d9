//! The head of a request that asks for an upgrade, written again without asking.
//!
//! A server may ignore `Upgrade` and answer as usual (RFC 9110, 7.8). actix-http hands the connection over instead,
//! with no way to decline, so [`super::server`] begins HTTP anew with this head before the bytes behind it. The body is
//! framed as before.
//!
//! It is the last request of its connection: where it was pipelined behind another, actix-http may have lost what
//! followed it. CONNECT reads as an upgrade whatever its headers are, unless it has a body: it is given an empty one.

use actix_http::{
    HttpMessage as _, Method, Request, Version,
    header::{self, HeaderName},
};
use bytes::{BufMut as _, BytesMut};

/// The head as it goes over the wire.
pub(super) fn head(request: &Request) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(1024);
    line(&mut bytes, request);
    let is_connect = request.method() == Method::CONNECT;
    for (name, value) in request.headers() {
        match *name {
            header::UPGRADE | header::CONNECTION => {}
            header::CONTENT_LENGTH if is_connect => {}
            _ => put(&mut bytes, name, value.as_bytes()),
        }
    }
    bytes.put_slice(b"connection: close\r\n");
    if is_connect {
        bytes.put_slice(b"transfer-encoding: chunked\r\n\r\n0\r\n");
    }
    bytes.put_slice(b"\r\n");
    bytes
}

fn line(bytes: &mut BytesMut, request: &Request) {
    let version = match request.version() {
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let line = format!("{} {} {version}\r\n", request.method(), request.uri());
    bytes.put_slice(line.as_bytes());
}

fn put(bytes: &mut BytesMut, name: &HeaderName, value: &[u8]) {
    bytes.put_slice(name.as_str().as_bytes());
    bytes.put_slice(b": ");
    bytes.put_slice(value);
    bytes.put_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use actix_codec::Decoder as _;
    use actix_http::h1::{self, Message};
    use proptest::prelude::*;

    use super::*;

    fn parse(bytes: &mut BytesMut) -> Request {
        // The codec has a clock, which wants to run.
        actix_web::rt::System::new().block_on(async {
            match h1::Codec::default().decode(bytes).unwrap().unwrap() {
                Message::Item(request) => request,
                Message::Chunk(_) => panic!("a chunk"),
            }
        })
    }

    fn rewritten(text: &str) -> String {
        let head = head(&parse(&mut BytesMut::from(text)));
        String::from_utf8(head.to_vec()).unwrap()
    }

    #[test]
    fn the_upgrade_is_left_out_and_the_connection_ends() {
        let text = "POST /v1/push?a=%20b HTTP/1.1\r\nhost: relay\r\nconnection: keep-alive, Upgrade\r\n\
                    upgrade: websocket\r\ncontent-length: 5\r\n\r\nhello";
        let head = rewritten(text);
        let (line, headers) = head.strip_suffix("\r\n\r\n").unwrap().split_once("\r\n").unwrap();
        assert_eq!(line, "POST /v1/push?a=%20b HTTP/1.1");
        let mut headers: Vec<_> = headers.split("\r\n").collect();
        headers.sort_unstable();
        assert_eq!(headers, ["connection: close", "content-length: 5", "host: relay"]);
    }

    #[test]
    fn a_connect_gets_an_empty_body() {
        let text = "CONNECT relay:443 HTTP/1.1\r\nhost: relay\r\ncontent-length: 3\r\n\r\n";
        let mut again = BytesMut::from(rewritten(text).as_str());
        let request = parse(&mut again);
        assert_eq!(request.method(), Method::CONNECT);
        assert_eq!(again, "0\r\n\r\n");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_the_same_request(
            path in "/[a-z/%0-9]{0,20}(\\?[a-z=&]{0,10})?",
            headers in proptest::collection::vec(("x-[a-z]{1,8}", "[!-~]([ -~]{0,20}[!-~])?"), 0..10),
        ) {
            let mut text = format!("GET {path} HTTP/1.1\r\nhost: relay\r\nupgrade: websocket\r\n");
            for (name, value) in &headers {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            let request = parse(&mut BytesMut::from((text + "\r\n").as_str()));
            let again = parse(&mut head(&request));
            prop_assert_eq!(again.uri(), request.uri());
            prop_assert!(!again.headers().contains_key("upgrade"));
            for (name, _) in &headers {
                let values = |request: &Request| -> Vec<_> { request.headers().get_all(name).cloned().collect() };
                prop_assert_eq!(values(&again), values(&request));
            }
        }
    }
}
