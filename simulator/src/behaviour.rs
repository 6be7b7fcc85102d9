//! What a simulator does with one request: the vocabulary of scripts, the same for all three providers.
//!
//! Built by tests and by the control API (as JSON), carried out by `apns::respond` and `net::http`. The answers that
//! the vendors document have constructors in [`crate::apns::verdict`], [`crate::fcm::verdict`] and
//! [`crate::wns::verdict`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Wait, deliver or not, then end the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Behaviour {
    /// How long the simulator waits before it does anything else, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// Whether the device gets the notification. By itself this says nothing about the answer.
    #[serde(default)]
    pub deliver: bool,
    /// How the exchange ends.
    pub ending: Ending,
}

/// How an exchange ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Ending {
    /// The provider's success answer.
    Accept,
    /// A chosen answer.
    Answer(Answer),
    /// No answer, while the connection stays open.
    Never,
    /// The stream is reset with this HTTP/2 error code (7 is REFUSED_STREAM); HTTP/1.1 has none, so there the
    /// connection is cut.
    ResetStream {
        /// HTTP/2 error code.
        code: u32,
    },
    /// The connection is cut after the request was read.
    KillConnection,
    /// The connection is cut when the head of the request has come, before the body is read. At FCM the device is
    /// named in the body, so there only a rule for all devices can do this.
    KillBeforeReading,
}

/// An answer, whole or damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Header fields beside those the provider always sends.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: String,
    /// Leaves out the fields the provider always sends (`apns-id`, `X-WNS-...`), as a proxy's answer would.
    #[serde(default)]
    pub bare: bool,
    /// How the body is sent.
    #[serde(default)]
    pub pace: Pace,
}

/// How a body is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind", rename_all_fields = "camelCase")]
pub enum Pace {
    /// At once.
    #[default]
    AtOnce,
    /// In pieces with a pause before each.
    Slow {
        /// Size of a piece.
        chunk_bytes: usize,
        /// Pause before each piece.
        pause_ms: u64,
    },
    /// The connection is cut after so many bytes of the body.
    CutAfter {
        /// Bytes sent before the cut.
        bytes: usize,
    },
    /// Nothing more comes after so many bytes of the body, while the connection stays open.
    StallAfter {
        /// Bytes sent before the silence.
        bytes: usize,
    },
}

/// The three forms in which a provider may name, or not name, the time to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryAfter {
    /// No such header.
    Absent,
    /// `Retry-After: 37`.
    Seconds(u64),
    /// `Retry-After: Fri, 31 Dec 1999 23:59:59 GMT`, or any other text.
    Text(String),
}

impl Behaviour {
    /// The normal course: delivered, and answered with success.
    pub fn accept() -> Self {
        Self {
            delay_ms: 0,
            deliver: true,
            ending: Ending::Accept,
        }
    }

    /// A chosen status with an empty body; nothing is delivered unless [`Behaviour::delivered`] says so.
    pub fn status(status: u16) -> Self {
        Self::answer(Answer {
            status,
            headers: Vec::new(),
            body: String::new(),
            bare: false,
            pace: Pace::AtOnce,
        })
    }

    /// A chosen answer; nothing is delivered unless [`Behaviour::delivered`] says so.
    pub fn answer(answer: Answer) -> Self {
        Self {
            delay_ms: 0,
            deliver: false,
            ending: Ending::Answer(answer),
        }
    }

    /// An HTML page, as some load balancer in between would send: no JSON, none of the provider's own fields.
    pub fn html(status: u16) -> Self {
        Self::status(status)
            .bare()
            .header("content-type", "text/html; charset=UTF-8")
            .body("<!DOCTYPE html><html><title>Error</title><p>The server encountered a temporary error.</html>")
    }

    /// No answer, while the connection stays open.
    pub fn never_answer() -> Self {
        Self {
            delay_ms: 0,
            deliver: false,
            ending: Ending::Never,
        }
    }

    /// The stream is reset with an HTTP/2 error code.
    pub fn reset_stream(code: u32) -> Self {
        Self {
            delay_ms: 0,
            deliver: false,
            ending: Ending::ResetStream { code },
        }
    }

    /// The stream is reset with REFUSED_STREAM, which promises that nothing was processed.
    pub fn refuse_stream() -> Self {
        Self::reset_stream(7)
    }

    /// The connection is cut after the request was read.
    pub fn kill_connection() -> Self {
        Self {
            delay_ms: 0,
            deliver: false,
            ending: Ending::KillConnection,
        }
    }

    /// The connection is cut before the body of the request is read.
    pub fn kill_before_reading() -> Self {
        Self {
            delay_ms: 0,
            deliver: false,
            ending: Ending::KillBeforeReading,
        }
    }

    /// The same, after a delay.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// The same, but the device has got the notification whatever the answer says.
    #[must_use]
    pub fn delivered(mut self) -> Self {
        self.deliver = true;
        self
    }

    /// Adds a header field to a chosen answer.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.edit(|answer| answer.headers.push((name.to_owned(), value.to_owned())))
    }

    /// Sets the body of a chosen answer.
    #[must_use]
    pub fn body(self, body: impl Into<String>) -> Self {
        let body = body.into();
        self.edit(|answer| answer.body = body)
    }

    /// Pads the body of a chosen answer with spaces to `bytes`: an oversized error body that is still JSON.
    #[must_use]
    pub fn padded_to(self, bytes: usize) -> Self {
        self.edit(|answer| {
            let missing = bytes.saturating_sub(answer.body.len());
            answer.body.extend(std::iter::repeat_n(' ', missing));
        })
    }

    /// Leaves out the fields the provider always sends.
    #[must_use]
    pub fn bare(self) -> Self {
        self.edit(|answer| answer.bare = true)
    }

    /// Sends the body of a chosen answer at this pace.
    #[must_use]
    pub fn paced(self, pace: Pace) -> Self {
        self.edit(|answer| answer.pace = pace)
    }

    /// Names the time to wait.
    #[must_use]
    pub fn retry_after(self, retry_after: RetryAfter) -> Self {
        match retry_after {
            RetryAfter::Absent => self,
            RetryAfter::Seconds(seconds) => self.header("retry-after", &seconds.to_string()),
            RetryAfter::Text(text) => self.header("retry-after", &text),
        }
    }

    /// How long the simulator waits first.
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    fn edit(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        if let Ending::Answer(answer) = &mut self.ending {
            change(answer);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_behaviour_reads_from_the_json_that_the_control_api_documents() {
        let json = r#"{"delayMs":5,"deliver":true,"ending":{"kind":"answer","status":503,
            "headers":[["retry-after","7"]],"body":"{}","pace":{"kind":"slow","chunkBytes":1,"pauseMs":2}}}"#;
        let wanted = Behaviour::status(503)
            .retry_after(RetryAfter::Seconds(7))
            .body("{}")
            .paced(Pace::Slow {
                chunk_bytes: 1,
                pause_ms: 2,
            })
            .after(Duration::from_millis(5))
            .delivered();
        assert_eq!(serde_json::from_str::<Behaviour>(json).unwrap(), wanted);
        assert_eq!(
            serde_json::from_str::<Behaviour>(&serde_json::to_string(&wanted).unwrap()).unwrap(),
            wanted
        );
    }

    #[test]
    fn padding_only_adds() {
        let Ending::Answer(answer) = Behaviour::status(400).body("{}").padded_to(10).ending else {
            panic!("a chosen answer")
        };
        assert_eq!(answer.body, "{}        ");
    }
}
