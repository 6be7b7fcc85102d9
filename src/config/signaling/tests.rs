use proptest::prelude::*;
use sovereign_relay_protocol::signal::session::SessionLimits;

use super::*;
use crate::config::{
    Config,
    tests::{load, refusal_of},
};

const SECRET: &str = "a secret shared with coturn";

fn signaling(settings: &[(&str, &str)]) -> Signaling {
    load(settings).unwrap().signaling
}

#[test]
fn nothing_set_means_the_defaults_and_no_turn() {
    let signaling = signaling(&[]);
    assert_eq!(
        (signaling.sessions_per_minute, signaling.turn_per_minute),
        (120, 30)
    );
    assert_eq!(signaling.rules, SessionRules::default());
    assert_eq!(signaling.bounds, SessionBounds::default());
    assert_eq!(signaling.door, DoorBounds::default());
    assert!(signaling.allowed_origins.is_empty());
    assert_eq!(signaling.turn_for, TurnFor::Allowed);
    assert!(signaling.turn.is_err_and(|off| !off.is_partial()));
}

#[test]
fn limits_are_what_the_operator_says() {
    let signaling = signaling(&[
        ("RELAY_SESSIONS_PER_MINUTE", "7"),
        ("RELAY_SESSIONS_PER_INSTANCE", "8"),
        ("RELAY_TURN_PER_MINUTE", "9"),
        ("RELAY_INSTANCE_MAILBOXES", "1MiB"),
        ("RELAY_MAILBOXES", "2GiB"),
    ]);
    assert_eq!((signaling.sessions_per_minute, signaling.turn_per_minute), (7, 9));
    let bounds = SessionBounds {
        sessions_per_instance: 8,
        instance_bytes: 1 << 20,
        total_bytes: 2 << 30,
    };
    assert_eq!(signaling.bounds, bounds);
}

#[test]
fn what_one_session_may_carry_is_what_the_operator_says() {
    let signaling = signaling(&[
        ("RELAY_SIGNAL_FRAME_BYTES", "25KiB"),
        ("RELAY_SIGNAL_MESSAGES_PER_SECOND", "1"),
        ("RELAY_SIGNAL_BURST", "2"),
        ("RELAY_SIGNAL_MAILBOX_MESSAGES", "3"),
        ("RELAY_SIGNAL_MAILBOX_BYTES", "26KiB"),
        ("RELAY_SIGNAL_SESSION_MESSAGES", "4"),
        ("RELAY_SIGNAL_LOADS_PER_MINUTE", "5"),
        ("RELAY_SIGNAL_RESUMES_PER_MINUTE", "6"),
    ]);
    let rules = SessionRules {
        limits: SessionLimits {
            frame_bytes: 25 << 10,
            messages_per_second: 1,
            burst: 2,
            mailbox_messages: 3,
            mailbox_bytes: 26 << 10,
        },
        messages: 4,
        loads_per_minute: 5,
        resumes_per_minute: 6,
    };
    assert_eq!(signaling.rules, rules);
}

#[test]
fn what_strangers_and_sockets_may_do_is_what_the_operator_says() {
    let signaling = signaling(&[
        ("RELAY_SIGNAL_BAD_TICKETS_PER_MINUTE", "1"),
        ("RELAY_SIGNAL_SOCKETS_BEFORE_HELLO_PER_ADDRESS", "2"),
        ("RELAY_SIGNAL_SOCKETS_BEFORE_HELLO", "3"),
        ("RELAY_SIGNAL_SOCKETS_PER_ADDRESS", "4"),
        ("RELAY_SIGNAL_SOCKETS", "5"),
    ]);
    let bounds = DoorBounds {
        bad_tickets_per_minute: 1,
        sockets_per_address: 2,
        sockets: 3,
        welcomed_per_address: Some(4),
        welcomed: Some(5),
    };
    assert_eq!(signaling.door, bounds);
}

