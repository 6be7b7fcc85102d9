//! Over real sockets, against the push service of this module.

mod hostile;
mod tls;

use sovereign_relay_protocol::platform::Priority;

use super::{
    outcome::RetryCause,
    service::{Behaviour, Browser, PushService},
    *,
};
use crate::clock::Clock;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
const JSON: &str = r#"{"title":"hello","body":"you"}"#;
/// For pushes that are to get no answer.
const SHORT: Duration = Duration::from_millis(300);

struct World {
    service: PushService,
    web_push: WebPush,
    browser: Browser,
}

impl World {
    async fn start() -> Self {
        Self::with(local()).await
    }

    async fn with(settings: Settings) -> Self {
        let service = PushService::start(Clock::new(|| NOW)).await.unwrap();
        let web_push = WebPush::new(&VapidKey::generate().unwrap(), contact(), &settings).unwrap();
        let browser = service.browser(web_push.public_key()).unwrap();
        Self {
            service,
            web_push,
            browser,
        }
    }

    async fn push(&self) -> Outcome {
        self.push_with(delivery()).await
    }

    async fn push_with(&self, delivery: Delivery<'_>) -> Outcome {
        let subscription = subscription(&self.browser);
        let message = WebPushMessage { json: JSON, delivery };
        self.web_push.send(&subscription, &message, NOW).await.unwrap()
    }

    async fn met_with(&self, behaviour: Behaviour) -> Outcome {
        self.service.behave(&self.browser, behaviour);
        self.push().await
    }
}

fn local() -> Settings {
    Settings {
        addresses: Addresses::PublicAndLoopback,
        ..Settings::default()
    }
}

fn impatient() -> Settings {
    Settings {
        answer_within: SHORT,
        ..local()
    }
}

fn contact() -> Contact {
    Contact::parse("mailto:push@instance.example").unwrap()
}

fn delivery() -> Delivery<'static> {
    Delivery {
        priority: Priority::High,
        ttl_seconds: 60,
        tag: None,
    }
}

fn subscription(browser: &Browser) -> Subscription {
    let (p256dh, auth) = (browser.p256dh(), browser.auth());
    Subscription::parse(browser.endpoint(), &p256dh, &auth, Addresses::PublicAndLoopback).unwrap()
}

#[tokio::test]
async fn a_push_reaches_the_browser_which_alone_can_read_it() {
    let world = World::start().await;
    assert_eq!(world.push().await, Outcome::Sent);
    let message = world.service.messages(&world.browser).pop().unwrap();
    assert_eq!(world.browser.open(&message).unwrap().trim_end(), JSON);
    assert_eq!(
        (message.ttl_seconds, message.urgency.as_deref()),
        (60, Some("high"))
    );
    assert_eq!(message.topic, None);
    let other = world.service.browser(world.web_push.public_key()).unwrap();
    assert!(other.open(&message).is_err());
}

#[tokio::test]
async fn every_length_that_can_be_sealed_is_taken_by_the_service() {
    let world = World::start().await;
    for length in seal::PADDED_BYTES {
        let json = format!("\"{}\"", "x".repeat(length - 2));
        let message = WebPushMessage {
            json: &json,
            delivery: delivery(),
        };
        let outcome = world
            .web_push
            .send(&subscription(&world.browser), &message, NOW)
            .await;
        assert_eq!(outcome, Ok(Outcome::Sent), "{length}");
    }
    let messages = world.service.messages(&world.browser);
    assert_eq!(
        world.browser.open(&messages[5]).unwrap().len(),
        seal::LONGEST_JSON_BYTES
    );
}

#[tokio::test]
async fn sealed_bytes_can_be_posted_again_as_they_are() {
    let world = World::start().await;
    let sealed = seal(&subscription(&world.browser), JSON).unwrap();
    world.service.behave(&world.browser, Behaviour::Status(503));
    let (endpoint, delivery) = (world.browser.endpoint(), delivery_of_tag());
    let post = || world.web_push.post(endpoint, sealed.clone(), &delivery, NOW);
    assert_eq!(post().await, Outcome::retry(RetryCause::Unavailable));
    world.service.behave(&world.browser, Behaviour::Judge);
    assert_eq!(post().await, Outcome::Sent);
    assert_eq!(post().await, Outcome::Sent);
    let messages = world.service.messages(&world.browser);
    assert_eq!(messages.len(), 1, "the topic replaces what waits");
    assert_eq!(messages[0].body, sealed);
}

