//! Precedence and refusals of the whole configuration, without a process environment.

mod mistakes;
mod platforms;
mod secrets;
mod times;

use std::{collections::HashMap, fs, path::Path, time::Duration};

use p256::pkcs8::{EncodePrivateKey as _, LineEnding};
use proptest::prelude::*;
use sovereign_relay_protocol::platform::Platform;

use super::*;

/// A word that must never be printed; planted in every secret.
const MARK: &str = "planted-secret-mark";

pub(crate) fn load(environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load_with_flags(&[], environment)
}

fn load_with_flags(flags: &[(&str, &str)], environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let flags: Flags = flags
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut variables = HashMap::from([("HOME", "/home/relay")]);
    variables.extend(environment.iter().copied());
    Config::load(&flags, &|name| variables.get(name).map(|&value| value.to_owned()))
}

fn apple_key() -> String {
    let scalar = [7_u8; 32];
    let key = p256::SecretKey::from_slice(&scalar).unwrap();
    key.to_pkcs8_pem(LineEnding::LF).unwrap().to_string()
}

fn service_account(token_uri: Option<&str>) -> String {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256)
        .unwrap()
        .serialize_pem();
    let mut account = serde_json::json!({
        "type": "service_account", "project_id": "sovereign-test", "client_email": "relay@sovereign-test.example",
        "private_key": key, "private_key_id": "abc123",
    });
    if let Some(uri) = token_uri {
        account["token_uri"] = uri.into();
    }
    account.to_string()
}

/// The refusal, checked to be one line that names the setting and doesn't repeat the value.
pub(super) fn refusal_of(name: &str, value: &str) -> String {
    let error = load(&[(name, value)])
        .expect_err(&format!("{name}={value} was taken"))
        .to_string();
    assert!(error.contains(name), "{error} does not name {name}");
    assert_eq!(error.lines().count(), 1, "{error}");
    if value.len() > 8 {
        assert!(!error.contains(value), "{error} repeats the value");
    }
    error
}

#[test]
fn an_empty_environment_starts_a_relay_with_every_platform_off() {
    let config = load(&[]).unwrap();
    assert_eq!(config.listen.address.to_string(), "0.0.0.0:4002");
    assert_eq!(config.admin.listen.to_string(), "127.0.0.1:4003");
    assert_eq!(config.timeouts.push_deadline, Duration::from_secs(10));
    assert_eq!(config.limits.pushes_per_minute, 600);
    for platform in Platform::ALL {
        assert!(
            config.platform(platform).is_err_and(|off| !off.is_partial()),
            "{platform:?}"
        );
    }
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("relay.toml");
    fs::write(
        &path,
        "relay_push_deadline = \"3s\"\nrelay_drain_grace = 4\nrelay_pushes_per_minute = 77\n",
    )
    .unwrap();
    let file = path.to_str().unwrap();
    let environment = [
        ("RELAY_CONFIG", file),
        ("RELAY_PUSH_DEADLINE", "2s"),
        ("RELAY_DRAIN_GRACE", "3s"),
    ];
    let config = load_with_flags(&[("RELAY_PUSH_DEADLINE", "1s")], &environment).unwrap();
    assert_eq!(config.timeouts.push_deadline, Duration::from_secs(1));
    assert_eq!(config.timeouts.drain_grace, Duration::from_secs(3));
    assert_eq!(config.limits.pushes_per_minute, 77);
}

#[test]
fn an_empty_value_counts_as_unset_in_every_source() {
    let config = load_with_flags(
        &[("RELAY_LISTEN", "")],
        &[("RELAY_LISTEN", ""), ("APNS_KEY", ""), ("REDIS_URL", "")],
    );
    assert_eq!(config.unwrap().listen.address.port(), 4002);
}

#[test]
fn relay_listen_beats_port_and_hostname_is_not_read() {
    let port = |environment: &[(&str, &str)]| load(environment).unwrap().listen.address.to_string();
    assert_eq!(port(&[("PORT", "5000")]), "0.0.0.0:5000");
    assert_eq!(
        port(&[("PORT", "5000"), ("RELAY_LISTEN", "[::]:6000")]),
        "[::]:6000"
    );
    assert_eq!(
        port(&[("HOSTNAME", "0123456789ab"), ("PORT", "5000")]),
        "0.0.0.0:5000"
    );
}

