//! A wire between a page's WebSocket and the relay that can really be cut, so that resuming is seen and not only told.
//!
//! The playground's page dials a wire instead of the relay; [`super::page`] cuts it when a person presses the button.
//! A wire carries bytes and looks at none. Invariant: its connections live in its task, and the task ends with it.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

/// One page holds one connection, or two while it moves. More are hung up on.
const CONNECTIONS: usize = 32;
/// Presses of a button that wait. One more has nothing to add to these.
const WAITING: usize = 4;
/// Pause after a failed accept, which is mostly about file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A wire to the relay.
pub(super) struct Wire {
    /// Where it takes connections.
    pub(super) address: SocketAddr,
    disturbances: mpsc::Sender<Disturbance>,
    task: JoinHandle<()>,
}

/// What can happen to a wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disturbance {
    /// Its connections end in the middle of whatever they carry; new ones are welcome.
    Cut,
    /// They end, and for so long there are no new ones.
    Refuse(Duration),
}

impl Wire {
    /// Lays a wire from a free loopback port to the relay.
    pub(super) async fn start(relay: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (disturbances, waiting) = mpsc::channel(WAITING);
        let task = tokio::spawn(carry(listener, relay, waiting));
        Ok(Self {
            address,
            disturbances,
            task,
        })
    }

    /// Lets it happen soon.
    pub(super) fn disturb(&self, disturbance: Disturbance) {
        // A full queue holds enough of the same.
        let _ = self.disturbances.try_send(disturbance);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(listener: TcpListener, relay: SocketAddr, mut disturbances: mpsc::Receiver<Disturbance>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            disturbance = disturbances.recv() => {
                let Some(disturbance) = disturbance else { return };
                connections.shutdown().await;
                if let Disturbance::Refuse(time) = disturbance {
                    let _over = timeout(time, refuse(&listener)).await;
                }
            }
            page = accept(&listener) => {
                if connections.len() < CONNECTIONS {
                    connections.spawn(connect(page, relay));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((page, _)) => return page,
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Hangs up on everybody.
async fn refuse(listener: &TcpListener) {
    loop {
        drop(accept(listener).await);
    }
}

/// Carries one connection until either side ends it.
async fn connect(mut page: TcpStream, relay: SocketAddr) {
    if let Ok(mut upstream) = TcpStream::connect(relay).await {
        let _carried = copy_bidirectional(&mut page, &mut upstream).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    /// A relay that says back what it hears.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = socket.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        address
    }

    async fn is_carried(socket: &mut TcpStream) -> bool {
        let mut heard = [0; 5];
        socket.write_all(b"hello").await.is_ok()
            && socket.read_exact(&mut heard).await.is_ok()
            && heard == *b"hello"
    }

    async fn is_over(socket: &mut TcpStream) -> bool {
        matches!(socket.read(&mut [0; 1]).await, Ok(0) | Err(_))
    }

    #[tokio::test]
    async fn a_cut_ends_what_is_open_and_a_new_connection_is_carried() {
        let wire = Wire::start(echo().await).await.unwrap();
        let mut before = TcpStream::connect(wire.address).await.unwrap();
        assert!(is_carried(&mut before).await);
        wire.disturb(Disturbance::Cut);
        assert!(is_over(&mut before).await);
        let mut after = TcpStream::connect(wire.address).await.unwrap();
        assert!(is_carried(&mut after).await);
    }

    #[tokio::test]
    async fn a_refusing_wire_ends_what_is_open_and_hangs_up_on_everybody() {
        let wire = Wire::start(echo().await).await.unwrap();
        let mut before = TcpStream::connect(wire.address).await.unwrap();
        assert!(is_carried(&mut before).await);
        wire.disturb(Disturbance::Refuse(Duration::MAX));
        assert!(is_over(&mut before).await);
        let mut refused = TcpStream::connect(wire.address).await.unwrap();
        assert!(is_over(&mut refused).await);
    }

    #[tokio::test]
    async fn a_refusal_ends() {
        let wire = Wire::start(echo().await).await.unwrap();
        wire.disturb(Disturbance::Refuse(Duration::ZERO));
        let carried_again = async {
            loop {
                let mut socket = TcpStream::connect(wire.address).await.unwrap();
                if is_carried(&mut socket).await {
                    return;
                }
            }
        };
        assert!(timeout(DEADLINE, carried_again).await.is_ok());
    }

    #[tokio::test]
    async fn a_wire_that_is_dropped_leaves_nothing_open() {
        let wire = Wire::start(echo().await).await.unwrap();
        let mut socket = TcpStream::connect(wire.address).await.unwrap();
        assert!(is_carried(&mut socket).await);
        drop(wire);
        assert!(is_over(&mut socket).await);
    }
}