#[test]
fn what_does_not_fit_into_another_bound_is_refused_and_both_are_named() {
    for (set, part, whole) in [
        (
            &[("RELAY_SIGNAL_FRAME_BYTES", "1MiB")][..],
            "RELAY_SIGNAL_FRAME_BYTES",
            "RELAY_SIGNAL_MAILBOX_BYTES",
        ),
        (
            &[("RELAY_SIGNAL_MAILBOX_BYTES", "33MiB")],
            "RELAY_SIGNAL_MAILBOX_BYTES",
            "RELAY_INSTANCE_MAILBOXES",
        ),
        (
            &[
                ("RELAY_SIGNAL_MAILBOX_BYTES", "1GiB"),
                ("RELAY_INSTANCE_MAILBOXES", "1GiB"),
            ],
            "RELAY_INSTANCE_MAILBOXES",
            "RELAY_MAILBOXES",
        ),
        (
            &[("RELAY_MAILBOXES", "31MiB")],
            "RELAY_INSTANCE_MAILBOXES",
            "RELAY_MAILBOXES",
        ),
    ] {
        let error = load(set).expect_err("taken").to_string();
        let (first, second) = error.split_once(" does not fit into ").unwrap();
        assert!(first.starts_with(part) && second.starts_with(whole), "{error}");
    }
    let small = [
        ("RELAY_SIGNAL_MAILBOX_BYTES", "64KiB"),
        ("RELAY_INSTANCE_MAILBOXES", "64KiB"),
        ("RELAY_MAILBOXES", "64KiB"),
    ];
    assert_eq!(signaling(&small).bounds.instance_bytes, 64 << 10);
}

#[test]
fn a_turn_server_needs_uris_and_a_secret_and_half_of_it_warns() {
    let uris =
        "stun:turn.example:3478, turn:turn.example?transport=udp,turns:[2001:db8::1]:5349?transport=tcp";
    let both = [
        ("TURN_URIS", uris),
        ("TURN_SECRET", SECRET),
        ("RELAY_TURN_FOR", "all"),
    ];
    let whole = signaling(&both);
    let servers = whole.turn.unwrap();
    assert_eq!(servers.stun, ["stun:turn.example:3478"]);
    assert_eq!(servers.turn.len(), 2);
    assert_eq!((servers.secret.expose(), whole.turn_for), (SECRET, TurnFor::All));
    for (half, lacking) in [(both[0], "TURN_SECRET"), (both[1], "TURN_URIS")] {
        let config: Config = load(&[half]).unwrap();
        let expected = format!("TURN is off: {lacking} is not set");
        assert!(config.warnings.contains(&expected), "{:?}", config.warnings);
    }
}

#[test]
fn of_two_secrets_the_first_signs() {
    let second = format!("{SECRET} to come");
    let list = format!(" {SECRET} , {second}");
    let signaling = signaling(&[("TURN_URIS", "turn:a.example"), ("TURN_SECRET", &list)]);
    assert_eq!(signaling.turn.unwrap().secret.expose(), SECRET);
}

#[test]
fn what_makes_no_sense_is_refused_by_name_and_never_repeated() {
    let three = [SECRET; 3].join(",");
    for (name, value) in [
        ("TURN_SECRET", "short"),
        ("TURN_SECRET", three.as_str()),
        ("TURN_SECRET", ","),
        ("TURN_URIS", "turn://turn.example"),
        ("TURN_URIS", "https://turn.example"),
        ("TURN_URIS", "turn:"),
        ("TURN_URIS", "turn:turn.example?transport=sctp"),
        ("TURN_URIS", "turn:turn.example:99999"),
        ("TURN_URIS", "turn:user@turn.example"),
        ("TURN_URIS", "stun:turn.example"),
        ("TURN_URIS", "stun:turn.example?transport=udp,turn:turn.example"),
        ("RELAY_TURN_FOR", "everyone"),
        ("RELAY_TURN_PER_MINUTE", "0"),
        ("RELAY_SESSIONS_PER_MINUTE", "many"),
        ("RELAY_SESSIONS_PER_INSTANCE", "-1"),
        ("RELAY_MAILBOXES", "1MiB and more"),
        ("RELAY_INSTANCE_MAILBOXES", "100KiB"),
        ("RELAY_SIGNAL_FRAME_BYTES", "16KiB"),
        ("RELAY_SIGNAL_FRAME_BYTES", "2MiB"),
        ("RELAY_SIGNAL_MESSAGES_PER_SECOND", "0"),
        ("RELAY_SIGNAL_BURST", "0"),
        ("RELAY_SIGNAL_MAILBOX_MESSAGES", "0"),
        ("RELAY_SIGNAL_MAILBOX_MESSAGES", "65537"),
        ("RELAY_SIGNAL_MAILBOX_BYTES", "1KiB"),
        ("RELAY_SIGNAL_SESSION_MESSAGES", "0"),
        ("RELAY_SIGNAL_LOADS_PER_MINUTE", "0"),
        ("RELAY_SIGNAL_LOADS_PER_MINUTE", "601"),
        ("RELAY_SIGNAL_RESUMES_PER_MINUTE", "0"),
        ("RELAY_SIGNAL_BAD_TICKETS_PER_MINUTE", "0"),
        ("RELAY_SIGNAL_SOCKETS_BEFORE_HELLO_PER_ADDRESS", "0"),
        ("RELAY_SIGNAL_SOCKETS_BEFORE_HELLO", "0"),
        ("RELAY_SIGNAL_SOCKETS_PER_ADDRESS", "0"),
        ("RELAY_SIGNAL_SOCKETS", "0"),
        ("RELAY_CONNECTIONS", "99"),
        ("RELAY_CONNECTIONS", "1000001"),
        ("RELAY_ALLOWED_ORIGINS", "elsewhere.test"),
        ("RELAY_ALLOWED_ORIGINS", "https://app.example/page"),
        ("RELAY_ALLOWED_ORIGINS", "null"),
        ("RELAY_ALLOWED_ORIGINS", "*"),
        ("RELAY_ALLOWED_ORIGINS", "wss://app.example"),
    ] {
        refusal_of(name, value);
    }
}

