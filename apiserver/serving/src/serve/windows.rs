//! Bounds how much of an answer is sent to kube-apiserver before its own client has read it.
//!
//! A front proxy keeps what its client does not read, up to the window that it grants each stream. Go's transport,
//! which kube-apiserver uses, grants 4 MiB a stream and 1 GiB a connection (golang.org/x/net/http2/transport.go,
//! transportDefaultStreamFlow, transportDefaultConnFlow) and gives both back only as the client reads, or leaves: not
//! even when this side resets the stream (processResetStream keeps what the pipe holds). So 256 streams that are not
//! read would use up the connection's window, and with it the answers to all other users on that connection.
//!
//! Here a window of Go's for each new stream is read as [`PROXY_STREAM_WINDOW`], which a sender is free to do (RFC
//! 9113, section 5.2.1): all streams of a connection then fill an eighth of its window. Go sends WINDOW_UPDATE for
//! every 4 KiB that its client has read, so that a client that reads is not slowed down.
//!
//! Windows of any other size are left as they are. Other implementations give a window back only when half of it is
//! used (nghttp2, the crate h2), and would wait forever for what a lower_window window holds back here: streams that are
//! not read may use up the connection of a front proxy that is not written in Go.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// The window that Go's transport grants each stream.
const GO_STREAM_WINDOW: u32 = 4 << 20;
/// Maximum bytes that are sent on a stream of Go's transport and not yet passed on.
const PROXY_STREAM_WINDOW: u32 = 128 * 1024;
/// What an HTTP/2 client says first (RFC 9113, section 3.4); its SETTINGS follow.
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame's head: length (3), type, flags, stream (4).
const HEAD: usize = 9;
const SETTINGS: u8 = 4;
/// Bytes of a setting: identifier (2), value (4).
const SETTING: usize = 6;
const INITIAL_WINDOW_SIZE: u16 = 4;
/// Maximum bytes of a SETTINGS frame that is changed: far more than there are settings.
const SETTINGS_MAX: usize = 64 * SETTING;

/// A stream that replays the bytes that have been read from it.
pub(super) struct Rewind<T> {
    again: Bytes,
    inner: T,
}

/// Reads what an HTTP/2 client sends first, and lowers Go's window for new streams in it. Anything else is left as it
/// is.
pub(super) async fn lower_window<T: AsyncRead + Unpin>(mut inner: T) -> io::Result<Rewind<T>> {
    let mut read = vec![0; PREFACE.len() + HEAD];
    inner.read_exact(&mut read).await?;
    if let Some(length) = length_of_settings(&read) {
        let head = read.len();
        read.resize(head + length, 0);
        inner.read_exact(&mut read[head..]).await?;
        lower(&mut read[head..]);
    }
    Ok(Rewind { again: read.into(), inner })
}

/// Returns the length of the SETTINGS frame whose head is the end of `read`; `None` if that is something else, or too
/// long.
fn length_of_settings(read: &[u8]) -> Option<usize> {
    let head = read.strip_prefix(PREFACE)?;
    let [a, b, c, SETTINGS, ..] = *head else { return None };
    let length = usize::try_from(u32::from_be_bytes([0, a, b, c])).ok()?;
    (length <= SETTINGS_MAX).then_some(length)
}

fn lower(settings: &mut [u8]) {
    for setting in settings.chunks_exact_mut(SETTING) {
        let [a, b, value @ ..] = setting else { continue };
        if u16::from_be_bytes([*a, *b]) != INITIAL_WINDOW_SIZE {
            continue;
        }
        if *value == GO_STREAM_WINDOW.to_be_bytes() {
            value.copy_from_slice(&PROXY_STREAM_WINDOW.to_be_bytes());
        }
    }
}

impl<T> Rewind<T> {
    /// A stream from which nothing has been read.
    pub(super) fn new(inner: T) -> Self {
        Self { again: Bytes::new(), inner }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewind<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.again.is_empty() {
            return Pin::new(&mut self.inner).poll_read(context, into);
        }
        let length = self.again.len().min(into.remaining());
        into.put_slice(&self.again[..length]);
        self.again.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewind<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The first bytes of Go's transport: SETTINGS with ENABLE_PUSH, INITIAL_WINDOW_SIZE and MAX_HEADER_LIST_SIZE.
    fn hello(window: u32) -> Vec<u8> {
        let mut hello = [PREFACE.as_slice(), &[0, 0, 18, SETTINGS, 0, 0, 0, 0, 0]].concat();
        for (setting, value) in [(2_u16, 0_u32), (INITIAL_WINDOW_SIZE, window), (6, 10 << 20)] {
            hello.extend(setting.to_be_bytes());
            hello.extend(value.to_be_bytes());
        }
        hello
    }

    async fn read(sent: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        lower_window(sent).await?.read_to_end(&mut all).await.map(|_| all)
    }

    #[tokio::test]
    async fn the_window_of_go_is_lowered_and_nothing_else_changes() {
        let more = |hello: Vec<u8>| [hello, b"more".to_vec()].concat();
        assert_eq!(read(&more(hello(4 << 20))).await.unwrap(), more(hello(PROXY_STREAM_WINDOW)));
        for window in [0, 65_535, PROXY_STREAM_WINDOW, 256 << 10, 2 << 20, 16 << 20, 1 << 31, u32::MAX] {
            assert_eq!(read(&more(hello(window))).await.unwrap(), more(hello(window)), "{window}");
        }
    }

    /// HTTP refuses them later, if they are wrong.
    #[tokio::test]
    async fn what_is_no_hello_is_left_as_it_is() {
        let mut other_frame = hello(4 << 20);
        other_frame[PREFACE.len() + 3] = 1;
        let mut long = hello(4 << 20);
        long[PREFACE.len()] = 1;
        let mut torn = hello(4 << 20);
        torn[PREFACE.len() + 2] = 17;
        let http1 = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec();
        for hello in [other_frame, long, http1] {
            assert_eq!(read(&hello).await.unwrap(), hello);
        }
        assert_eq!(read(&torn).await.unwrap().len(), torn.len());
        assert!(read(&hello(4 << 20)[..40]).await.is_err(), "it ends too early");
    }
}