#[test]
fn every_bad_value_is_told_in_one_line_that_names_it() {
    for (name, value) in [
        ("RELAY_LISTEN", "everywhere"),
        ("PORT", "65536"),
        ("PORT", "http"),
        ("RELAY_PUBLIC_URL", "my-relay.host"),
        ("RELAY_PUBLIC_URL", "https://relay.example/path"),
        ("RELAY_WORKERS", "0"),
        ("RELAY_ARBITERS", "many"),
        ("RELAY_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("RELAY_TRUSTED_PROXIES", "10.0.0.1,proxy.example"),
        ("RELAY_ENROLLMENT", "opened"),
        ("RELAY_ENROLLMENT_SECRET", "fifteen-bytes.."),
        ("RELAY_ENROLLMENT_SECRET_PREVIOUS", "0123456789abcdef,short"),
        ("APNS_KEY", "-----BEGIN PUBLIC KEY-----"),
        ("APNS_KEY_ID", "not an id"),
        ("APNS_KEY_ID", "KEY123456"),
        ("APNS_TEAM_ID", "TEAM1234567"),
        ("APNS_TEAM_ID", "TEAM/12345"),
        ("APNS_BUNDLE_ID", "fs sovereign"),
        ("APNS_BUNDLE_ID_MACOS", "fs:sovereign"),
        ("APNS_USE_SANDBOX", "sometimes"),
        ("APNS_SANDBOX_KEY", "no pem at all"),
        ("APNS_SANDBOX_KEY_ID", "KEY.123456"),
        ("APNS_ENDPOINT", "http://api.push.apple.com"),
        ("APNS_SANDBOX_ENDPOINT", "https://127.0.0.1"),
        ("RELAY_ALERT_TITLE_IOS", "a\nb"),
        ("FCM_SERVICE_ACCOUNT_JSON", "{\"project_id\":\"x\"}"),
        ("FCM_SERVICE_ACCOUNT_JSON", "/path/to/account.json"),
        ("FCM_ENDPOINT", "https://fcm.googleapis.com/v1"),
        ("WNS_PACKAGE_SID", "S-1-15-2-1"),
        ("WNS_TENANT_ID", "a/../b"),
        ("WNS_TOKEN_ENDPOINT", "https://login.live.com:8443/x"),
        ("WNS_CHANNEL_HOST_SUFFIX", "com"),
        ("WNS_CHANNEL_HOST_SUFFIX", "."),
        ("RELAY_PUSHES_PER_MINUTE", "0"),
        ("RELAY_PUSHES_PER_MINUTE", "-1"),
        ("RELAY_PUSH_DEADLINE", "500ms"),
        ("RELAY_PUSH_DEADLINE", "ten seconds"),
        ("RELAY_DRAIN_GRACE", "1h"),
        ("RELAY_ADMIN_LISTEN", "4003"),
        ("RELAY_ADMIN_TOKEN", "short-token"),
        ("RELAY_LOG", "info,[[["),
        ("RELAY_LOG_FORMAT", "yaml"),
        ("RELAY_EXTRA_CA_FILE", "/nowhere"),
        ("RELAY_ALLOW_TEST_ENDPOINTS", "perhaps"),
    ] {
        if name == "RELAY_EXTRA_CA_FILE" {
            assert!(load(&[(name, value)]).unwrap_err().to_string().contains(name));
            continue;
        }
        refusal_of(name, value);
    }
}

#[test]
fn a_redis_url_that_is_none_is_refused_without_its_password() {
    let error = refusal_of("REDIS_URL", "http://user:password@host");
    assert!(
        error.contains("redis://") && !error.contains("password"),
        "{error}"
    );
}

#[test]
fn unknown_keys_of_the_file_are_refused_with_a_hint() {
    let refused = |text: &str| File::parse(text).err().unwrap().to_string();
    assert!(refused("apns_kid = \"x\"").contains("`apns_kid` is not a setting"));
    assert!(refused("relay_push_deadlin = 1").contains("did you mean `relay_push_deadline`?"));
    assert!(refused("RELAY_LISTEN = \"0.0.0.0:1\"").contains("did you mean `relay_listen`?"));
    assert!(refused("relay_listen = [1]").contains("relay_listen"));
    assert!(refused("[apns]\nkey = 1").contains("`apns`"));
}

#[test]
fn a_variable_that_looks_like_a_setting_and_is_none_is_warned_of_with_a_hint() {
    let names = [
        "RELAY_SIGNAL_BRUST",
        "RELAY_LOG",
        "RELAY_ADMIN_TOKEN_FILE",
        "RELAY_RACE\n",
        "RELAYED",
        "APNS_KEYS",
    ];
    let mut config = load(&[("RELAY_PUBLIC_URL", "https://relay.example")]).unwrap();
    config.warnings.clear();
    config.warn_of_unknown(names.map(str::to_owned).into_iter());
    assert_eq!(
        config.warnings,
        [
            "RELAY_RACE\\n (environment) is not a setting and is ignored",
            "RELAY_SIGNAL_BRUST (environment) is not a setting and is ignored; did you mean RELAY_SIGNAL_BURST?",
        ]
    );
}

#[test]
fn without_a_public_url_peers_may_be_sent_to_ws_and_the_operator_is_told() {
    let told = |settings: &[(&str, &str)]| {
        let warnings = load(settings).unwrap().warnings;
        warnings
            .iter()
            .any(|warning| warning.starts_with("RELAY_PUBLIC_URL is not set"))
    };
    assert!(told(&[]));
    assert!(!told(&[("RELAY_PUBLIC_URL", "https://relay.example")]));
}

#[test]
fn a_file_that_is_no_toml_is_told_by_its_line_and_not_by_its_content() {
    let error = File::parse(&format!("relay_log = \"info\"\napns_key = {MARK}\n"))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("line 2"), "{error}");
    assert!(!error.contains(MARK), "{error}");
    assert!(
        load(&[("RELAY_CONFIG", "/nowhere/relay.toml")])
            .unwrap_err()
            .to_string()
            .contains("/nowhere/relay.toml")
    );
}

