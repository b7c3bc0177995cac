//! Heads of requests that have begun and not ended.
//!
//! Over HTTP/2 nearly every head comes in one frame; a longer one goes on in CONTINUATION frames, between which the connection
//! takes no other frame (RFC 9113, section 4.3). What HTTP has decoded of one takes up to five times the bytes by
//! which its length is bounded, and a connection that has one may stay open for minutes. Over
//! HTTP/1.1 a head is kept as it came, until the time for it is over. So there are at most [`UNFINISHED_HEADS_MAX`] of
//! both together: when there is another one, the owner with the most of them loses the connection that is open for
//! longest; of owners with equally many, the one whose connection is.

use std::sync::Arc;

use crate::request::user::Network;

use super::groups::BoundedGroups;
use super::windows::PREFACE;

/// Heads at one time that have begun and not ended: 80 MiB, if each is as long as may be.
const UNFINISHED_HEADS_MAX: usize = 256;
/// Bytes of the head of a frame.
const FRAME_HEAD: usize = 9;
/// Types of frames that are parts of a head, and the flag of the last one.
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// The owner of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owner {
    /// It has authenticated no user.
    Address(Network),
    /// The flow of its user.
    User(Arc<str>),
}

/// The connections with a head that has not ended, by owner.
pub(super) fn unfinished_heads() -> BoundedGroups<Owner> {
    BoundedGroups::new(UNFINISHED_HEADS_MAX)
}

/// Follows the frames that an HTTP/2 client sends.
pub(super) struct Http2HeadScanner {
    /// Bytes before the head of the next frame.
    skip: usize,
    head: [u8; FRAME_HEAD],
    /// Number of bytes of `head` that have come.
    known: usize,
    is_unfinished: bool,
}

impl Default for Http2HeadScanner {
    fn default() -> Self {
        Self { skip: PREFACE.len(), head: [0; FRAME_HEAD], known: 0, is_unfinished: false }
    }
}

impl Http2HeadScanner {
    /// Scans the next bytes. Returns whether a head has begun and not ended by their end.
    pub(super) fn scan(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let part = (FRAME_HEAD - self.known).min(bytes.len());
            self.head[self.known..self.known + part].copy_from_slice(&bytes[..part]);
            self.known += part;
            bytes = &bytes[part..];
            if self.known == FRAME_HEAD {
                self.known = 0;
                self.frame();
            }
        }
        self.is_unfinished
    }

    fn frame(&mut self) {
        let [a, b, c, kind, flags, ..] = self.head;
        self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
        if matches!(kind, HEADERS | CONTINUATION) {
            self.is_unfinished = flags & END_HEADERS == 0;
        }
    }
}

/// Follows the lines that an HTTP/1.1 client sends. A head ends with an empty line (RFC 9112, section 2.1).
#[derive(Default)]
pub(super) struct Http1HeadScanner {
    has_begun: bool,
    /// Whether nothing but the end of the last line has come of the present one.
    is_line_empty: bool,
}

impl Http1HeadScanner {
    /// Scans the next bytes. Returns whether a head has begun and not ended by their end. Empty lines before a head
    /// are no part of it. What follows the end of a head in the same bytes is its body, or as short as one read.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match byte {
                b'\r' => {}
                b'\n' if self.is_line_empty => {
                    *self = Self::default();
                    return false;
                }
                b'\n' => self.is_line_empty = self.has_begun,
                _ => (self.has_begun, self.is_line_empty) = (true, false),
            }
        }
        self.has_begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let length = u32::try_from(length).map(u32::to_be_bytes).unwrap_or_default();
        let mut frame = [&length[1..], &[kind, flags, 0, 0, 0, 1]].concat();
        frame.resize(FRAME_HEAD + u32::from_be_bytes(length) as usize, HEADERS);
        frame
    }

    #[test]
    fn a_head_is_half_until_its_last_frame_however_the_bytes_come() {
        let parts = [
            (PREFACE.to_vec(), false),
            (frame(4, 0, 18), false),
            (frame(HEADERS, END_HEADERS, 300), false),
            (frame(0, 0, 16_384), false),
            (frame(HEADERS, 0, 100), true),
            (frame(CONTINUATION, 0, 0), true),
            (frame(CONTINUATION, END_HEADERS, 5), false),
            (frame(HEADERS, 1, 16_384), true),
        ];
        for size in [1, 7, 1_000, 100_000] {
            let mut scanner = Http2HeadScanner::default();
            for (part, expected) in &parts {
                let half = part.chunks(size).map(|piece| scanner.scan(piece)).last();
                assert_eq!(half, Some(*expected), "{} bytes in pieces of {size}", part.len());
            }
        }
    }

    #[test]
    fn a_head_of_http1_ends_with_an_empty_line_however_the_bytes_come() {
        let (whole, half) = ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", "GET / HTTP/1.1\r\nhost: x\r\n");
        for size in [1, 3, 100] {
            let mut scanner = Http1HeadScanner::default();
            for (text, expected) in
                [("\r\n", false), (whole, false), (half, true), ("a: b\n", true), ("\n", false), ("G", true)]
            {
                let half = text.as_bytes().chunks(size).fold(false, |_, piece| scanner.scan(piece));
                assert_eq!(half, expected, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn whoever_has_most_loses_the_first() {
        let mut heads = unfinished_heads();
        let (many, other) = (Owner::User("many".into()), Owner::User("other".into()));
        assert_eq!(heads.begin(&other, 0), None);
        for id in 1..UNFINISHED_HEADS_MAX as u64 {
            assert_eq!(heads.begin(&many, id), None);
        }
        assert_eq!(heads.begin(&other, 1_000), Some(1));
        heads.end(&many, 1);
        heads.end(&other, 1_000);
        assert_eq!(heads.begin(&many, 2_000), None);
    }
}
