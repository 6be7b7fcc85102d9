//! A way to the relay on which one answer is lost.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Passes everything on, but for the first answer to requests that begin with `request`: then the connection is lost.
/// Ends with its last connection when dropped.
pub struct Lossy {
    pub url: String,
    asked: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Lossy {
    pub async fn start(relay: SocketAddr, request: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(pass_on(client, relay, request, Arc::clone(&counted)));
            }
        });
        Self {
            url,
            asked,
            _tasks: tasks,
        }
    }

    /// How often it was asked for.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn pass_on(mut client: TcpStream, relay: SocketAddr, request: &str, asked: Arc<AtomicUsize>) {
    let mut relay = TcpStream::connect(relay).await.unwrap();
    let (mut from_client, mut from_relay) = ([0; 4096], [0; 4096]);
    let mut is_lost = false;
    loop {
        tokio::select! {
            Ok(read) = client.read(&mut from_client) => {
                if from_client[..read].starts_with(request.as_bytes()) {
                    is_lost = asked.fetch_add(1, Ordering::SeqCst) == 0;
                }
                if read == 0 || relay.write_all(&from_client[..read]).await.is_err() {
                    return;
                }
            }
            Ok(read) = relay.read(&mut from_relay) => {
                if read == 0 || is_lost || client.write_all(&from_relay[..read]).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}
