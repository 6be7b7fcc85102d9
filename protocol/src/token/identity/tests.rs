use proptest::prelude::*;

use super::*;

const CHANNEL: &str = "https://db5p.notify.windows.com/?token=AwYA%2bBq%3d";

fn of(platform: Platform, token: &str) -> Zeroizing<Vec<u8>> {
    identity(platform, &Redacted::new(token))
}

#[test]
fn a_channel_is_one_device_however_its_uri_is_spelled() {
    for spelling in [
        "HTTPS://DB5P.Notify.WINDOWS.com/?token=AwYA%2bBq%3d",
        "https://db5p.notify.windows.com./?token=AwYA%2bBq%3d",
        "https://db5p.notify.windows.com:443/?token=AwYA%2bBq%3d",
        "https://db5p.notify.windows.com.:443/?token=AwYA%2bBq%3d",
        "https://db5p.notify.windows.com/?token=AwYA%2BBq%3D",
        "https://db5p.notify.windows.com/?token=%41wYA%2bBq%3d",
        "https://db5p.notify.windows.com/?x=1&token=AwYA%2bBq%3d&token=",
        "https://db5p.notify.windows.com?Token=AwYA%2bBq%3d",
    ] {
        assert_eq!(
            of(Platform::Windows, spelling),
            of(Platform::Windows, CHANNEL),
            "{spelling}"
        );
    }
}

#[test]
fn other_channels_are_other_devices() {
    for other in [
        "https://db5p.notify.windows.com/?token=AwYA%2bBq%3e",
        "https://db5p.notify.windows.com/?token=awya%2bbq%3d",
        "https://bn2p.notify.windows.com/?token=AwYA%2bBq%3d",
        "https://db5p.notify.windows.com/w/?token=AwYA%2bBq%3d",
        "https://db5p.notify.windows.com/AwYA%2bBq%3d",
        "https://db5p.notify.windows.com/?token=AwYA%2bBq%3d&token=x",
        "https://db5p.notify.windows.com",
        "no URI",
    ] {
        assert_ne!(
            of(Platform::Windows, other),
            of(Platform::Windows, CHANNEL),
            "{other}"
        );
    }
    assert_ne!(
        of(Platform::Windows, "https://a.notify.windows.com/1"),
        of(Platform::Windows, "https://a.notify.windows.com/2")
    );
}

#[test]
fn case_counts_at_fcm_and_not_in_apples_hexadecimal() {
    assert_eq!(of(Platform::Ios, "aBcD"), of(Platform::Ios, "AbCd"));
    assert_ne!(of(Platform::Android, "aBcD"), of(Platform::Android, "abcd"));
}

proptest! {
    #[test]
    fn any_text_has_an_identity_and_the_same_each_time(text in "\\PC{0,80}") {
        for platform in Platform::ALL {
            prop_assert_eq!(of(platform, &text), of(platform, &text));
        }
    }

    #[test]
    fn no_spelling_of_the_hosts_case_makes_another_device(upper in proptest::collection::vec(any::<bool>(), 32)) {
        let mut spelled = CHANNEL.to_owned();
        for (place, _) in upper.iter().enumerate().filter(|(_, upper)| **upper) {
            let letter = spelled[place..=place].to_ascii_uppercase();
            spelled.replace_range(place..=place, &letter);
        }
        prop_assert_eq!(of(Platform::Windows, &spelled), of(Platform::Windows, CHANNEL));
    }
}
