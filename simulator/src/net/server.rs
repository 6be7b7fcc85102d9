//! A TLS server on a loopback port that can refuse, freeze and cut connections: the ground under every simulator.
//!
//! One task accepts and owns the tasks of all connections; [`Server::stop`] ends and joins it, dropping the
//! [`Server`] aborts it. Refusing keeps the port: the listener is replaced by a socket that is bound and does not
//! listen, so that dialing fails, no one else can take the port, and listening again works.

use std::{
    collections::HashMap,
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{
    error::SimulatorError,
    net::gate::{Gate, GatedStream},
    sync::lock,
};

/// Connections open at the same time; more are closed at once. Far above what a relay opens, and it bounds memory.
const MAX_CONNECTIONS: usize = 4096;
/// Pause after a failed accept, so that a lasting error doesn't spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Waiting connections that the kernel keeps, as `TcpListener::bind` does.
const BACKLOG: u32 = 1024;
/// Commands wait for their answer, so there is at most one per caller.
const MAX_COMMANDS: usize = 8;

/// What a simulator does with a connection.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Serves until the connection ends.
    fn serve(
        self: Arc<Self>,
        stream: ClientStream,
        connection: Connection,
    ) -> impl Future<Output = ()> + Send;
}

/// A connection after its TLS handshake.
pub(crate) type ClientStream = TlsStream<GatedStream>;

/// What a handler knows of its connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// Counted from 1 per simulator.
    pub(crate) number: u64,
    /// To cut it.
    pub(crate) gate: Arc<Gate>,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    door: Arc<Door>,
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

/// What the accepting task and the commanding side share.
#[derive(Debug, Default)]
struct Door {
    accepted: AtomicU64,
    freeze_new: AtomicBool,
    open: Mutex<HashMap<u64, Arc<Gate>>>,
}

#[derive(Debug)]
enum Command {
    Refuse(oneshot::Sender<()>),
    Listen(oneshot::Sender<()>),
    Stop,
}

