//! HTTP/2 frames as bytes (RFC 9113, sections 4 and 6): just what it takes to stand between a peer and `h2`.
//!
//! Pure. [`Splitter`] cuts a byte stream into whole frames, [`Head`] reads their nine bytes, the builders make the
//! frames that `h2` can't.

use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of a frame's head.
pub(crate) const HEAD_BYTES: usize = 9;
/// What a client sends before its first frame.
pub(crate) const PREFACE_BYTES: usize = 24;
/// Largest payload let through. `h2` allows 16,384 unless told otherwise; a peer that sends more is cut here.
const MAX_PAYLOAD_BYTES: usize = 1 << 20;

pub(crate) const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const PRIORITY: u8 = 0x2;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const PING: u8 = 0x6;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const CONTINUATION: u8 = 0x9;

/// ACK of SETTINGS and PING, END_STREAM of DATA and HEADERS: the same bit.
const FLAG_ACK_OR_END_STREAM: u8 = 0x1;
const FLAG_END_HEADERS: u8 = 0x4;
const FLAG_PRIORITY: u8 = 0x20;
const SETTINGS_MAX_CONCURRENT_STREAMS: u16 = 0x3;
const STREAM_ID_MASK: u32 = 0x7fff_ffff;

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: usize,
    pub(crate) kind: u8,
    flags: u8,
    pub(crate) stream: u32,
}

impl Head {
    /// `None` while `bytes` is shorter than a head.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let [l2, l1, l0, kind, flags, s3, s2, s1, s0] = *bytes.first_chunk::<HEAD_BYTES>()?;
        let length = usize::try_from(u32::from_be_bytes([0, l2, l1, l0])).ok()?;
        let stream = u32::from_be_bytes([s3, s2, s1, s0]) & STREAM_ID_MASK;
        Some(Self {
            length,
            kind,
            flags,
            stream,
        })
    }

    pub(crate) fn is_ack(self) -> bool {
        matches!(self.kind, SETTINGS | PING) && self.flags & FLAG_ACK_OR_END_STREAM != 0
    }

    pub(crate) fn ends_stream(self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & FLAG_ACK_OR_END_STREAM != 0
    }

    pub(crate) fn has_priority(self) -> bool {
        self.kind == PRIORITY || (self.kind == HEADERS && self.flags & FLAG_PRIORITY != 0)
    }

    /// Whether a CONTINUATION must follow, so that no other frame may come in between.
    pub(crate) fn leaves_header_block_open(self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION) && self.flags & FLAG_END_HEADERS == 0
    }

    fn write(kind: u8, stream: u32, payload: &[u8]) -> BytesMut {
        let mut frame = BytesMut::with_capacity(HEAD_BYTES.saturating_add(payload.len()));
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        frame.extend_from_slice(length.to_be_bytes().get(1..).unwrap_or_default());
        frame.put_u8(kind);
        frame.put_u8(0);
        frame.put_u32(stream);
        frame.extend_from_slice(payload);
        frame
    }
}

/// SETTINGS with nothing but a stream limit.
pub(crate) fn stream_limit(limit: u32) -> Bytes {
    Head::write(SETTINGS, 0, &stream_limit_parameter(limit)).freeze()
}

/// GOAWAY with error code NO_ERROR and debug data.
pub(crate) fn goaway(last_stream_id: u32, debug_data: &[u8]) -> Bytes {
    let mut payload = BytesMut::new();
    payload.put_u32(last_stream_id & STREAM_ID_MASK);
    payload.put_u32(0);
    payload.extend_from_slice(debug_data);
    Head::write(GOAWAY, 0, &payload).freeze()
}

/// A SETTINGS frame with the stream limit in it replaced or added.
pub(crate) fn with_stream_limit(frame: &[u8], limit: u32) -> Bytes {
    let mut payload = BytesMut::new();
    for parameter in frame.get(HEAD_BYTES..).unwrap_or_default().chunks_exact(6) {
        if !parameter.starts_with(&SETTINGS_MAX_CONCURRENT_STREAMS.to_be_bytes()) {
            payload.extend_from_slice(parameter);
        }
    }
    payload.extend_from_slice(&stream_limit_parameter(limit));
    Head::write(SETTINGS, 0, &payload).freeze()
}

