//! Which device a token names, however it is spelled: for limits, memories and fuses, which count devices.
//!
//! Called by the relay's edge, which hashes the identity. What is sent to a provider is always the token byte for
//! byte. Were two spellings two devices, one device would have the limits of many, and its end would look like the
//! end of many.

use std::borrow::Cow;

use url::Url;
use zeroize::Zeroizing;

use crate::{platform::Platform, redacted::Redacted};

/// The query parameter that is the channel. What else stands in a query does not count, lest it make other devices.
const CHANNEL_PARAMETER: &str = "token";

/// Bytes that are the same for all spellings of one device's token.
///
/// Apple's hexadecimal has no case. Of a channel URI, scheme and host have none either (RFC 3986, 6.2.2.1), a default
/// port and the root's dot may be there or not, and its token may be percent-encoded. FCM's tokens are opaque.
pub fn identity(platform: Platform, token: &Redacted) -> Zeroizing<Vec<u8>> {
    let text = token.expose();
    Zeroizing::new(match platform {
        Platform::Ios | Platform::Macos => text.to_ascii_lowercase().into_bytes(),
        Platform::Android => text.as_bytes().to_vec(),
        Platform::Windows => channel(text).unwrap_or_else(|| text.as_bytes().to_vec()),
    })
}

/// Host, port, path and channel, none of which can hold the line end between them. `None`: no URI of a channel.
fn channel(text: &str) -> Option<Vec<u8>> {
    let url = Url::parse(text).ok()?;
    let host = url.host_str()?;
    let host = host.strip_suffix('.').unwrap_or(host);
    let port = url.port_or_known_default()?;
    let mut tokens = url
        .query_pairs()
        .filter(|(name, value)| name.eq_ignore_ascii_case(CHANNEL_PARAMETER) && !value.is_empty());
    let channel = match (tokens.next(), tokens.next()) {
        (Some((_, token)), None) => token,
        // Which one counts, nobody knows: the whole of it does.
        (None, _) | (Some(_), Some(_)) => Cow::Borrowed(url.query().unwrap_or_default()),
    };
    Some(format!("{host}\n{port}\n{}\n{channel}", url.path()).into_bytes())
}

#[cfg(test)]
mod tests;
