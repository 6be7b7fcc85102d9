//! An instance inside a server of your own: routes for registration, a fan-out, and its worker.
//!
//! `cargo run -p sovereign-instance --example embed`, then register and send as `ann`:
//! `curl localhost:8080/api/account/push-device-token -H 'x-user: ann'`,
//! `curl -X POST localhost:8080/hello -H 'x-user: ann'`.

use std::{env, error::Error, sync::Arc};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    error::{ErrorInternalServerError, ErrorUnauthorized},
    web::{self, Data},
};
use sovereign_instance::{
    clock::Clock,
    config::{Limits, RelayChoice},
    fan_out::FanOut,
    notification::Notification,
    relay::{Identity, Relays},
    routes::{Authenticate, AuthenticationError, Registration, mount},
    store::Store,
    trust::Trust,
    user::User,
    web_push::{Contact, Settings, VapidKey, WebPush},
};
use tokio::sync::oneshot;

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::connect("sqlite:instance.sqlite").await?;
    let choice = RelayChoice::from_setting(env::var("SOVEREIGN_RELAY_URL").ok().as_deref())?;
    let relays = Relays::new(store.clone(), choice, Trust::system()?, Identity::default());
    let relays = Arc::new(relays);
    let web_push = Arc::new(web_push(&store).await?);
    let fan_out = FanOut::new(store.clone(), relays.clone(), web_push.clone(), Limits::default());
    let fan_out = Arc::new(fan_out);

    // Sends later what could not be sent at once.
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = tokio::spawn(fan_out.clone().run(async { drop(stopped.await) }));

    let current = Arc::new(move || relays.current());
    let registration = Registration::new(store, current, Clock::system());
    let registration = Arc::new(registration.with_web_push(web_push.public_key().to_owned()));
    let app = move || {
        App::new()
            .configure(mount(registration.clone(), Arc::new(Sessions)))
            .app_data(Data::from(fan_out.clone()))
            .route("/hello", web::post().to(hello))
    };
    HttpServer::new(app).bind(("127.0.0.1", 8080))?.run().await?;
    drop(stop);
    Ok(worker.await?)
}

/// Your own sign-in; here, whoever says a name is believed.
struct Sessions;

impl Authenticate for Sessions {
    async fn authenticate(&self, request: &HttpRequest) -> Result<User, AuthenticationError> {
        // Look the session cookie up in your own tables, and compare `Origin` with your own.
        let name = request
            .headers()
            .get("x-user")
            .and_then(|name| name.to_str().ok());
        name.map(User::new).ok_or(AuthenticationError::Unauthenticated)
    }
}

/// Tells the user something, on all devices and in all browsers.
async fn hello(request: HttpRequest, fan_out: Data<FanOut>) -> actix_web::Result<HttpResponse> {
    let user = Sessions.authenticate(&request).await.map_err(ErrorUnauthorized)?;
    let hello = Notification::new("Hello", "from your own server");
    let report = fan_out
        .send(&user, &hello)
        .await
        .map_err(ErrorInternalServerError)?;
    Ok(HttpResponse::Ok().body(format!("{} of {} told\n", report.sent, report.targets())))
}

/// Browsers are told without a relay, by a key that is made once.
async fn web_push(store: &Store) -> Result<WebPush, Box<dyn Error>> {
    let key =
        VapidKey::kept(async |name, value| Ok::<_, Box<dyn Error>>(store.setting_or(name, &value).await?));
    let contact = Contact::parse("mailto:admin@example.org")?;
    Ok(WebPush::new(&key.await?, contact, &Settings::default())?)
}
