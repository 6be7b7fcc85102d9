//! A network that loses connections at the worst moments: it forwards to the relay, and cuts both sides.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use super::{device::random, peer::authority};

const ACKNOWLEDGEMENT: &[u8] = br#"{"t":"ack""#;

/// When a connection is cut.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// So many acknowledgements pass; the next one is withheld.
    BeforeAcknowledgement(usize),
    /// After so many bytes to the relay.
    BytesUp(usize),
    /// After so many bytes from it.
    BytesDown(usize),
}

/// Ends with its owner, and its connections with it.
pub struct Cutter {
    address: SocketAddr,
    cuts: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

impl Cutter {
    /// Cuts the first `count` connections, each as `how` says.
    pub async fn start(url: &str, count: usize, how: impl Fn() -> Cut + Send + 'static) -> Self {
        let relay = authority(url).to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (counter, cuts) = watch::channel(0);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let relay = TcpStream::connect(&relay).await.unwrap();
                // One at a time: a client dials when it has lost the connection before.
                let cut = (*counter.borrow() < count).then(&how);
                forward(client, relay, cut).await;
                counter.send_modify(|cuts| *cuts += usize::from(cut.is_some()));
            }
        });
        Self {
            address,
            cuts,
            _tasks: tasks,
        }
    }

    /// The way through it.
    pub fn url(&self) -> String {
        format!("ws://{}/v1/signal", self.address)
    }

    pub fn cuts(&self) -> usize {
        *self.cuts.borrow()
    }
}

/// Any number below `bound`.
pub fn below(bound: usize) -> usize {
    let mut bytes = [0; 8];
    random(&mut bytes);
    usize::from_le_bytes(bytes) % bound
}

/// Forwards until one side ends or the moment has come.
async fn forward(mut client: TcpStream, mut relay: TcpStream, mut cut: Option<Cut>) {
    let (mut up, mut down) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    loop {
        let passed = tokio::select! {
            read = client.read(&mut up) => pass(&up, read, &mut relay, allowed_up, &mut cut).await,
            read = relay.read(&mut down) => pass(&down, read, &mut client, allowed_down, &mut cut).await,
        };
        if passed.is_none() {
            return;
        }
    }
}

/// `None`: it is over.
async fn pass(
    buffer: &[u8],
    read: std::io::Result<usize>,
    to: &mut TcpStream,
    allowed: fn(&mut Cut, &[u8]) -> usize,
    cut: &mut Option<Cut>,
) -> Option<()> {
    let bytes = buffer.get(..read.ok()?).filter(|bytes| !bytes.is_empty())?;
    let passes = cut.as_mut().map_or(bytes.len(), |cut| allowed(cut, bytes));
    to.write_all(&bytes[..passes]).await.ok()?;
    (passes == bytes.len()).then_some(())
}

fn allowed_up(cut: &mut Cut, bytes: &[u8]) -> usize {
    match cut {
        Cut::BytesUp(left) => take(left, bytes),
        Cut::BytesDown(_) | Cut::BeforeAcknowledgement(_) => bytes.len(),
    }
}

fn allowed_down(cut: &mut Cut, bytes: &[u8]) -> usize {
    match cut {
        Cut::BytesDown(left) => take(left, bytes),
        Cut::BeforeAcknowledgement(left) => {
            let starts = bytes.windows(ACKNOWLEDGEMENT.len()).enumerate();
            for (at, _) in starts.filter(|(_, window)| *window == ACKNOWLEDGEMENT) {
                if *left == 0 {
                    return at;
                }
                *left -= 1;
            }
            bytes.len()
        }
        Cut::BytesUp(_) => bytes.len(),
    }
}

fn take(left: &mut usize, bytes: &[u8]) -> usize {
    let taken = bytes.len().min(*left);
    *left -= taken;
    taken
}