#[test]
fn proxies_are_named_by_default_warned_of_and_may_be_none() {
    let config = load(&[]).unwrap();
    assert!(
        config.proxies.by_default && config.proxies.trusted.len() == crate::defaults::TRUSTED_PROXIES.len()
    );
    assert!(
        config
            .warnings
            .iter()
            .any(|warning| warning.contains("RELAY_TRUSTED_PROXIES"))
    );
    let named = load(&[("RELAY_TRUSTED_PROXIES", "192.0.2.7, 2001:db8::/32")])
        .unwrap()
        .proxies;
    let named: Vec<_> = named.trusted.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["192.0.2.7/32", "2001:db8::/32"]);
    assert!(
        load(&[("RELAY_TRUSTED_PROXIES", "none")])
            .unwrap()
            .proxies
            .trusted
            .is_empty()
    );
}

#[test]
fn state_is_kept_in_the_users_folder_when_nothing_else_is_there() {
    if Path::new(crate::defaults::SYSTEM_DATA_DIR).exists() {
        return;
    }
    let folder = |environment: &[(&str, &str)]| load(environment).unwrap().storage.data_dir;
    assert_eq!(folder(&[]), Path::new("/home/relay/.local/state/sovereign-relay"));
    assert_eq!(
        folder(&[("XDG_STATE_HOME", "/state")]),
        Path::new("/state/sovereign-relay")
    );
    assert_eq!(
        folder(&[("XDG_STATE_HOME", "relative")]),
        Path::new("/home/relay/.local/state/sovereign-relay")
    );
    assert_eq!(folder(&[("RELAY_DATA_DIR", "/data")]), Path::new("/data"));
    let error = load(&[("HOME", "")]).unwrap_err().to_string();
    assert!(error.starts_with("RELAY_DATA_DIR is not set"), "{error}");
}

#[test]
fn the_readme_lists_exactly_the_settings_that_exist() {
    let readme = include_str!("../../README.md");
    let table = readme
        .split_once("| name | default | what it does |\n|---|---|---|\n")
        .unwrap()
        .1;
    let listed: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let row = |setting: &setting::Setting| {
        let mark = if setting.kind == setting::Kind::Secret {
            " (secret)"
        } else {
            ""
        };
        format!(
            "| `{}`{mark} | {} | {} |",
            setting.name, setting.default, setting.help
        )
    };
    let expected: Vec<String> = setting::ALL.iter().map(row).collect();
    assert_eq!(listed, expected);
}

/// A configuration with [`MARK`], or a known key, in every secret.
pub(crate) fn everything_secret() -> (Config, Vec<String>) {
    let (key, account) = (apple_key(), service_account(None));
    let marked = format!("{MARK}-0123456789abcdef0123456789");
    let config = load(&[
        ("RELAY_ENROLLMENT_SECRET", &marked),
        ("RELAY_ENROLLMENT_SECRET_PREVIOUS", &format!("{marked},{marked}")),
        ("RELAY_ADMIN_TOKEN", &marked),
        ("APNS_KEY", &key),
        ("APNS_KEY_ID", "KEY1234567"),
        ("APNS_TEAM_ID", "TEAM123456"),
        ("APNS_BUNDLE_ID", "fs.sovereign.mobile"),
        ("FCM_SERVICE_ACCOUNT_JSON", &account),
        ("WNS_PACKAGE_SID", "ms-app://S-1-15-2-123"),
        ("WNS_CLIENT_SECRET", &marked),
        ("TURN_URIS", "turn:turn.example"),
        ("TURN_SECRET", &marked),
        ("HTTPS_PROXY", &format!("http://user:{MARK}@proxy.example")),
    ]);
    let rsa_line = account.split("\\n").nth(3).unwrap().to_owned();
    let apple_line = key.lines().nth(1).unwrap().to_owned();
    (config.unwrap(), vec![MARK.to_owned(), rsa_line, apple_line])
}

proptest! {
    #[test]
    fn no_value_of_any_setting_makes_loading_panic(index in 0..setting::ALL.len(), value in "\\PC{0,60}") {
        prop_assume!(setting::ALL[index].name != "RELAY_CONFIG");
        if let Err(error) = load(&[(setting::ALL[index].name, &value)]) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn no_file_makes_parsing_panic(text in "[a-z_]{0,12}( = [\"a-z0-9\\[\\]{}.]{0,8})?\n?") {
        let _ = File::parse(&text);
    }
}
