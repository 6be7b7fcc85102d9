//! A push service on this machine and browsers that are subscribed to it, for the demo and for tests: a real server
//! that judges what it gets by RFC 8030, 8188 and 8292, keeps it for the browser, and can be told to misbehave.
//!
//! ```text
//!   PushService::browser   a browser subscribes with a VAPID key: endpoint, key pair, secret
//!   POST /send/{id}        judge -> mailbox of the browser; or what the browser's behaviour says
//!   Browser::open          what the browser's service worker would read
//! ```
//!
//! Nothing here is for production.

mod answer;
mod browser;
mod judge;

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, dev::ServerHandle, web};
use tokio::{sync::watch, task::JoinHandle};

pub use self::{
    answer::Behaviour,
    browser::{Browser, OpenError},
};
use super::seal::LONGEST_BODY_BYTES;
use crate::clock::Clock;

/// Messages that are kept for a browser; one more is refused with 429.
const MAILBOX: usize = 1_000;

/// A push message as it was stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// `TTL`.
    pub ttl_seconds: u32,
    /// `Urgency`, if there was one.
    pub urgency: Option<String>,
    /// `Topic`, if there was one.
    pub topic: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The server. Dropping it ends it.
pub struct PushService {
    origin: String,
    shared: Arc<Shared>,
    handle: ServerHandle,
    serving: JoinHandle<io::Result<()>>,
}

struct Shared {
    origin: String,
    clock: Clock,
    mailboxes: Mutex<HashMap<String, Mailbox>>,
    /// Requests that have been answered or are being kept waiting.
    requests: watch::Sender<u64>,
}

#[derive(Default)]
struct Mailbox {
    application_server_key: String,
    behaviour: Behaviour,
    messages: Vec<Stored>,
    requests: u64,
}

impl PushService {
    /// Listens on loopback, on a port of the system's choice.
    pub async fn start(clock: Clock) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        let origin = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            origin: origin.clone(),
            clock,
            mailboxes: Mutex::default(),
            requests: watch::Sender::new(0),
        });
        let data = web::Data::from(shared.clone());
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .app_data(web::PayloadConfig::new(4 * LONGEST_BODY_BYTES))
                .route("/send/{id}", web::post().to(send))
        })
        .workers(1)
        .disable_signals()
        .shutdown_timeout(0)
        .listen(listener)?
        .run();
        Ok(Self {
            origin,
            shared,
            handle: server.handle(),
            serving: tokio::spawn(server),
        })
    }

    /// `http://127.0.0.1:port`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// A new browser, subscribed with a VAPID public key. `None` when the randomness gave no key.
    pub fn browser(&self, application_server_key: &str) -> Option<Browser> {
        let browser = Browser::new(&self.origin)?;
        let mailbox = Mailbox {
            application_server_key: application_server_key.to_owned(),
            ..Mailbox::default()
        };
        self.shared.mailboxes().insert(browser.id().to_owned(), mailbox);
        Some(browser)
    }

    /// What the browser's pushes are met with from now on.
    pub fn behave(&self, browser: &Browser, behaviour: Behaviour) {
        if let Some(mailbox) = self.shared.mailboxes().get_mut(browser.id()) {
            mailbox.behaviour = behaviour;
        }
    }

    /// The browser unsubscribes: its endpoint is gone.
    pub fn unsubscribe(&self, browser: &Browser) {
        self.shared.mailboxes().remove(browser.id());
    }

    /// What waits for the browser, oldest first.
    pub fn messages(&self, browser: &Browser) -> Vec<Stored> {
        let mailboxes = self.shared.mailboxes();
        mailboxes
            .get(browser.id())
            .map(|mailbox| mailbox.messages.clone())
            .unwrap_or_default()
    }

    /// Requests for the browser so far, refused ones too.
    pub fn requests(&self, browser: &Browser) -> u64 {
        let mailboxes = self.shared.mailboxes();
        mailboxes.get(browser.id()).map_or(0, |mailbox| mailbox.requests)
    }

    /// Waits until so many messages wait for the browser.
    pub async fn wait_for(&self, browser: &Browser, count: usize) -> Vec<Stored> {
        let mut changes = self.shared.requests.subscribe();
        loop {
            let messages = self.messages(browser);
            if messages.len() >= count || changes.changed().await.is_err() {
                return messages;
            }
        }
    }

    /// Ends the server and waits until it has ended.
    pub async fn stop(mut self) -> io::Result<()> {
        self.handle.stop(false).await;
        (&mut self.serving).await.map_err(io::Error::other)?
    }
}

impl Drop for PushService {
    fn drop(&mut self) {
        // The command is sent at once; nobody waits for the answer.
        drop(self.handle.stop(false));
    }
}

impl Shared {
    fn mailboxes(&self) -> MutexGuard<'_, HashMap<String, Mailbox>> {
        self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, id: &str, request: &HttpRequest, body: &[u8]) -> HttpResponse {
        let mut mailboxes = self.mailboxes();
        let Some(mailbox) = mailboxes.get_mut(id) else {
            return HttpResponse::NotFound().finish();
        };
        let key = &mailbox.application_server_key;
        let stored = match judge::judge(request.headers(), body, &self.origin, key, self.clock.seconds()) {
            Ok(stored) => stored,
            Err(refusal) => return refusal.into(),
        };
        if stored.topic.is_some() {
            mailbox.messages.retain(|waiting| waiting.topic != stored.topic);
        }
        if mailbox.messages.len() >= MAILBOX {
            return HttpResponse::TooManyRequests().finish();
        }
        mailbox.messages.push(stored);
        HttpResponse::Created()
            .insert_header(("Location", format!("{}/message/{id}", self.origin)))
            .finish()
    }

    fn behaviour(&self, id: &str) -> Behaviour {
        let mut mailboxes = self.mailboxes();
        let Some(mailbox) = mailboxes.get_mut(id) else {
            return Behaviour::Judge;
        };
        mailbox.requests += 1;
        mailbox.behaviour.clone()
    }
}

async fn send(
    shared: web::Data<Shared>,
    id: web::Path<String>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    let behaviour = shared.behaviour(&id);
    let response = match behaviour {
        Behaviour::Judge => Some(shared.take(&id, &request, &body)),
        other => other.response(),
    };
    shared.requests.send_modify(|count| *count += 1);
    match response {
        Some(response) => response,
        None => std::future::pending().await,
    }
}
