//! What the relay is compared with: a bare actix-ws server that sends back what it gets, as a process of its own.

use std::io::Write as _;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use anyhow::Context as _;
use sovereign_relay_protocol::signal::SUBPROTOCOL;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::process::Process;

/// A running echo.
pub(super) struct EchoProcess {
    pub(super) process: Process,
    pub(super) url: String,
}

impl EchoProcess {
    /// Starts one and waits until it listens.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let (process, output) = Process::own(&["echo"])?;
        let address = BufReader::new(output).lines().next_line().await?;
        let url = format!("http://{}", address.context("the echo ended at start")?);
        Ok(Self { process, url })
    }
}

/// Serves until it is killed. Its address is the first line of its output.
pub(crate) fn serve() -> anyhow::Result<()> {
    actix_web::rt::System::new().block_on(async {
        let server = HttpServer::new(|| App::new().route("/", web::get().to(accept)))
            .tcp_nodelay(true)
            .bind(("127.0.0.1", 0))?;
        let address = server.addrs().first().copied().context("no address")?;
        writeln!(std::io::stdout(), "{address}")?;
        Ok(server.run().await?)
    })
}

async fn accept(request: HttpRequest, body: web::Payload) -> actix_web::Result<HttpResponse> {
    let (response, session, messages) = actix_ws::handle_with_protocols(&request, body, &[SUBPROTOCOL])?;
    actix_web::rt::spawn(echo(session, messages));
    Ok(response)
}

async fn echo(mut session: actix_ws::Session, mut messages: actix_ws::MessageStream) {
    while let Some(Ok(message)) = messages.recv().await {
        let sent = match message {
            actix_ws::Message::Text(text) => session.text(text).await,
            actix_ws::Message::Ping(data) => session.pong(&data).await,
            actix_ws::Message::Close(_) => break,
            _ => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
    // Whoever is gone needs no goodbye.
    let _ = session.close(None).await;
}
