//! What the operating system calls this device, in the text that an instance registers.
//!
//! | platform | what the app has | what is registered |
//! |---|---|---|
//! | iOS, macOS | `Data` of `didRegisterForRemoteNotificationsWithDeviceToken` | lower-case hexadecimal |
//! | Android | the text of `FirebaseMessaging.getToken` | the same |
//! | Windows | `PushNotificationChannel.Uri` | the same, if it is https on `notify.windows.com` |
//!
//! The shapes are checked here as the relay checks them, so that a mistake shows on the device that makes it.

use std::fmt::Write as _;

pub use sovereign_relay_protocol::platform::Environment;
use sovereign_relay_protocol::{
    platform::Platform,
    redacted::Redacted,
    token::{ChannelRule, TargetToken},
};
use thiserror::Error;

/// A device token of the right shape, with its platform. It prints no token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceToken {
    platform: Platform,
    text: Redacted,
    environment: Option<Environment>,
}

/// What was given can't be a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum TokenError {
    /// APNs gives 1 to 100 bytes.
    #[error("an APNs token has 1 to 100 bytes")]
    Apns,
    /// FCM gives 1 to 4,096 visible characters.
    #[error("an FCM token has 1 to 4,096 visible ASCII characters")]
    Fcm,
    /// Windows gives an address of its own notification service.
    #[error("a WNS channel is an https address on notify.windows.com")]
    Channel,
}

impl DeviceToken {
    /// Of an iPhone or iPad.
    pub fn ios(token: &[u8]) -> Result<Self, TokenError> {
        Self::checked(Platform::Ios, &hexadecimal(token))
    }

    /// Of a Mac, from the same call of the same kind.
    pub fn macos(token: &[u8]) -> Result<Self, TokenError> {
        Self::checked(Platform::Macos, &hexadecimal(token))
    }

    /// Of an Android device.
    pub fn android(token: &str) -> Result<Self, TokenError> {
        Self::checked(Platform::Android, token)
    }

    /// Of a Windows app: its channel's address, byte for byte.
    pub fn windows(channel_uri: &str) -> Result<Self, TokenError> {
        Self::checked(Platform::Windows, channel_uri)
    }

    /// Names Apple's environment that the app was built for, as its `aps-environment` entitlement says; a token is good in
    /// that one alone. Without it the relay's own setting decides, which for most relays is production. It is registered
    /// of Apple's devices alone.
    #[must_use]
    pub fn in_environment(mut self, environment: Environment) -> Self {
        self.environment = self.platform.is_apple().then_some(environment);
        self
    }

    /// The platform.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Apple's environment, where the app has named it.
    pub fn environment(&self) -> Option<Environment> {
        self.environment
    }

    /// The token's text. Anyone who knows it and an instance's key can send to this device: it goes to the instance and
    /// into no log.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    fn checked(platform: Platform, text: &str) -> Result<Self, TokenError> {
        let text = Redacted::new(text);
        match TargetToken::parse(platform, &text, &ChannelRule::default()) {
            Ok(_) => Ok(Self {
                platform,
                text,
                environment: None,
            }),
            Err(_) => Err(TokenError::of(platform)),
        }
    }
}

impl TokenError {
    fn of(platform: Platform) -> Self {
        match platform {
            Platform::Ios | Platform::Macos => Self::Apns,
            Platform::Android => Self::Fcm,
            Platform::Windows => Self::Channel,
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String can't fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn apple_gives_bytes_and_lower_case_hexadecimal_is_registered() {
        let token = DeviceToken::ios(&[0x00, 0x0f, 0xA0, 0xff]).unwrap();
        assert_eq!((token.platform(), token.expose()), (Platform::Ios, "000fa0ff"));
        let token = DeviceToken::macos(&[0xAB; 32]).unwrap();
        assert_eq!(
            (token.platform(), token.expose()),
            (Platform::Macos, &*"ab".repeat(32))
        );
        assert_eq!(DeviceToken::ios(&[]), Err(TokenError::Apns));
        assert_eq!(DeviceToken::macos(&[1; 101]), Err(TokenError::Apns));
    }

    #[test]
    fn apple_s_environment_is_named_of_apple_s_devices_alone() {
        let ios = DeviceToken::ios(&[1]).unwrap();
        assert_eq!(ios.environment(), None);
        let ios = ios.in_environment(Environment::Sandbox);
        assert_eq!(ios.environment(), Some(Environment::Sandbox));
        let android = DeviceToken::android("a")
            .unwrap()
            .in_environment(Environment::Sandbox);
        assert_eq!(android.environment(), None);
    }

    #[test]
    fn firebase_gives_text_and_the_same_is_registered() {
        let token = DeviceToken::android("dT0:APA91b-x_y").unwrap();
        assert_eq!(
            (token.platform(), token.expose()),
            (Platform::Android, "dT0:APA91b-x_y")
        );
        for wrong in ["", "two words", "ünicode", "line\n", &"x".repeat(4097)] {
            assert_eq!(DeviceToken::android(wrong), Err(TokenError::Fcm), "{wrong}");
        }
    }

    #[test]
    fn windows_gives_an_address_of_its_own_service_and_nothing_else_is_taken_for_one() {
        let uri = "https://db5.notify.windows.com/?token=AwYAAAB%2f";
        let token = DeviceToken::windows(uri).unwrap();
        assert_eq!((token.platform(), token.expose()), (Platform::Windows, uri));
        for wrong in [
            "",
            "http://db5.notify.windows.com/?token=A",
            "https://notify.windows.com.example/?token=A",
            "https://127.0.0.1/?token=A",
            "https://db5.notify.windows.com:8443/?token=A",
            "https://user@db5.notify.windows.com/?token=A",
        ] {
            assert_eq!(DeviceToken::windows(wrong), Err(TokenError::Channel), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        let token = DeviceToken::android("secret-token").unwrap();
        assert!(!format!("{token:?}").contains("secret"));
    }

    proptest! {
        #[test]
        fn what_apple_gives_can_be_read_back(bytes in prop::collection::vec(any::<u8>(), 1..=100)) {
            let token = DeviceToken::ios(&bytes).unwrap();
            let pairs = token.expose().as_bytes().chunks(2);
            let back: Vec<u8> = pairs
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect();
            prop_assert_eq!(back, bytes);
        }

        #[test]
        fn any_text_is_taken_as_it_is_or_refused(text in ".{0,80}") {
            for token in [DeviceToken::android(&text), DeviceToken::windows(&text)].into_iter().flatten() {
                prop_assert_eq!(token.expose(), &text);
            }
        }
    }
}
