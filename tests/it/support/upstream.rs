//! What Caddy takes for a relay: healthy, remembers each request's head, and answers or breaks off.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}";

/// What becomes of a request that has come whole.
#[derive(Clone, Copy)]
pub enum Fate {
    Answered,
    BrokenOff,
}

/// Ends with its owner.
pub struct Upstream {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Upstream {
    pub async fn start(fate: Fate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (heads, mut tasks) = (Arc::<Mutex<Vec<String>>>::default(), JoinSet::new());
        let seen = Arc::clone(&heads);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, fate, Arc::clone(&seen)));
            }
        });
        Self {
            address,
            heads,
            _tasks: tasks,
        }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// The heads of all requests but those for its health.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, fate: Fate, heads: Arc<Mutex<Vec<String>>>) {
    while let Some(head) = request(&mut stream).await {
        let is_health = head.starts_with("GET /readyz ");
        if !is_health {
            heads.lock().unwrap().push(head);
        }
        let answers = is_health || matches!(fate, Fate::Answered);
        if !answers || stream.write_all(OK).await.is_err() {
            return;
        }
    }
}

/// Reads a request to the end of its body; its head.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if body.len() >= length(head) {
            return Some(head.to_owned());
        }
    }
}

fn length(head: &str) -> usize {
    let head = head.to_ascii_lowercase();
    let value = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    value.map_or(0, |value| value.parse().unwrap())
}
