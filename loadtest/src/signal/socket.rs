//! WebSockets that cost the generator little, so that it is not what is measured.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use sovereign_relay_protocol::{
    redacted::Redacted,
    signal::{
        SUBPROTOCOL,
        frame::{ClientFrame, Hello, ServerFrame},
        id::ConnectionId,
    },
};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Message, Utf8Bytes,
        client::IntoClientRequest as _,
        http::{HeaderValue, header::SEC_WEBSOCKET_PROTOCOL},
        protocol::WebSocketConfig,
    },
};

use crate::instance;

/// Enough for the frames of this program. By default every socket has 128 KiB.
const BUFFER_BYTES: usize = 1024;
/// Loopback addresses that sockets come from in turn: each has its own ports, and its own limits at the relay.
const ADDRESSES: u8 = 100;

/// An open WebSocket.
pub(super) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    /// Opens one from the `number`th address.
    pub(super) async fn open(url: &str, path: &str, number: usize) -> anyhow::Result<Self> {
        let host = url.trim_start_matches("http://");
        let from = u8::try_from(number % usize::from(ADDRESSES))?.saturating_add(1);
        let tcp = TcpSocket::new_v4()?;
        tcp.set_nodelay(true)?;
        tcp.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 1, from), 0)))?;
        let stream = tcp
            .connect(host.parse().context("not http://address:port")?)
            .await?;
        let mut request = format!("ws://{host}{path}").into_client_request()?;
        let protocol = HeaderValue::from_static(SUBPROTOCOL);
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(0);
        let (socket, _) = client_async_with_config(request, stream, Some(config)).await?;
        Ok(Self(socket))
    }

    /// Opens one and takes a slot with it.
    pub(super) async fn join(url: &str, ticket: Redacted, number: usize) -> anyhow::Result<Self> {
        let mut socket = Self::open(url, "/v1/signal", number).await?;
        let mut connection = [0; 16];
        instance::random(&mut connection);
        let hello = ClientFrame::Hello(Hello {
            ticket,
            connection: ConnectionId::from_bytes(connection),
            attempt: 1,
            last: 0,
        });
        socket.send(hello.to_text()).await?;
        let first = socket.next().await?.context("closed before the welcome")?;
        match ServerFrame::parse(&first)? {
            Some(ServerFrame::Welcome(_)) => Ok(socket),
            _ => bail!("no welcome but {first}"),
        }
    }

    /// Sends a text.
    pub(super) async fn send(&mut self, text: String) -> anyhow::Result<()> {
        Ok(self.0.send(Message::text(text)).await?)
    }

    /// The next text; `None` is the end. Pings are answered. Cancel-safe.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<Utf8Bytes>> {
        loop {
            match self.0.next().await.transpose()? {
                Some(Message::Text(text)) => return Ok(Some(text)),
                Some(Message::Close(_)) | None => return Ok(None),
                Some(_) => {}
            }
        }
    }

    /// Says goodbye and waits for the end.
    pub(super) async fn close(mut self) {
        // The other side may have closed it already.
        let _ = self.0.close(None).await;
        while let Some(Ok(_)) = self.0.next().await {}
    }
}