fn delivery_of_tag() -> Delivery<'static> {
    Delivery {
        tag: Some("chat-7"),
        ..delivery()
    }
}

#[tokio::test]
async fn a_tag_replaces_what_waits_and_is_not_told_to_the_service() {
    let world = World::start().await;
    for _ in 0..2 {
        assert_eq!(world.push_with(delivery_of_tag()).await, Outcome::Sent);
    }
    assert_eq!(world.push().await, Outcome::Sent);
    let messages = world.service.messages(&world.browser);
    assert_eq!(messages.len(), 2);
    let topic = messages[0].topic.as_deref().unwrap();
    assert!(topic.len() == 32 && !topic.contains("chat"));
}

#[tokio::test]
async fn a_normal_priority_and_now_or_never_are_said_so() {
    let world = World::start().await;
    let delivery = Delivery {
        priority: Priority::Normal,
        ttl_seconds: 0,
        tag: None,
    };
    assert_eq!(world.push_with(delivery).await, Outcome::Sent);
    let message = world.service.messages(&world.browser).pop().unwrap();
    assert_eq!(
        (message.ttl_seconds, message.urgency.as_deref()),
        (0, Some("normal"))
    );
}

#[tokio::test]
async fn a_browser_that_unsubscribed_is_gone() {
    let world = World::start().await;
    assert_eq!(world.met_with(Behaviour::Status(410)).await, Outcome::Gone);
    world.service.unsubscribe(&world.browser);
    assert_eq!(world.push().await, Outcome::Gone);
}

#[tokio::test]
async fn a_service_that_does_not_take_our_key_never_ends_a_subscription() {
    let mut world = World::start().await;
    let refused = Outcome::Misconfigured(Misconfiguration::Unauthorized);
    for status in [401, 403] {
        assert_eq!(world.met_with(Behaviour::Status(status)).await, refused);
    }
    let another = VapidKey::generate().unwrap();
    world.service.behave(&world.browser, Behaviour::Judge);
    world.web_push = WebPush::new(&another, contact(), &local()).unwrap();
    assert_eq!(world.push().await, refused);
}

#[tokio::test]
async fn a_service_that_wants_less_says_when() {
    let world = World::start().await;
    let after = |seconds, cause| Outcome::Retry {
        after: Some(Duration::from_secs(seconds)),
        cause,
    };
    let seconds = Behaviour::RetryAfter(429, "37".to_owned());
    assert_eq!(world.met_with(seconds).await, after(37, RetryCause::Throttled));
    // Two minutes after NOW.
    let date = Behaviour::RetryAfter(503, "Tue, 14 Nov 2023 22:15:20 GMT".to_owned());
    assert_eq!(world.met_with(date).await, after(120, RetryCause::Unavailable));
    assert_eq!(
        world.met_with(Behaviour::Status(429)).await,
        Outcome::retry(RetryCause::Throttled)
    );
}

#[tokio::test]
async fn other_refusals_are_this_pushs_alone() {
    let world = World::start().await;
    for (status, failure) in [
        (400, Failure::Rejected),
        (413, Failure::TooLarge),
        (415, Failure::Rejected),
    ] {
        assert_eq!(
            world.met_with(Behaviour::Status(status)).await,
            Outcome::Failed(failure)
        );
    }
}

#[tokio::test]
async fn one_token_is_used_for_all_pushes_to_a_service() {
    let world = World::start().await;
    let endpoint = Endpoint::parse(world.browser.endpoint(), world.web_push.addresses()).unwrap();
    let before = world.web_push.vapid.authorization(&endpoint, NOW).unwrap();
    for _ in 0..3 {
        assert_eq!(world.push().await, Outcome::Sent);
    }
    let after = world.web_push.vapid.authorization(&endpoint, NOW).unwrap();
    assert_eq!(before, after);
}

#[tokio::test]
async fn whoever_waits_for_a_message_gets_it() {
    let world = World::start().await;
    let (messages, outcome) = tokio::join!(world.service.wait_for(&world.browser, 1), world.push());
    assert_eq!((messages.len(), outcome), (1, Outcome::Sent));
    world.service.stop().await.unwrap();
}

#[test]
fn certificates_that_are_none_are_refused_at_the_start() {
    let settings = Settings {
        extra_ca: Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()),
        ..Settings::default()
    };
    let made = WebPush::new(&VapidKey::generate().unwrap(), contact(), &settings);
    assert!(matches!(made, Err(SetupError::Client(_))));
}
