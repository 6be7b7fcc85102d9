//! Endpoints that somebody registered to reach into the instance's network, or to hold it up.

use std::{collections::HashMap, net::SocketAddr};

use reqwest::dns::{Addrs, Name, Resolving};
use tokio::{io::AsyncReadExt as _, net::TcpListener};

use super::*;
use crate::web_push::seal::seal;

/// Names that lead to this machine.
struct Names(HashMap<&'static str, Vec<SocketAddr>>);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.0.get(name.as_str()).cloned();
        Box::pin(async move { Ok(Box::new(found.ok_or("no such name")?.into_iter()) as Addrs) })
    }
}

pub(super) fn with_names(settings: &Settings, names: &[(&'static str, SocketAddr)]) -> WebPush {
    let names = names
        .iter()
        .map(|(name, address)| (*name, vec![*address]))
        .collect();
    let key = VapidKey::generate().unwrap();
    WebPush::with_names(&key, contact(), settings, Arc::new(Names(names))).unwrap()
}

pub(super) async fn post(web_push: &WebPush, endpoint: &str) -> Outcome {
    let browser = Browser::new("https://push.example").unwrap();
    let sealed = seal(&subscription(&browser), JSON).unwrap();
    web_push.post(endpoint, sealed, &delivery(), NOW).await
}

/// Whether nobody has connected.
fn is_untouched(listener: TcpListener) -> bool {
    let listener = listener.into_std().unwrap();
    listener
        .accept()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn an_address_that_breaks_the_rules_is_not_connected_to_even_if_the_database_has_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let web_push = with_names(&Settings::default(), &[]);
    for (host, error) in [
        (format!("http://127.0.0.1:{port}"), EndpointError::NotHttps),
        (format!("https://127.0.0.1:{port}"), EndpointError::NotPublic),
        (format!("https://2130706433:{port}"), EndpointError::NotPublic),
        (format!("https://0x7f.1:{port}"), EndpointError::NotPublic),
        (
            format!("https://[::ffff:127.0.0.1]:{port}"),
            EndpointError::NotPublic,
        ),
        (format!("https://localhost:{port}"), EndpointError::NotPublic),
        (
            format!("https://push.example@127.0.0.1:{port}"),
            EndpointError::UserInfo,
        ),
    ] {
        let outcome = post(&web_push, &format!("{host}/send/1")).await;
        assert_eq!(outcome, Outcome::Failed(Failure::Endpoint(error)), "{host}");
    }
    assert!(is_untouched(listener));
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mapped = SocketAddr::new("::ffff:127.0.0.1".parse().unwrap(), address.port());
    let names = [("inside.example", address), ("mapped.example", mapped)];
    let web_push = with_names(&Settings::default(), &names);
    for name in ["inside.example", "mapped.example"] {
        let outcome = post(&web_push, &format!("https://{name}:{}/send/1", address.port())).await;
        assert_eq!(outcome, Outcome::Failed(Failure::NotPublic), "{name}");
    }
    assert!(is_untouched(listener));
}

#[tokio::test]
async fn a_name_that_is_not_there_may_come_back() {
    let web_push = with_names(&Settings::default(), &[]);
    assert_eq!(
        post(&web_push, "https://nowhere.example/send/1").await,
        Outcome::retry(RetryCause::NotReached)
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let world = World::start().await;
    let other = world.service.browser(world.web_push.public_key()).unwrap();
    let redirect = Behaviour::Redirect(other.endpoint().to_owned());
    assert_eq!(
        world.met_with(redirect).await,
        Outcome::Failed(Failure::Redirected)
    );
    assert_eq!(world.service.requests(&world.browser), 1);
    assert_eq!(world.service.requests(&other), 0);
}

#[tokio::test]
async fn an_answer_of_ten_gigabytes_is_not_read() {
    let world = World::start().await;
    assert_eq!(world.met_with(Behaviour::Endless(201)).await, Outcome::Sent);
    assert_eq!(world.met_with(Behaviour::Endless(410)).await, Outcome::Gone);
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_tried_again_later() {
    let world = World::with(impatient()).await;
    assert_eq!(
        world.met_with(Behaviour::Hang).await,
        Outcome::retry(RetryCause::TimedOut)
    );
}

#[tokio::test]
async fn an_answer_whose_body_never_ends_counts_by_its_status() {
    let world = World::with(impatient()).await;
    assert_eq!(world.met_with(Behaviour::HangInBody(201)).await, Outcome::Sent);
    assert_eq!(world.met_with(Behaviour::HangInBody(404)).await, Outcome::Gone);
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_tried_again_later() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/send/1", listener.local_addr().unwrap());
    drop(listener);
    let web_push = with_names(&local(), &[]);
    assert_eq!(
        post(&web_push, &endpoint).await,
        Outcome::retry(RetryCause::NotReached)
    );
}

#[tokio::test]
async fn a_connection_that_is_cut_after_the_request_is_tried_again_later() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/send/1", listener.local_addr().unwrap());
    let cut = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 1024]).await.unwrap();
    });
    let web_push = with_names(&local(), &[]);
    assert_eq!(post(&web_push, &endpoint).await, Outcome::retry(RetryCause::Lost));
    cut.await.unwrap();
}

#[tokio::test]
async fn the_environments_proxy_is_not_asked() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    // This test's binary once more, since the environment is the process's.
    let push = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "web_push::tests::a_push_reaches_the_browser_which_alone_can_read_it",
        ])
        .envs(["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"].map(|name| (name, &address)))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .kill_on_drop(true)
        .output();
    let output = push.await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(is_untouched(proxy));
}
