use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    redacted::Redacted,
    signal::{
        id::{ConnectionId, Role, Slot},
        session::SessionLimits,
    },
    time::UnixMillis,
};

const TICKET: &str = "marked-ticket";

fn hello() -> Hello {
    Hello {
        ticket: Redacted::new(TICKET),
        connection: ConnectionId::from_bytes([0xab; 16]),
        attempt: 3,
        last: 17,
    }
}

fn client_frames() -> Vec<(ClientFrame, Value)> {
    vec![
        (
            ClientFrame::Hello(hello()),
            json!({"t":"hello","v":1,"ticket":TICKET,"cid":"ab".repeat(16),"try":3,"last":17}),
        ),
        (
            ClientFrame::Message {
                n: 5,
                content: Opaque::new("e1.x"),
            },
            json!({"t":"msg","n":5,"d":"e1.x"}),
        ),
        (ClientFrame::Ack { seq: 18 }, json!({"t":"ack","seq":18})),
        (ClientFrame::Ping, json!({"t":"ping"})),
        (ClientFrame::Pong, json!({"t":"pong"})),
        (ClientFrame::Ice, json!({"t":"ice"})),
        (
            ClientFrame::Bye {
                mood: Some(Mood::Relayed),
            },
            json!({"t":"bye","mood":"relayed"}),
        ),
        (ClientFrame::Bye { mood: None }, json!({"t":"bye"})),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn server_frames() -> Vec<(ServerFrame, Value)> {
    let peer = PeerPresence {
        state: PeerState::Online,
        generation: 1,
    };
    let turn = IceServer {
        urls: vec!["turn:turn.example:3478?transport=udp".to_owned()],
        username: Some("1433895918:p".to_owned()),
        credential: Some("c2VjcmV0".to_owned()),
    };
    let welcome = Welcome {
        slot: Slot::A,
        role: Role::Impolite,
        generation: 1,
        next: 5,
        base: 17,
        peer,
        expires_at: UnixMillis(1_700_000_000_000),
        grace_seconds: 30,
        heartbeat_seconds: 25,
        limits: SessionLimits::default(),
        ice_servers: vec![turn.clone()],
    };
    let turn_json = json!({"urls":["turn:turn.example:3478?transport=udp"],"username":"1433895918:p","credential":"c2VjcmV0"});
    vec![
        (
            ServerFrame::Welcome(welcome),
            json!({"t":"welcome","slot":"a","role":"impolite","gen":1,"next":5,"base":17,
                "peer":{"state":"online","gen":1},"expiresAt":"2023-11-14T22:13:20Z","graceSeconds":30,
                "heartbeatSeconds":25,"limits":{"frameBytes":32768,"mailboxMessages":256,"mailboxBytes":524288,
                "messagesPerSecond":20,"burst":60},"iceServers":[turn_json]}),
        ),
        (ServerFrame::Ack { n: 5 }, json!({"t":"ack","n":5})),
        (
            ServerFrame::Message {
                seq: 18,
                generation: 1,
                content: Opaque::new("\"\u{1f44b}"),
            },
            json!({"t":"msg","seq":18,"gen":1,"d":"\"\u{1f44b}"}),
        ),
        (
            ServerFrame::Peer {
                state: PeerState::Online,
                generation: 2,
                seq: Some(19),
            },
            json!({"t":"peer","state":"online","gen":2,"seq":19}),
        ),
        (
            ServerFrame::Peer {
                state: PeerState::Absent,
                generation: 0,
                seq: None,
            },
            json!({"t":"peer","state":"absent","gen":0}),
        ),
        (ServerFrame::Ping, json!({"t":"ping"})),
        (ServerFrame::Pong, json!({"t":"pong"})),
        (
            ServerFrame::Ice {
                ice_servers: vec![turn],
                expires_at: Some(UnixMillis(0)),
            },
            json!({"t":"ice","iceServers":[turn_json],"expiresAt":"1970-01-01T00:00:00Z"}),
        ),
        (
            ServerFrame::Goaway { in_ms: 10_000 },
            json!({"t":"goaway","inMs":10000}),
        ),
        (
            ServerFrame::Err {
                code: Refused::MailboxFull,
                n: 5,
                retry_ms: 800,
            },
            json!({"t":"err","code":"mailbox_full","n":5,"retryMs":800}),
        ),
    ]
}

#[test]
fn every_frame_of_a_client_has_its_wire_form_and_comes_back() {
    for (frame, wire) in client_frames() {
        let text = frame.to_text();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wire);
        assert_eq!(ClientFrame::parse(&text), Ok(frame));
    }
}

#[test]
fn every_frame_of_the_relay_has_its_wire_form_and_comes_back() {
    for (frame, wire) in server_frames() {
        let text = frame.to_text();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wire);
        assert_eq!(ServerFrame::parse(&text), Ok(Some(frame)));
    }
}

