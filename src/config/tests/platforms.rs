//! Which platforms are on, and what the others lack.

use sovereign_relay_protocol::platform::{Environment, Platform};

use super::{apple_key, load, service_account};
use crate::config::Config;

#[test]
fn a_missing_apple_credential_only_switches_apple_off_and_says_what_is_missing() {
    let config = load(&[
        ("APNS_KEY", &apple_key()),
        ("APNS_KEY_ID", "KEY1234567"),
        ("APNS_BUNDLE_ID", "fs.sovereign"),
    ])
    .unwrap();
    let off = config.platform(Platform::Ios).unwrap_err();
    assert_eq!(off.to_string(), "APNS_TEAM_ID is not set");
    assert!(
        config
            .warnings
            .contains(&"APNs is off: APNS_TEAM_ID is not set".to_owned()),
        "{:?}",
        config.warnings
    );
}

#[test]
fn one_apple_key_serves_both_environments_unless_the_sandbox_has_its_own() {
    let key = apple_key();
    let both = [
        ("APNS_KEY", key.as_str()),
        ("APNS_KEY_ID", "KEY1234567"),
        ("APNS_TEAM_ID", "TEAM123456"),
        ("APNS_BUNDLE_ID", "a.b"),
    ];
    let config = load(&both).unwrap();
    assert_eq!(config.apns.sandbox_key.as_ref().unwrap().key_id, "KEY1234567");
    assert_eq!(config.apns.default_environment, Environment::Production);
    assert_eq!(config.platform(Platform::Ios), Ok(()));
    assert_eq!(
        config.platform(Platform::Macos).unwrap_err().to_string(),
        "APNS_BUNDLE_ID_MACOS is not set"
    );
    let own = [
        both.as_slice(),
        &[
            ("APNS_SANDBOX_KEY", &key),
            ("APNS_SANDBOX_KEY_ID", "KEY2345678"),
            ("APNS_USE_SANDBOX", "1"),
        ],
    ];
    let config = load(&own.concat()).unwrap();
    assert_eq!(
        config.apns.key(Environment::Sandbox).as_ref().unwrap().key_id,
        "KEY2345678"
    );
    assert_eq!(
        config.apns.key(Environment::Production).as_ref().unwrap().key_id,
        "KEY1234567"
    );
    assert_eq!(config.apns.default_environment, Environment::Sandbox);
    let half = [both.as_slice(), &[("APNS_SANDBOX_KEY", &key)]].concat();
    assert_eq!(
        load(&half).unwrap().apns.sandbox_key.unwrap_err().missing(),
        ["APNS_SANDBOX_KEY_ID"]
    );
}

#[test]
fn a_key_for_the_environment_that_is_not_the_default_leaves_apple_off_for_pushes_that_name_none() {
    let key = apple_key();
    let sandbox_alone = [
        ("APNS_SANDBOX_KEY", key.as_str()),
        ("APNS_SANDBOX_KEY_ID", "KEY1234567"),
        ("APNS_TEAM_ID", "TEAM123456"),
        ("APNS_BUNDLE_ID", "a.b"),
    ];
    let config = load(&sandbox_alone).unwrap();
    assert_eq!(
        config.platform(Platform::Ios).unwrap_err().missing(),
        ["APNS_KEY", "APNS_KEY_ID"]
    );
    assert_eq!(config.platform_in(Platform::Ios, Environment::Sandbox), Ok(()));
    assert_eq!(config.apns.only_by_name(), Some(Environment::Sandbox));
    let told = "Apple pushes that name no environment are refused: they are for production, where APNS_KEY, APNS_KEY_ID \
                are not set; APNS_USE_SANDBOX=true sends them to sandbox, which has a key";
    let of_apple = |config: &Config| {
        let lines = config.warnings.iter().filter(|line| line.contains("AP"));
        lines.cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_apple(&config), [told]);
    let default = [sandbox_alone.as_slice(), &[("APNS_USE_SANDBOX", "true")]].concat();
    let config = load(&default).unwrap();
    assert_eq!(config.platform(Platform::Ios), Ok(()));
    assert_eq!(config.apns.only_by_name(), None);
}

