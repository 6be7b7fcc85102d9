//! What stands before the replicas: it gives each connection to the next one that takes it, and dies with neither side.
//!
//! It forwards bytes and knows nothing else. A replica that was killed refuses connections, so the next one gets them.
//! Its connections come from many addresses of this machine, as those of many clients do.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
};

/// Loopback addresses that connections come from in turn: each has its own limits at a relay.
const ADDRESSES: u16 = 100;

/// Ends with its owner, and its connections with it.
pub(super) struct Front {
    address: SocketAddr,
    replicas: Arc<Replicas>,
    _accepting: JoinSet<()>,
}

#[derive(Default)]
struct Replicas {
    places: Mutex<Vec<SocketAddr>>,
    turn: AtomicU16,
}

impl Front {
    /// Nothing is behind it yet.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, replicas) = (listener.local_addr()?, Arc::<Replicas>::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&replicas)));
        Ok(Self {
            address,
            replicas,
            _accepting: accepting,
        })
    }

    /// Where clients dial.
    pub(super) fn url(&self) -> String {
        format!("ws://{}/v1/signal", self.address)
    }

    /// Where the replicas are now.
    pub(super) fn stands_before(&self, places: Vec<SocketAddr>) {
        let mut known = self
            .replicas
            .places
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *known = places;
    }
}

async fn accept(listener: TcpListener, replicas: Arc<Replicas>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(forward(client, Arc::clone(&replicas)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Until one side is gone; a client that no replica takes is dropped, and dials again.
async fn forward(mut client: TcpStream, replicas: Arc<Replicas>) {
    if let Some(mut replica) = replicas.next().await {
        // How it ended is for the two of them to say.
        let _ = client.set_nodelay(true);
        let _ = copy_bidirectional(&mut client, &mut replica).await;
    }
}

impl Replicas {
    async fn next(&self) -> Option<TcpStream> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let first = usize::from(turn) % places.len().max(1);
        places.rotate_left(first);
        for place in places {
            if let Ok(stream) = dial(place, turn).await {
                return Some(stream);
            }
        }
        None
    }
}

async fn dial(place: SocketAddr, turn: u16) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    let [_, low] = (1 + turn % ADDRESSES).to_be_bytes();
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 1, low), 0)))?;
    socket.connect(place).await
}