impl Server {
    /// Binds port 0 on loopback, or `port`, and serves.
    pub(crate) async fn start<S: Serve>(
        port: u16,
        config: Arc<ServerConfig>,
        service: Arc<S>,
    ) -> Result<Self, SimulatorError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let door = Arc::new(Door::default());
        let (commands, inbound) = mpsc::channel(MAX_COMMANDS);
        let acceptor = Acceptor {
            address,
            door: Arc::clone(&door),
            tls: TlsAcceptor::from(config),
            service,
            connections: JoinSet::new(),
        };
        let task = tokio::spawn(acceptor.run(listener, inbound));
        Ok(Self {
            address,
            door,
            commands,
            task,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.door.accepted.load(Ordering::Relaxed)
    }

    pub(crate) fn open(&self) -> usize {
        lock(&self.door.open).len()
    }

    /// Freezes or thaws the connections that are open now.
    pub(crate) fn freeze_open(&self, frozen: bool) {
        for gate in lock(&self.door.open).values() {
            gate.set_frozen(frozen);
        }
    }

    /// Freezes the connections to come before their TLS handshake, or no longer.
    pub(crate) fn freeze_new(&self, frozen: bool) {
        self.door.freeze_new.store(frozen, Ordering::SeqCst);
    }

    /// Cuts the connections that are open now.
    pub(crate) fn kill_open(&self) {
        for gate in lock(&self.door.open).values() {
            gate.kill();
        }
    }

    /// Returns once dialing fails, or works again.
    pub(crate) async fn refuse(&self, refuse: bool) -> Result<(), SimulatorError> {
        let (done, answer) = oneshot::channel();
        let command = if refuse {
            Command::Refuse(done)
        } else {
            Command::Listen(done)
        };
        self.commands
            .send(command)
            .await
            .map_err(|_| SimulatorError::Stopped)?;
        answer.await.map_err(|_| SimulatorError::Stopped)
    }

    /// Ends and joins everything.
    pub(crate) async fn stop(&mut self) {
        // A full or closed channel is fine: the task is aborted or gone.
        if self.commands.send(Command::Stop).await.is_err() {
            self.task.abort();
        }
        if let Err(error) = (&mut self.task).await
            && error.is_panic()
        {
            tracing::error!(%error, "simulator server panicked");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The accepting task.
struct Acceptor<S> {
    address: SocketAddr,
    door: Arc<Door>,
    tls: TlsAcceptor,
    service: Arc<S>,
    connections: JoinSet<()>,
}

/// Either accepting, or holding the port without listening.
enum Port {
    Listening(TcpListener),
    Refusing(TcpSocket),
}

impl<S: Serve> Acceptor<S> {
    async fn run(mut self, listener: TcpListener, mut commands: mpsc::Receiver<Command>) {
        let mut port = Port::Listening(listener);
        loop {
            let command = tokio::select! {
                command = commands.recv() => command.unwrap_or(Command::Stop),
                stream = accept(&port) => {
                    self.admit(stream);
                    continue;
                }
                Some(_) = self.connections.join_next() => continue,
            };
            port = match self.obey(port, command) {
                Some(port) => port,
                None => break,
            };
        }
        self.connections.shutdown().await;
    }

    /// The port after the command; `None` is the end.
    fn obey(&self, port: Port, command: Command) -> Option<Port> {
        let (port, done) = match command {
            Command::Stop => return None,
            Command::Refuse(done) => (refuse(port, self.address), done),
            Command::Listen(done) => (listen(port), done),
        };
        match port {
            Ok(port) => {
                // The caller may have given up waiting.
                let _ = done.send(());
                Some(port)
            }
            Err(error) => {
                tracing::error!(%error, "simulator lost its port");
                None
            }
        }
    }

    fn admit(&mut self, stream: TcpStream) {
        if self.connections.len() >= MAX_CONNECTIONS {
            return tracing::warn!("too many connections, closing this one");
        }
        if let Err(error) = stream.set_nodelay(true) {
            tracing::warn!(%error, "TCP_NODELAY not set");
        }
        let registration = Registration::new(&self.door);
        let connection = registration.connection.clone();
        let stream = GatedStream::new(stream, Arc::clone(&connection.gate));
        let handshake = self.tls.accept(stream);
        let service = Arc::clone(&self.service);
        self.connections.spawn(async move {
            let gate = Arc::clone(&connection.gate);
            let served = async {
                match handshake.await {
                    Ok(stream) => service.serve(stream, connection).await,
                    Err(error) => tracing::debug!(%error, "TLS handshake failed"),
                }
            };
            tokio::select! {
                () = served => {}
                () = gate.killed() => {}
            }
            drop(registration);
        });
    }
}

/// The next connection. An error (no file descriptors left, say) is waited out.
async fn accept(port: &Port) -> TcpStream {
    let Port::Listening(listener) = port else {
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn refuse(port: Port, address: SocketAddr) -> io::Result<Port> {
    if matches!(port, Port::Refusing(_)) {
        return Ok(port);
    }
    drop(port);
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(Port::Refusing(socket))
}

fn listen(port: Port) -> io::Result<Port> {
    match port {
        Port::Listening(_) => Ok(port),
        Port::Refusing(socket) => socket.listen(BACKLOG).map(Port::Listening),
    }
}

/// A connection's place among the open ones; gives it back.
struct Registration {
    door: Arc<Door>,
    connection: Connection,
}

impl Registration {
    fn new(door: &Arc<Door>) -> Self {
        let number = door.accepted.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let gate = Arc::new(Gate::default());
        gate.set_frozen(door.freeze_new.load(Ordering::SeqCst));
        lock(&door.open).insert(number, Arc::clone(&gate));
        Self {
            door: Arc::clone(door),
            connection: Connection { number, gate },
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.door.open).remove(&self.connection.number);
    }
}
