use super::*;

fn with_topics(ios: Option<&str>, macos: Option<&str>) -> ApnsConfig {
    let topics = Topics {
        ios: ios.map(str::to_owned),
        macos: macos.map(str::to_owned),
    };
    ApnsConfig {
        topics,
        ..ApnsConfig::new(Environment::Production)
    }
}

#[test]
fn a_topic_that_is_no_bundle_id_is_refused_by_its_platforms_name_even_without_a_key() {
    for topic in ["", "a b", "fs.sovereign\r\napns-x: y", &"a".repeat(156)] {
        let error = with_topics(None, Some(topic)).credentials().err();
        assert_eq!(
            error,
            Some(ApnsConfigError::Topic { platform: "macos" }),
            "{topic:?}"
        );
    }
    assert!(
        with_topics(Some("fs.sovereign-2.mobile"), None)
            .credentials()
            .unwrap()
            .is_none()
    );
}

#[test]
fn the_defaults_detect_a_dead_connection_within_a_pushs_deadline() {
    let tuning = Tuning::default();
    assert!(tuning.quiet_when_busy + tuning.pong_within < Duration::from_secs(10));
    assert!(tuning.backoff_first <= tuning.backoff_longest);
}

#[test]
fn apples_hosts_are_the_default_endpoints() {
    let host = |environment| default_endpoint(environment).host;
    assert_eq!(host(Environment::Production), "api.push.apple.com");
    assert_eq!(host(Environment::Sandbox), "api.sandbox.push.apple.com");
}
