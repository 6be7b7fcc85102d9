//! Text to values. Complaints are half sentences that follow the setting's name, and never repeat the value:
//! it may have been meant for a neighbouring secret.

use std::{net::SocketAddr, num::NonZeroUsize, ops::RangeInclusive, time::Duration};

use crate::defaults;

/// Of memory, the largest first.
const UNITS: [(&str, usize); 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

/// `true` or `false`, and the usual other words for it.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// `127.0.0.1:4003`, `[::1]:4003`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.trim()
        .parse()
        .map_err(|_| "must be an address and a port, like 0.0.0.0:4002 or [::]:4002".to_owned())
}

/// 0 to 65535; 0 lets the system choose.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    text.trim()
        .parse()
        .map_err(|_| "must be a port, 0 to 65535".to_owned())
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number: Option<NonZeroUsize> = text.trim().parse().ok();
    number
        .filter(|number| number.get() <= defaults::THREADS_MAX)
        .ok_or_else(|| format!("must be a whole number, 1 to {}", defaults::THREADS_MAX))
}

/// A whole number within `range`.
pub(crate) fn number(range: RangeInclusive<u32>) -> impl FnOnce(&str) -> Result<u32, String> {
    move |text| {
        let number = text.trim().parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("must be a whole number, {} to {}", range.start(), range.end()))
    }
}

/// A duration of at least a second, as a flag of a command: `30m`, `24h`, `7d`. Never a bare number: who means days would
/// get seconds.
pub(crate) fn duration_flag(longest: Duration) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let has_unit = !text.trim().ends_with(|last: char| last.is_ascii_digit());
        let parsed = parse_duration(text.trim()).filter(|_| has_unit);
        let parsed = parsed.ok_or("must be a time with its unit, like 30m, 24h or 7d")?;
        if (Duration::from_secs(1)..=longest).contains(&parsed) {
            return Ok(parsed);
        }
        let days = longest.as_secs() / 86_400;
        Err(format!("must be within 1s and {days}d"))
    }
}

/// A duration within `range`: `10s`, `500ms`, `1m`, or plain seconds.
pub(crate) fn duration(range: RangeInclusive<Duration>) -> impl FnOnce(&str) -> Result<Duration, String> {
    move |text| {
        let parsed = parse_duration(text.trim()).ok_or("must be a time like 10s, 500ms or 1m")?;
        if range.contains(&parsed) {
            return Ok(parsed);
        }
        Err(format!(
            "must be within {} and {}",
            in_seconds(*range.start()),
            in_seconds(*range.end())
        ))
    }
}

fn in_seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    match unit.trim_start() {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        "d" => number.checked_mul(86_400).map(Duration::from_secs),
        _ => None,
    }
}

/// An amount of memory within `range`: `32MiB`, `512KiB`, or plain bytes.
pub(crate) fn bytes(range: RangeInclusive<usize>) -> impl FnOnce(&str) -> Result<usize, String> {
    move |text| {
        let parsed = parse_bytes(text.trim())
            .ok_or("must be an amount like 512KiB, 32MiB, 1GiB or 1TiB, or plain bytes")?;
        if range.contains(&parsed) {
            return Ok(parsed);
        }
        let [least, most] = [range.start(), range.end()].map(|amount| in_units(*amount));
        Err(format!("must be within {least} and {most}"))
    }
}

/// In the largest unit of which it is a whole number.
fn in_units(amount: usize) -> String {
    let whole = UNITS
        .iter()
        .find(|(_, bytes)| amount != 0 && amount.is_multiple_of(*bytes));
    whole.map_or_else(
        || format!("{amount} bytes"),
        |(unit, bytes)| format!("{}{unit}", amount / bytes),
    )
}