#[test]
fn any_origin_is_asked_for_by_leaving_the_setting_out_and_the_refusal_of_a_star_says_so() {
    let refusal = refusal_of("RELAY_ALLOWED_ORIGINS", "*");
    assert!(refusal.contains("leave it unset for any"), "{refusal}");
}

#[test]
fn the_placeholder_of_the_sample_is_no_secret_even_beside_a_good_one() {
    let sample = include_str!("../../../deploy/turnserver.conf");
    let (_, rest) = sample.split_once("static-auth-secret=").unwrap();
    let placeholder = rest.lines().next().unwrap();
    for value in [placeholder, &format!("{SECRET},{placeholder}")] {
        let refusal = refusal_of("TURN_SECRET", value);
        assert!(refusal.contains("keygen secret"), "{refusal}");
    }
}

#[test]
fn sockets_beyond_what_the_connections_allow_are_warned_of_where_they_were_asked_for() {
    let warned = |settings: &[(&str, &str)]| {
        let warnings = load(settings).unwrap().warnings;
        let about = |warning: &String| warning.contains("is more than RELAY_CONNECTIONS");
        warnings.into_iter().filter(about).collect::<Vec<_>>()
    };
    let beyond = warned(&[
        ("RELAY_CONNECTIONS", "1000"),
        ("RELAY_SIGNAL_SOCKETS_BEFORE_HELLO", "101"),
        ("RELAY_SIGNAL_SOCKETS", "601"),
    ]);
    assert_eq!(
        beyond,
        [
            "RELAY_SIGNAL_SOCKETS_BEFORE_HELLO is more than RELAY_CONNECTIONS (1000) allows: 100 are taken",
            "RELAY_SIGNAL_SOCKETS is more than RELAY_CONNECTIONS (1000) allows: 600 are taken",
        ]
    );
    let fitting = [
        ("RELAY_CONNECTIONS", "1000"),
        ("RELAY_SIGNAL_SOCKETS_BEFORE_HELLO", "100"),
        ("RELAY_SIGNAL_SOCKETS", "600"),
    ];
    assert_eq!(warned(&fitting), [""; 0]);
    assert_eq!(warned(&fitting[..1]), [""; 0], "nobody asked for the defaults");
}

#[test]
fn origins_are_kept_as_browsers_spell_them() {
    let list = "https://App.Example:443/, http://localhost:5173,https://bücher.example";
    assert_eq!(
        signaling(&[("RELAY_ALLOWED_ORIGINS", list)]).allowed_origins,
        [
            "https://app.example",
            "http://localhost:5173",
            "https://xn--bcher-kva.example"
        ]
    );
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in ".{0,60}") {
        let _ = (parse_origins(&text), parse_uris(&text), parse_turn_secrets(&text), parse_turn_for(&text));
    }

    #[test]
    fn what_is_taken_for_a_uri_holds_nothing_that_would_need_escaping(text in "(turn|stun)s?:[ -~]{0,40}") {
        if let Ok((stun, turn)) = parse_uris(&text) {
            for uri in stun.iter().chain(&turn) {
                prop_assert!(!uri.contains([' ', '/', '@', '"', ',']), "{uri}");
            }
        }
    }
}
