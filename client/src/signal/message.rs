//! What peers say to each other: `{"kind", "negotiation", "value"}`, sealed. The relay sees none of it.
//!
//! Values have the browser's shapes (W3C WebRTC: `RTCSessionDescriptionInit`, `RTCIceCandidateInit`), so that a page
//! at the other end hands them on as they are.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

/// One message. It prints its kind and nothing else.
#[derive(Clone, PartialEq, Eq)]
pub enum Message {
    /// Begins a negotiation (RFC 8829).
    Offer {
        /// The offerer's name for it. An answer repeats it.
        negotiation: String,
        /// The session description.
        sdp: String,
    },
    /// Answers an offer.
    Answer {
        /// Of the offer.
        negotiation: String,
        /// The session description.
        sdp: String,
    },
    /// A way to reach the sender (RFC 8838).
    Candidate {
        /// Of the description that it belongs to.
        negotiation: String,
        /// `None`: there are no more.
        candidate: Option<Candidate>,
    },
    /// Anything of the application's own.
    Other {
        /// What it is.
        kind: String,
        /// Empty where there is none.
        negotiation: String,
        /// Anything that JSON can hold.
        value: Value,
    },
}

/// `RTCIceCandidateInit`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The attribute, as in SDP.
    pub candidate: String,
    /// The media section, by its name.
    #[serde(default)]
    pub sdp_mid: Option<String>,
    /// The media section, by its place.
    #[serde(default)]
    pub sdp_m_line_index: Option<u16>,
    /// Which of the sender's ICE restarts it belongs to.
    #[serde(default)]
    pub username_fragment: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    kind: String,
    negotiation: String,
    #[serde(default)]
    value: Value,
}

#[derive(Serialize, Deserialize)]
struct Description {
    r#type: String,
    sdp: String,
}

impl Message {
    /// JSON, to be sealed.
    pub(crate) fn to_json(&self) -> Zeroizing<String> {
        let wire = match self {
            Self::Offer { negotiation, sdp } => Wire::new("offer", negotiation, description("offer", sdp)),
            Self::Answer { negotiation, sdp } => Wire::new("answer", negotiation, description("answer", sdp)),
            Self::Candidate {
                negotiation,
                candidate,
            } => Wire::new("candidate", negotiation, json(candidate)),
            Self::Other {
                kind,
                negotiation,
                value,
            } => Wire::new(kind, negotiation, value.clone()),
        };
        // Strings and JSON values can always be written.
        Zeroizing::new(serde_json::to_string(&wire).unwrap_or_default())
    }

    /// From JSON, perhaps with spaces after it; `None` when it has another form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Wire {
            kind,
            negotiation,
            value,
        } = serde_json::from_str(text).ok()?;
        Some(match kind.as_str() {
            "offer" => Self::Offer {
                negotiation,
                sdp: sdp(value)?,
            },
            "answer" => Self::Answer {
                negotiation,
                sdp: sdp(value)?,
            },
            "candidate" => Self::Candidate {
                negotiation,
                candidate: serde_json::from_value(value).ok()?,
            },
            _ => Self::Other {
                kind,
                negotiation,
                value,
            },
        })
    }

    /// The negotiation that it belongs to; empty where there is none.
    pub fn negotiation(&self) -> &str {
        match self {
            Self::Offer { negotiation, .. }
            | Self::Answer { negotiation, .. }
            | Self::Candidate { negotiation, .. }
            | Self::Other { negotiation, .. } => negotiation,
        }
    }

    /// What it is.
    pub fn kind(&self) -> &str {
        match self {
            Self::Offer { .. } => "offer",
            Self::Answer { .. } => "answer",
            Self::Candidate { .. } => "candidate",
            Self::Other { kind, .. } => kind,
        }
    }
}

impl Wire {
    fn new(kind: &str, negotiation: &str, value: Value) -> Self {
        Self {
            kind: kind.to_owned(),
            negotiation: negotiation.to_owned(),
            value,
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

fn description(kind: &str, sdp: &str) -> Value {
    json(&Description {
        r#type: kind.to_owned(),
        sdp: sdp.to_owned(),
    })
}

fn json<T: Serialize>(value: &T) -> Value {
    // Structs of strings and numbers can always be written.
    serde_json::to_value(value).unwrap_or_default()
}

fn sdp(value: Value) -> Option<String> {
    #[derive(Deserialize)]
    struct Sdp {
        sdp: String,
    }
    serde_json::from_value(value).ok().map(|Sdp { sdp }| sdp)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_have_the_shapes_that_a_browser_takes() {
        let offer = r#"{"kind":"offer","negotiation":"n1","value":{"type":"offer","sdp":"v=0\r\n"}}"#;
        let expected = Message::Offer {
            negotiation: "n1".to_owned(),
            sdp: "v=0\r\n".to_owned(),
        };
        assert_eq!(Message::parse(offer), Some(expected.clone()));
        let written: Value = serde_json::from_str(&expected.to_json()).unwrap();
        assert_eq!(written, serde_json::from_str::<Value>(offer).unwrap());

        let candidate = Message::Candidate {
            negotiation: "n1".to_owned(),
            candidate: Some(Candidate {
                candidate: "candidate:1 1 udp 1 192.0.2.1 9 typ host".to_owned(),
                sdp_mid: Some("0".to_owned()),
                sdp_m_line_index: Some(0),
                username_fragment: None,
            }),
        };
        let written: Value = serde_json::from_str(&candidate.to_json()).unwrap();
        assert_eq!(written["value"]["sdpMLineIndex"], 0);
        assert_eq!(written["value"]["sdpMid"], "0");
        assert_eq!(Message::parse(&candidate.to_json()), Some(candidate));
    }

    #[test]
    fn the_end_of_candidates_is_null_and_an_unknown_kind_is_the_applications() {
        let end = r#"{"kind":"candidate","negotiation":"n1","value":null}   "#;
        let parsed = Message::parse(end).unwrap();
        assert!(matches!(&parsed, Message::Candidate { candidate: None, .. }));
        let chat = r#"{"kind":"message","negotiation":"","value":"Grüße 👋"}"#;
        let Message::Other { kind, value, .. } = Message::parse(chat).unwrap() else {
            panic!("a kind of the application's own");
        };
        assert_eq!((kind.as_str(), value), ("message", json!("Grüße 👋")));
    }

    #[test]
    fn what_has_another_form_is_no_message() {
        for wrong in [
            "{}",
            "",
            "null",
            "[]",
            r#"{"kind":"offer","negotiation":"n"}"#,
            r#"{"kind":"offer","negotiation":"n","value":{"type":"offer"}}"#,
            r#"{"kind":"candidate","negotiation":"n","value":7}"#,
            r#"{"kind":7,"negotiation":"n","value":null}"#,
            r#"{"kind":"message","value":null}"#,
        ] {
            assert_eq!(Message::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn content_is_not_printed() {
        let message = Message::Offer {
            negotiation: "marked".to_owned(),
            sdp: "marked".to_owned(),
        };
        assert!(!format!("{message:?}").contains("marked"));
    }

    proptest! {
        #[test]
        fn every_message_survives_the_wire(kind in ".{0,12}", negotiation in ".{0,12}", text in ".{0,200}") {
            let messages = [
                Message::Offer { negotiation: negotiation.clone(), sdp: text.clone() },
                Message::Answer { negotiation: negotiation.clone(), sdp: text.clone() },
                Message::Other { kind: format!("x{kind}"), negotiation, value: Value::String(text) },
            ];
            for message in messages {
                prop_assert_eq!(Message::parse(&message.to_json()), Some(message));
            }
        }
    }
}