fn parse_bytes(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: usize = number.parse().ok()?;
    let bytes = match unit.trim_start() {
        "" | "B" => 1,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    number.checked_mul(bytes)
}

/// Text of 1 to `most` characters, none of them a control character.
pub(crate) fn label(most: usize) -> impl FnOnce(&str) -> Result<String, String> {
    move |text| {
        let fits = text.chars().count() <= most && !text.chars().any(char::is_control);
        fits.then(|| text.to_owned())
            .ok_or_else(|| format!("must be at most {most} characters, without control characters"))
    }
}

/// An identifier: visible ASCII that needs no escaping in a header or a path.
pub(crate) fn identifier(text: &str) -> Result<String, String> {
    let trimmed = text.trim();
    let shaped = (1..=255).contains(&trimmed.len())
        && trimmed
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    shaped
        .then(|| trimmed.to_owned())
        .ok_or_else(|| "must be 1 to 255 letters, digits, dots, hyphens and underscores".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_carry_their_unit() {
        let any = || Duration::ZERO..=Duration::from_secs(86_400);
        for (text, millis) in [
            ("10s", 10_000),
            ("500ms", 500),
            ("1m", 60_000),
            ("7", 7000),
            ("2h", 7_200_000),
            (" 3 s ", 3000),
        ] {
            assert_eq!(duration(any())(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "10x",
            "-1s",
            "1.5s",
            "10 seconds",
            "99999999999999999999s",
            "18446744073709551615m",
        ] {
            assert!(duration(any())(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_outside_its_range_is_refused_with_the_range() {
        let range = Duration::from_secs(1)..=Duration::from_secs(60);
        assert_eq!(
            duration(range)("61s"),
            Err("must be within 1s and 60s".to_owned())
        );
        assert_eq!(
            duration(Duration::ZERO..=Duration::from_millis(1500))("2s"),
            Err("must be within 0s and 1.5s".to_owned())
        );
    }

    #[test]
    fn amounts_of_memory_carry_their_unit() {
        let any = || 1..=usize::MAX;
        for (text, amount) in [
            ("7", 7),
            (" 2KiB ", 2048),
            ("32 MiB", 32 << 20),
            ("1GiB", 1 << 30),
            ("1TiB", 1 << 40),
            ("5B", 5),
        ] {
            assert_eq!(bytes(any())(text), Ok(amount), "{text}");
        }
        for text in [
            "",
            "MiB",
            "1MB",
            "1.5MiB",
            "-1",
            "0",
            "99999999999999999999",
            "18446744073709551615GiB",
        ] {
            assert!(bytes(any())(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_amount_is_refused_for_its_unit_or_with_its_range() {
        let refused = |text| bytes(24 << 10..=1 << 40)(text).unwrap_err();
        for text in ["32MB", "32M", "much"] {
            assert!(refused(text).contains("an amount like"), "{text}");
        }
        assert_eq!(refused("2TiB"), "must be within 24KiB and 1TiB");
        assert_eq!(
            bytes(7..=1025)("1"),
            Err("must be within 7 bytes and 1025 bytes".to_owned())
        );
    }

    #[test]
    fn a_time_on_the_command_line_needs_its_unit() {
        let parse = duration_flag(Duration::from_secs(366 * 86_400));
        assert_eq!(parse("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for text in ["7", "10", " 60 ", "soon", "d"] {
            assert!(parse(text).unwrap_err().contains("its unit"), "{text}");
        }
        for text in ["367d", "0s", "500ms"] {
            assert_eq!(
                parse(text),
                Err("must be within 1s and 366d".to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn switches_are_words_and_nothing_else() {
        assert_eq!(switch("TRUE"), Ok(true));
        assert_eq!(switch("0"), Ok(false));
        assert!(switch("maybe").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,40}") {
            let _ = (switch(&text), address(&text), port(&text), threads(&text), identifier(&text));
            let _ = duration(Duration::ZERO..=Duration::MAX)(&text);
            let _ = number(1..=5)(&text);
            let _ = bytes(1..=5)(&text);
            let _ = label(5)(&text);
        }
    }
}