#[test]
fn a_sandbox_without_a_whole_key_leaves_apple_off_where_it_is_the_default() {
    let key = apple_key();
    let settings = [
        ("APNS_KEY", key.as_str()),
        ("APNS_KEY_ID", "KEY1234567"),
        ("APNS_TEAM_ID", "TEAM123456"),
        ("APNS_BUNDLE_ID_MACOS", "a.b"),
        ("APNS_SANDBOX_KEY_ID", "KEY2345678"),
        ("APNS_USE_SANDBOX", "true"),
    ];
    let config = load(&settings).unwrap();
    assert_eq!(
        config.platform(Platform::Macos).unwrap_err().missing(),
        ["APNS_SANDBOX_KEY"]
    );
    assert_eq!(config.apns.only_by_name(), Some(Environment::Production));
    assert_eq!(
        config.platform_in(Platform::Macos, Environment::Production),
        Ok(())
    );
}

#[test]
fn an_id_of_apple_has_ten_letters_and_digits_and_a_pasted_blank_is_forgiven() {
    let key_id = |text: &str| {
        let settings = [
            ("APNS_KEY", apple_key()),
            ("APNS_KEY_ID", text.to_owned()),
            ("APNS_TEAM_ID", "TEAM123456".to_owned()),
        ];
        let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
        load(&settings).map(|config| config.apns.production_key.unwrap().key_id)
    };
    assert_eq!(key_id(" KEY1234567\n").unwrap(), "KEY1234567");
    for wrong in ["KEY123456", "KEY12345678", "KEY-123456", "KEY123456\u{e4}"] {
        let error = key_id(wrong).unwrap_err().to_string();
        let expected =
            "APNS_KEY_ID (environment): must be the 10 letters and digits that Apple's developer site shows";
        assert_eq!(error, expected, "{wrong}");
    }
}

#[test]
fn a_key_whose_line_breaks_were_written_out_is_understood() {
    let escaped = apple_key().replace('\n', "\\n");
    assert!(load(&[("APNS_KEY", &escaped)]).is_ok());
}

#[test]
fn a_service_account_may_leave_out_token_uri_but_not_send_its_assertion_anywhere() {
    let account = service_account(None);
    let config = load(&[("FCM_SERVICE_ACCOUNT_JSON", &account)]).unwrap();
    assert_eq!(
        config.fcm.account.as_ref().unwrap().token_uri.as_str(),
        "https://oauth2.googleapis.com/token"
    );
    assert_eq!(config.platform(Platform::Android), Ok(()));
    let elsewhere = service_account(Some("http://127.0.0.1:1/token"));
    assert!(
        load(&[("FCM_SERVICE_ACCOUNT_JSON", &elsewhere)])
            .unwrap_err()
            .to_string()
            .contains("token_uri must be https")
    );
    let tests = [
        ("FCM_SERVICE_ACCOUNT_JSON", elsewhere.as_str()),
        ("RELAY_ALLOW_TEST_ENDPOINTS", "true"),
    ];
    let config = load(&tests).unwrap();
    assert!(
        config
            .warnings
            .iter()
            .any(|warning| warning.contains("RELAY_ALLOW_TEST_ENDPOINTS"))
    );
}

#[test]
fn windows_is_one_kind_of_app_or_the_other() {
    let secret = ("WNS_CLIENT_SECRET", "secret");
    let legacy = ("WNS_PACKAGE_SID", "ms-app://S-1-15-2-123");
    let config = load(&[legacy, secret]).unwrap();
    assert_eq!(
        config.wns.token_endpoint.as_str(),
        "https://login.live.com/accesstoken.srf"
    );
    let entra = [
        ("WNS_TENANT_ID", "11111111-2222"),
        ("WNS_CLIENT_ID", "app"),
        secret,
    ];
    let config = load(&entra).unwrap();
    let endpoint = "https://login.microsoftonline.com/11111111-2222/oauth2/v2.0/token";
    assert_eq!(config.wns.token_endpoint.as_str(), endpoint);
    let error = load(&[legacy, entra[0], secret]).unwrap_err().to_string();
    assert!(
        error.starts_with("WNS_PACKAGE_SID and WNS_TENANT_ID are both set"),
        "{error}"
    );
    let half = load(&[entra[0], secret]).unwrap();
    assert_eq!(
        half.platform(Platform::Windows).unwrap_err().to_string(),
        "WNS_CLIENT_ID is not set"
    );
}