fn stream_limit_parameter(limit: u32) -> BytesMut {
    let mut parameter = BytesMut::with_capacity(6);
    parameter.put_u16(SETTINGS_MAX_CONCURRENT_STREAMS);
    parameter.put_u32(limit);
    parameter
}

/// A frame too large to be let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {length} bytes is too large")]
pub(crate) struct FrameTooLarge {
    pub(crate) length: usize,
}

/// Cuts a byte stream into whole frames.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    buffer: BytesMut,
    preface_left: usize,
}

impl Splitter {
    /// For the client's side, which begins with the preface.
    pub(crate) fn after_preface() -> Self {
        Self {
            buffer: BytesMut::new(),
            preface_left: PREFACE_BYTES,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether no part of a frame is held.
    pub(crate) fn is_at_boundary(&self) -> bool {
        self.buffer.is_empty()
    }

    /// What has come of the preface and was not given out yet.
    pub(crate) fn preface(&mut self) -> BytesMut {
        let part = self.buffer.split_to(self.preface_left.min(self.buffer.len()));
        self.preface_left = self.preface_left.saturating_sub(part.len());
        part
    }

    /// The next whole frame, head included.
    pub(crate) fn next_frame(&mut self) -> Result<Option<(Head, BytesMut)>, FrameTooLarge> {
        let Some(head) = Head::parse(&self.buffer) else {
            return Ok(None);
        };
        if head.length > MAX_PAYLOAD_BYTES {
            return Err(FrameTooLarge { length: head.length });
        }
        let whole = HEAD_BYTES.saturating_add(head.length);
        if self.buffer.len() < whole {
            return Ok(None);
        }
        Ok(Some((head, self.buffer.split_to(whole))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cut_out_wherever_the_bytes_were_split() {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend_from_slice(&stream_limit(7));
        bytes.extend_from_slice(&goaway(5, b"{}"));
        for split in 1..=bytes.len() {
            let mut splitter = Splitter::after_preface();
            let (mut preface, mut frames) = (Vec::new(), Vec::new());
            for part in bytes.chunks(split) {
                splitter.push(part);
                preface.extend_from_slice(&splitter.preface());
                while let Some((head, frame)) = splitter.next_frame().unwrap() {
                    frames.push((head.kind, frame.freeze()));
                }
            }
            assert_eq!(preface, &bytes[..PREFACE_BYTES]);
            assert_eq!(frames, [(SETTINGS, stream_limit(7)), (GOAWAY, goaway(5, b"{}"))]);
            assert!(splitter.is_at_boundary());
        }
    }

    #[test]
    fn a_stream_limit_is_replaced_and_other_settings_stay() {
        let mut frame = Head::write(SETTINGS, 0, &[0, 4, 0, 1, 0, 0, 0, 3, 0, 0, 0, 9]);
        let limited = with_stream_limit(&frame, 1);
        assert_eq!(&limited[HEAD_BYTES..], [0, 4, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1]);
        frame.truncate(HEAD_BYTES);
        assert_eq!(with_stream_limit(&frame, 1), stream_limit(1));
    }

    #[test]
    fn an_oversized_frame_is_refused_before_it_is_buffered() {
        let mut splitter = Splitter::default();
        splitter.push(&[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]);
        assert_eq!(splitter.next_frame(), Err(FrameTooLarge { length: 0x00ff_ffff }));
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        proptest::proptest!(|(bytes: Vec<u8>)| {
            let mut splitter = Splitter::default();
            splitter.push(&bytes);
            let mut total = 0;
            while let Ok(Some((head, frame))) = splitter.next_frame() {
                assert_eq!(frame.len(), head.length + HEAD_BYTES);
                total += frame.len();
            }
            assert!(total <= bytes.len());
        });
    }
}
