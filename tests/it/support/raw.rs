//! HTTP/1.1 by hand, for requests that no client library sends: heads without their bodies, bodies without an end.

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{DEADLINE, answer::Answer};

/// Sends these bytes, then only listens. The answer must end the connection.
pub async fn exchange(url: &str, request: &str) -> Answer {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://"))
        .await
        .unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    timeout(DEADLINE, stream.read_to_end(&mut bytes))
        .await
        .expect("an answer that ends the connection")
        .unwrap();
    let mut line = request.split(' ');
    let (method, path) = (line.next().unwrap(), line.next().unwrap_or_default());
    parse(&String::from_utf8(bytes).unwrap()).documented(method, path)
}

fn parse(text: &str) -> Answer {
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no head in {text:?}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse().unwrap(), value.parse().unwrap())
    });
    Answer {
        status: status.parse().unwrap(),
        headers: headers.collect(),
        body: serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())),
    }
}
