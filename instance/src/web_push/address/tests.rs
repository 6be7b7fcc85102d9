use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// Names as a test wants them.
struct Names(HashMap<&'static str, Vec<&'static str>>);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.0.get(name.as_str()).cloned();
        Box::pin(async move {
            let found = found.ok_or("no such name")?;
            let addresses = found
                .into_iter()
                .map(|ip| SocketAddr::new(ip.parse().unwrap(), 0));
            Ok(Box::new(addresses.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

async fn resolve(
    addresses: Addresses,
    found: &[&'static str],
) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    let names = Names(HashMap::from([("push.example", found.to_vec())]));
    let resolver = PublicOnly::new(Arc::new(names), addresses);
    let allowed = resolver.resolve("push.example".parse().unwrap()).await?;
    Ok(allowed.map(|address| address.ip().to_string()).collect())
}

fn refused(text: &str) -> EndpointError {
    Endpoint::parse(text, Addresses::Public).unwrap_err()
}

#[test]
fn endpoints_of_the_browsers_push_services_pass() {
    for text in [
        "https://fcm.googleapis.com/fcm/send/abc:APA91b",
        "https://updates.push.services.mozilla.com/wpush/v2/gAAAA",
        "https://web.push.apple.com/QGuQyavXutnMH",
        "https://wns2-par02p.notify.windows.com/w/?token=BQYAAA%3d%3d",
        "https://push.example:8443/up?id=1",
        "https://20.33.0.1/send",
        "https://[2603:1030::1]/send",
    ] {
        let endpoint = Endpoint::parse(text, Addresses::Public).unwrap();
        assert_eq!(endpoint.expose(), text);
    }
}

#[test]
fn the_origin_has_no_part_of_the_users() {
    let origin = |text| {
        let endpoint = Endpoint::parse(text, Addresses::Public).unwrap();
        endpoint.origin().to_owned()
    };
    assert_eq!(origin("https://Push.Example:443/a/b?c"), "https://push.example");
    assert_eq!(origin("https://push.example:8443/a"), "https://push.example:8443");
}

#[test]
fn what_is_not_https_is_refused() {
    for text in [
        "http://push.example/1",
        "http://127.0.0.1/1",
        "ftp://push.example/1",
        "wss://push.example/1",
    ] {
        assert_eq!(refused(text), EndpointError::NotHttps, "{text}");
    }
}

#[test]
fn a_user_name_or_password_is_refused() {
    for text in [
        "https://user@push.example/1",
        "https://user:secret@push.example/1",
        "https://:secret@push.example/1",
        "https://push.example@127.0.0.1/1",
    ] {
        assert_eq!(refused(text), EndpointError::UserInfo, "{text}");
    }
}

#[test]
fn literals_inside_a_network_are_refused_however_they_are_written() {
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "198.51.100.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[2001:db8::1]",
        "[fe80::1]",
        "[fd00::1]",
        "[ff02::1]",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
    ] {
        let error = refused(&format!("https://{host}/1"));
        let of_letters = !host.is_ascii() && error == EndpointError::Malformed;
        assert!(
            error == EndpointError::NotPublic || of_letters,
            "{host}: {error:?}"
        );
    }
}

#[test]
fn names_of_ones_own_machine_and_network_are_refused() {
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "push.localhost",
        "intranet",
        "intranet.",
    ] {
        let text = format!("https://{host}/1");
        assert_eq!(refused(&text), EndpointError::NotPublic, "{host}");
    }
}

#[test]
fn what_is_no_plain_url_is_refused() {
    for text in [
        "",
        "push.example",
        "https://",
        "https://push.example/#part",
        " https://push.example/",
        "https://push.example/a b",
        "https://push.example/\n",
        "https://push\t.example/",
        "https://pu\u{0}sh.example/",
        "https://push.example:99999/",
        "https://bücher.example/",
    ] {
        assert_eq!(refused(text), EndpointError::Malformed, "{text:?}");
    }
    let long = format!("https://push.example/{}", "x".repeat(LONGEST_ENDPOINT_BYTES));
    assert_eq!(refused(&long), EndpointError::TooLong);
}

#[test]
fn the_flag_for_a_demo_lets_this_machine_in_and_no_other() {
    let parse = |text| Endpoint::parse(text, Addresses::PublicAndLoopback).map(|_| ());
    for text in [
        "http://127.0.0.1:8080/1",
        "https://127.0.0.1/1",
        "http://[::1]:1/1",
        "http://localhost:1/1",
        "https://push.example/1",
    ] {
        assert_eq!(parse(text), Ok(()), "{text}");
    }
    assert_eq!(parse("http://push.example/1"), Err(EndpointError::NotHttps));
    assert_eq!(parse("http://10.0.0.1/1"), Err(EndpointError::NotHttps));
    assert_eq!(parse("https://10.0.0.1/1"), Err(EndpointError::NotPublic));
    assert_eq!(parse("http://u@localhost/1"), Err(EndpointError::UserInfo));
}

#[test]
fn an_endpoint_prints_nothing() {
    let endpoint = Endpoint::parse("https://push.example/secret", Addresses::Public).unwrap();
    assert_eq!(format!("{endpoint:?}"), "REDACTED");
}

#[tokio::test]
async fn a_name_gives_its_public_addresses_alone() {
    let mixed = [
        "10.0.0.1",
        "20.33.0.1",
        "::1",
        "::ffff:192.168.0.1",
        "2603:1030::1",
    ];
    assert_eq!(
        resolve(Addresses::Public, &mixed).await.unwrap(),
        ["20.33.0.1", "2603:1030::1"]
    );
}

#[tokio::test]
async fn a_name_that_resolves_inside_is_told_from_one_that_does_not_resolve() {
    for inside in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::ffff:127.0.0.1",
        "fd00::1",
    ] {
        let error = resolve(Addresses::Public, &[inside]).await.unwrap_err();
        assert!(error.is::<NoPublicAddress>(), "{inside}");
    }
    let error = resolve(Addresses::Public, &[]).await.unwrap_err();
    assert!(!error.is::<NoPublicAddress>());
}

#[tokio::test]
async fn with_the_flag_loopback_resolves_and_private_networks_do_not() {
    let found = ["127.0.0.1", "::1", "10.0.0.1"];
    assert_eq!(
        resolve(Addresses::PublicAndLoopback, &found).await.unwrap(),
        ["127.0.0.1", "::1"]
    );
}

#[tokio::test]
async fn the_systems_localhost_is_refused() {
    let resolver = PublicOnly::new(Arc::new(SystemNames), Addresses::Public);
    let answer = resolver.resolve("localhost".parse().unwrap()).await;
    assert!(answer.is_err_and(|error| error.is::<NoPublicAddress>()));
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics_and_never_leads_to_a_private_literal(text in ".{0,80}", host in "[0-9a-fx.:\\[\\]]{1,20}") {
        let _ = Endpoint::parse(&text, Addresses::Public);
        if let Ok(endpoint) = Endpoint::parse(&format!("https://{host}/"), Addresses::Public) {
            match endpoint.url().host().unwrap() {
                Host::Ipv4(address) => prop_assert!(is_public(address.into())),
                Host::Ipv6(address) => prop_assert!(is_public(address.into())),
                Host::Domain(name) => prop_assert!(name.contains('.')),
            }
        }
    }
}
