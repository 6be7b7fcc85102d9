//! `keygen`: keys for trying things out and for configuring a relay.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use clap::Subcommand;
use serde::Serialize;
use sovereign_relay_actors::ports::Entropy as _;
use sovereign_relay_protocol::seal::DeviceKey;
use zeroize::Zeroizing;

use super::{exit::CommandError, output};
use crate::{defaults::SECRET_BYTES_GOOD, entropy::SystemEntropy};

/// `keygen`.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// A device's key pair: the private scalar in hexadecimal, the public point in base64
    Device(Args),
    /// A secret for RELAY_ENROLLMENT_SECRET or RELAY_ADMIN_TOKEN: 32 random bytes in base64url
    Secret(Args),
}

/// How to print it.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DevicePair<'a> {
    device_private_key_hex: &'a str,
    device_public_key_base64: &'a str,
}

#[derive(Serialize)]
struct Secret<'a> {
    secret: &'a str,
}

/// Does it.
pub(crate) fn run(command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Device(args) => device(args),
        Command::Secret(args) => secret(args),
    }
}

fn device(args: &Args) -> Result<(), CommandError> {
    let key = DeviceKey::generate(|bytes| SystemEntropy.fill(bytes)).map_err(CommandError::failed)?;
    let private_key = Zeroizing::new(hex(&*key.expose_scalar()));
    let public_key = key.public_key().to_base64();
    if args.json {
        let pair = DevicePair {
            device_private_key_hex: &private_key,
            device_public_key_base64: &public_key,
        };
        return output::print_json(&pair);
    }
    output::print(&format!("private {}\npublic  {public_key}", *private_key))
}

fn secret(args: &Args) -> Result<(), CommandError> {
    let mut bytes = Zeroizing::new([0_u8; SECRET_BYTES_GOOD]);
    SystemEntropy.fill(&mut *bytes);
    let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes));
    if args.json {
        output::print_json(&Secret { secret: &secret })
    } else {
        output::print(&secret)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_two_digits_each() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }
}