#[test]
fn unknown_frames_and_fields_are_skipped_and_forged_ones_change_nothing() {
    assert_eq!(
        ClientFrame::parse(r#"{"t":"later","d":[1]}"#),
        Ok(ClientFrame::Unknown)
    );
    assert_eq!(ServerFrame::parse(r#"{"t":"later"}"#), Ok(None));
    let forged = r#"{"to":"x","from":"b","sid":"y","slot":"b","gen":9,"t":"msg","n":1,"d":"e1.z","seq":[]}"#;
    let honest = ClientFrame::Message {
        n: 1,
        content: Opaque::new("e1.z"),
    };
    assert_eq!(ClientFrame::parse(forged), Ok(honest));
    let later_mood = r#"{"t":"bye","mood":"puzzled"}"#;
    assert_eq!(
        ClientFrame::parse(later_mood),
        Ok(ClientFrame::Bye { mood: None })
    );
}

#[test]
fn what_is_no_frame_is_malformed() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_field = format!(r#"{{"t":"ack","seq":{deep}}}"#);
    for wrong in [
        "",
        "null",
        "[]",
        r#"["msg",1,"d"]"#,
        "1",
        "{",
        "{}",
        r#"{"t":1}"#,
        r#"{"t":"msg"}"#,
        r#"{"t":"msg","n":"1","d":""}"#,
        r#"{"t":"msg","n":-1,"d":""}"#,
        r#"{"t":"msg","n":1.5,"d":""}"#,
        r#"{"t":"msg","n":1,"d":null}"#,
        r#"{"t":"msg","n":1,"d":"\ud800"}"#,
        r#"{"t":"msg","n":1,"n":2,"d":""}"#,
        r#"{"t":"ack","seq":null}"#,
        r#"{"t":"bye","mood":1}"#,
        r#"{"t":"hello","ticket":"x","cid":"00","try":1,"last":0}"#,
        r#"{"t":"hello","v":"1"}"#,
        r#"{"t":"hello","v":1,"ticket":"x","cid":"00","try":1,"last":0}"#,
        &deep,
        &deep_field,
    ] {
        assert_eq!(
            ClientFrame::parse(wrong),
            Err(FrameError::Malformed),
            "{wrong:.60}"
        );
    }
}

#[test]
fn another_version_is_told_apart_whatever_else_it_says() {
    for other in [r#"{"t":"hello","v":2}"#, r#"{"t":"hello","v":0,"ticket":7}"#] {
        assert_eq!(ClientFrame::parse(other), Err(FrameError::Version));
    }
}

#[test]
fn nothing_of_a_peer_is_printed() {
    let frames = client_frames().into_iter().map(|(frame, _)| format!("{frame:?}"));
    let printed: String = frames
        .chain(server_frames().into_iter().map(|(frame, _)| format!("{frame:?}")))
        .collect();
    for secret in [TICKET, "abab", "e1.x", "c2VjcmV0", "1433895918"] {
        assert!(!printed.contains(secret), "{secret}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_without_a_panic(text in ".{0,200}") {
        let _ = ClientFrame::parse(&text);
        let _ = ServerFrame::parse(&text);
    }

    #[test]
    fn a_damaged_frame_is_a_frame_or_refused(which in 0usize..8, at in 0usize..120, byte in any::<u8>()) {
        let mut bytes = client_frames()[which].0.to_text().into_bytes();
        let index = at % bytes.len();
        bytes[index] = byte;
        if let Ok(text) = std::str::from_utf8(&bytes)
            && let Ok(frame) = ClientFrame::parse(text)
        {
            prop_assert!(ClientFrame::parse(&frame.to_text()).is_ok());
        }
    }

    #[test]
    fn any_content_comes_back_as_it_was(content in ".{0,300}", n in any::<u64>()) {
        let frame = ClientFrame::Message { n, content: Opaque::new(content.as_str()) };
        prop_assert_eq!(ClientFrame::parse(&frame.to_text()), Ok(frame));
    }
}

#[test]
fn no_message_of_the_relay_has_more_around_its_content_than_is_reckoned_with() {
    let longest = ServerFrame::Message {
        seq: u64::MAX,
        generation: u32::MAX,
        content: Opaque::new(""),
    };
    assert_eq!(longest.to_text().len(), MESSAGE_ENVELOPE_BYTES);
}

#[test]
fn content_is_bounded_by_the_longest_frame_that_it_can_become() {
    let limits = SessionLimits::default();
    for unit in [
        "x",
        "\"",
        "\\",
        "\n",
        "\u{1}",
        "\u{7f}",
        "\u{e9}",
        "\u{2028}",
        "\u{1f600}",
    ] {
        let one = Opaque::new(unit).json_bytes();
        let room = limits.frame_bytes - MESSAGE_ENVELOPE_BYTES;
        let most = format!("{}{}", unit.repeat(room / one), "x".repeat(room % one));
        for (content, has_room) in [
            (most.chars().skip(1).collect(), true),
            (most.clone(), true),
            (format!("{most}x"), false),
        ] {
            let content = Opaque::new(content);
            assert_eq!(limits.has_room_for(&content), has_room, "{unit:?}");
            let relayed = ServerFrame::Message {
                seq: u64::MAX,
                generation: u32::MAX,
                content,
            };
            assert_eq!(
                relayed.to_text().len() <= limits.frame_bytes,
                has_room,
                "{unit:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn content_takes_as_many_bytes_as_it_says(text in "[\\x00-\\x7f\u{e9}\u{2028}\u{1f600}]{0,40}|.*") {
        let content = Opaque::new(text);
        prop_assert_eq!(serde_json::to_string(&content).unwrap().len(), content.json_bytes() + 2);
    }

    /// However a client escapes it.
    #[test]
    fn content_grows_no_longer_on_its_way(text in "[\\x00-\\x7f\u{e9}]{0,40}", escapes in any::<u64>()) {
        let spelled: String = text.chars().enumerate().map(|(index, char)| {
            if escapes >> (index % 64) & 1 == 1 || char < ' ' || "\"\\".contains(char) {
                format!("\\u{:04x}", u32::from(char))
            } else {
                char.to_string()
            }
        }).collect();
        let came = ClientFrame::parse(&format!(r#"{{"t":"msg","n":1,"d":"{spelled}"}}"#));
        let Ok(ClientFrame::Message { content, .. }) = came else {
            return Err(TestCaseError::fail(format!("{came:?}")));
        };
        prop_assert_eq!(content.expose(), text);
        prop_assert!(content.json_bytes() <= spelled.len());
    }
}
