//! Hosts that only a caller vouches for.

use super::*;

const NOWHERE: &str = "https://nowhere.localhost:1/?token=x";

#[tokio::test]
async fn a_host_that_was_never_heard_of_as_wns_is_no_news_of_wns() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    let outcome = world.push_within(NOWHERE, 60, Duration::from_millis(300)).await;
    assert_eq!(outcome, Outcome::HostUnreachable);
}

#[tokio::test]
async fn a_host_that_has_answered_as_wns_is_wns_when_it_is_not_reached() {
    let world = World::start().await;
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    world.simulators.wns.refuse_connections(true).await.unwrap();
    world.simulators.wns.kill_connections();
    let channel = world.simulators.wns.new_channel();
    // This one may still be written to the connection that was just cut.
    let _ = world.push_within(&channel, 60, Duration::from_millis(300)).await;
    let outcome = world.push_within(&channel, 60, Duration::from_millis(300)).await;
    assert_eq!(outcome, Outcome::Unreachable);
}

#[tokio::test]
async fn errors_and_silence_of_an_unknown_host_hold_nobody_but_its_own_channel() {
    let world = World::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let channel = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    let answer = "HTTP/1.1 503 Later\r\nretry-after: 37\r\ncontent-length: 0\r\n\r\n";
    let (outcome, ()) = tokio::join!(world.push_to(&channel, 60), answer_once(listener, answer));
    let error = failure(outcome);
    assert_eq!((error.health, error.hold), (Health::Unknown, Hold::Token));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let channel = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    let silence = failure(world.push_within(&channel, 60, Duration::from_secs(1)).await);
    assert_eq!(
        (silence.reason, silence.health),
        (Reason::ProviderTimeout, Health::Unknown)
    );
}

#[tokio::test]
async fn an_error_with_a_header_of_wns_is_wnss_own_from_the_first_answer() {
    let world = World::start().await;
    let later = verdict::unavailable(RetryAfter::Seconds(37));
    world.simulators.wns.script().next(1, later);
    let error = failure(world.push().await);
    assert_eq!((error.health, error.hold), (Health::Faulty, Hold::Provider));
}

#[tokio::test]
async fn a_turn_is_not_spent_for_long_on_an_unknown_host_that_takes_no_connection() {
    let world = World::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let channel = format!("https://localhost:{}/", silent.local_addr().unwrap().port());
    let patience = Duration::from_secs(120);
    let began = world.clock.now().mono;
    let outcome = world.push_within(&channel, 60, patience).await;
    assert_eq!(outcome, Outcome::HostUnreachable);
    assert!(world.clock.now().mono - began < patience / 2);
}

#[tokio::test]
async fn only_a_push_to_a_known_host_finds_out_whether_wns_is_back() {
    let world = World::start().await;
    let nowhere = world.delivery(NOWHERE, 60, Duration::ZERO);
    assert!(world.provider.can_probe(&nowhere), "none is known yet");
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
    assert!(!world.provider.can_probe(&nowhere));
    let channel = world.simulators.wns.new_channel();
    assert!(
        world
            .provider
            .can_probe(&world.delivery(&channel, 60, Duration::ZERO))
    );
}
