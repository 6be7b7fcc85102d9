//! What would start and do something else than was meant, or not start at all, is told beforehand.

use super::*;

#[test]
fn a_log_filter_that_would_say_nothing_for_ever_is_refused() {
    for filter in [
        "inof",
        "warning",
        "info,debg",
        "actix_server=warn",
        "sovereing_relay=debug",
        "info,a=loud",
    ] {
        assert!(
            refusal_of("RELAY_LOG", filter).contains("tracing filter"),
            "{filter}"
        );
    }
    for filter in [
        "info",
        "WARN",
        "off",
        "info,actix_server=warn",
        "sovereign_relay",
        "sovereign_relay_actors=trace,h2=warn",
        "info,[push{platform=ios}]=debug",
        "[push]=debug",
    ] {
        let config = load(&[("RELAY_LOG", filter)]);
        assert_eq!(config.unwrap().logging.filter, filter);
    }
}

#[test]
fn a_flag_for_the_port_beats_an_address_of_a_weaker_source_and_opens_it_to_nobody_else() {
    let listen = |flags: &[(&str, &str)], environment: &[(&str, &str)]| {
        let config = load_with_flags(flags, environment).unwrap();
        config.listen.address.to_string()
    };
    let (address, port) = (("RELAY_LISTEN", "127.0.0.1:4100"), ("PORT", "5555"));
    assert_eq!(listen(&[port], &[address]), "127.0.0.1:5555");
    assert_eq!(listen(&[port, address], &[]), "127.0.0.1:4100");
    assert_eq!(listen(&[], &[port, address]), "127.0.0.1:4100");
    assert_eq!(listen(&[port], &[]), "0.0.0.0:5555");
}

#[test]
fn two_listeners_at_one_place_are_refused_by_name_and_any_two_that_both_fit_are_not() {
    let both = |public, admin| load(&[("RELAY_LISTEN", public), ("RELAY_ADMIN_LISTEN", admin)]);
    for (public, admin) in [
        ("127.0.0.1:4002", "127.0.0.1:4002"),
        ("0.0.0.0:4003", "127.0.0.1:4003"),
        ("127.0.0.1:4002", "0.0.0.0:4002"),
        ("[::]:4002", "127.0.0.1:4002"),
        ("[::]:4002", "[::1]:4002"),
    ] {
        let error = both(public, admin).unwrap_err().to_string();
        let is_told = error.contains("RELAY_LISTEN and RELAY_ADMIN_LISTEN") && error.contains(admin);
        assert!(is_told, "{error}");
    }
    for (public, admin) in [
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("127.0.0.1:4002", "127.0.0.2:4002"),
        ("0.0.0.0:4002", "[::1]:4002"),
        ("0.0.0.0:4002", "127.0.0.1:4003"),
    ] {
        assert!(both(public, admin).is_ok(), "{public} {admin}");
    }
}

#[test]
fn a_file_where_a_folder_or_a_certificate_should_be_is_refused_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "nothing\n").unwrap();
    let (below, file) = (file.join("data"), file.to_str().unwrap());
    for place in [file, below.to_str().unwrap()] {
        assert!(refusal_of("RELAY_DATA_DIR", place).contains("must be a folder"));
    }
    let later = folder.path().join("made/at/the/start");
    assert!(load(&[("RELAY_DATA_DIR", later.to_str().unwrap())]).is_ok());

    let refused = |text: &str| {
        fs::write(file, text).unwrap();
        load(&[("RELAY_EXTRA_CA_FILE", file)])
    };
    let begun = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    for (text, problem) in [("root:x:0:0\n", "holds no certificate"), (begun, "is not PEM")] {
        let error = refused(text).unwrap_err().to_string();
        assert!(
            error.starts_with("RELAY_EXTRA_CA_FILE") && error.contains(problem),
            "{error}"
        );
    }
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    assert!(refused(&own.cert.pem()).is_ok());
}

#[test]
fn a_file_that_names_another_is_told_that_it_can_not() {
    let error = File::parse("relay_config = \"other.toml\"").err().unwrap();
    let told = error.to_string();
    assert!(
        told.contains("a file can't name another") && !told.contains("did you mean"),
        "{told}"
    );
}

#[test]
fn what_is_off_names_all_that_it_lacks() {
    let config = load(&[]).unwrap();
    let lacks = |platform| config.platform(platform).unwrap_err().to_string();
    assert_eq!(
        lacks(Platform::Ios),
        "APNS_KEY, APNS_KEY_ID, APNS_TEAM_ID, APNS_BUNDLE_ID are not set"
    );
    assert_eq!(
        lacks(Platform::Windows),
        "WNS_PACKAGE_SID, WNS_CLIENT_SECRET are not set (of a Windows App SDK app: WNS_TENANT_ID, WNS_CLIENT_ID, \
         WNS_CLIENT_SECRET)"
    );
}

#[test]
fn an_identifier_that_is_too_long_is_told_so() {
    let long = "x".repeat(300);
    assert!(refusal_of("APNS_BUNDLE_ID", &long).contains("1 to 255"));
}
