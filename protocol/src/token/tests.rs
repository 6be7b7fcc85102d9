use proptest::prelude::*;

use super::*;

fn parse(platform: Platform, token: &str) -> Result<TargetToken, MalformedToken> {
    TargetToken::parse(platform, &Redacted::new(token), &ChannelRule::default())
}

#[test]
fn an_apple_token_is_an_even_number_of_hexadecimal_characters() {
    for good in [
        "ab",
        "00fcEE",
        &"a".repeat(64),
        &"F".repeat(160),
        &"0".repeat(200),
    ] {
        assert!(
            parse(Platform::Ios, good).is_ok() && parse(Platform::Macos, good).is_ok(),
            "{good}"
        );
    }
    for bad in [
        "",
        "a",
        "abc",
        "zz",
        "ab/..",
        "ab%2f",
        " ab",
        "ab\n",
        &"a".repeat(202),
        "äb",
    ] {
        assert_eq!(parse(Platform::Ios, bad), Err(MalformedToken), "{bad}");
    }
}

#[test]
fn an_fcm_token_is_visible_ascii_of_any_length_up_to_4096() {
    for good in ["f", "short-fid", "dGVz:APA91b_x-y", &"x".repeat(4096)] {
        assert!(parse(Platform::Android, good).is_ok());
    }
    for bad in ["", "a b", "tab\t", "ü", &"x".repeat(4097)] {
        assert_eq!(parse(Platform::Android, bad), Err(MalformedToken));
    }
}

#[test]
fn a_channel_uri_names_a_host_of_the_provider_and_hides_nothing() {
    let good = [
        "https://dm3p.notify.windows.com/?token=AwYAAAB%2f%2Fx%3d",
        "https://wns2-by3p.notify.windows.com/?token=abc",
        "https://notify.windows.com/x",
        "HTTPS://DM3P.NOTIFY.WINDOWS.COM/?token=abc",
        "https://dm3p.notify.windows.com./?token=abc",
        "https://dm3p.notify.windows.com:443/?token=abc",
    ];
    for uri in good {
        let Ok(TargetToken::Channel(channel)) = parse(Platform::Windows, uri) else {
            panic!("{uri}")
        };
        assert_eq!(channel.expose(), uri, "byte for byte");
        assert!(channel.host().ends_with("notify.windows.com") && channel.port() == 443);
    }
    let bad = [
        "",
        "http://dm3p.notify.windows.com/",
        "https://evilnotify.windows.com/",
        "https://notify.windows.com.evil.example/",
        "https://evil.example/?notify.windows.com",
        "https://user@dm3p.notify.windows.com/",
        "https://dm3p.notify.windows.com@evil.example/",
        "https://dm3p.notify.windows.com:8443/",
        "https://dm3p.notify.windows.com/#fragment",
        "https:\\\\dm3p.notify.windows.com\\",
        "https:dm3p.notify.windows.com/",
        "https:///dm3p.notify.windows.com/",
        "https://dm3p.notify.windows.com%2f.evil.example/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://2130706433/",
        "https://localhost/",
        "ftp://dm3p.notify.windows.com/",
        "//dm3p.notify.windows.com/",
        " https://dm3p.notify.windows.com/",
        "https://dm3p.notify.windows.com/\u{0}",
        "https://ｄm3p.notify.windows.com/",
        "https://.notify.windows.com/",
        "https://a..notify.windows.com/",
        "https://dm3p.notify.windows.com/a/../b",
        "https://dm3p.notify.windows.com/?token='a'",
    ];
    for uri in bad {
        assert_eq!(parse(Platform::Windows, uri), Err(MalformedToken), "{uri}");
    }
    let long = format!("https://dm3p.notify.windows.com/?token={}", "x".repeat(2048));
    assert_eq!(parse(Platform::Windows, &long), Err(MalformedToken));
}

#[test]
fn test_endpoints_open_loopback_only_when_allowed() {
    let rule = ChannelRule {
        host_suffix: "localhost".into(),
        allow_test_endpoints: true,
    };
    for good in [
        "https://localhost:8443/?token=a",
        "http://localhost:8080/x",
        "https://127.0.0.1:9/x",
    ] {
        assert!(ChannelUri::parse(&Redacted::new(good), &rule).is_ok(), "{good}");
        assert!(parse(Platform::Windows, good).is_err());
    }
    assert!(ChannelUri::parse(&Redacted::new("https://notlocalhost/x"), &rule).is_err());
}

proptest! {
    #[test]
    fn whatever_passes_names_an_allowed_host(uri in "https?://[a-z@:./\\\\#%?0-9\\[\\]-]{0,30}notify.windows.com[a-z@:./#%?0-9-]{0,20}") {
        if let Ok(TargetToken::Channel(channel)) = parse(Platform::Windows, &uri) {
            let reparsed = url::Url::parse(channel.expose()).unwrap();
            let host = reparsed.host_str().unwrap().trim_end_matches('.').to_owned();
            prop_assert!(host == "notify.windows.com" || host.ends_with(".notify.windows.com"), "{}", host);
            prop_assert!(reparsed.scheme() == "https" && reparsed.username().is_empty());
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        for platform in Platform::ALL {
            let _ = parse(platform, &text);
        }
    }
}
