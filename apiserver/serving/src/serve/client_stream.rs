//! The stream of a connection, which counts what its client sends until the handshake is over.
//!
//! rustls keeps up to 64 KiB of a message that has not ended. Few clients send more than [`SHORT_HANDSHAKE`] in a handshake. A
//! connection on which more has come is one of a few ([`super::connections`]).

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::permit::ConnectionPermit;

/// Bytes that any connection may send before its handshake is over: two ClientHellos, and a certificate with those between
/// it and the CA.
const SHORT_HANDSHAKE: usize = 8 << 10;
/// Maximum bytes that a client may send before its handshake is over.
const HANDSHAKE_BYTES: usize = 64 << 10;

/// The stream of a connection.
pub(super) struct ClientStream {
    inner: TcpStream,
    /// Absent once the handshake is over.
    handshake: Option<HandshakeBytes>,
}

/// What has come in a handshake.
struct HandshakeBytes {
    count: usize,
    permit: Arc<ConnectionPermit>,
}

impl HandshakeBytes {
    /// Counts bytes. Fails if there are too many.
    fn add(&mut self, count: usize) -> io::Result<()> {
        let was_short = self.count <= SHORT_HANDSHAKE;
        self.count += count;
        if was_short && self.count > SHORT_HANDSHAKE {
            self.permit.has_long_handshake(true);
        }
        if self.count > HANDSHAKE_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the handshake is too long"));
        }
        Ok(())
    }
}

impl ClientStream {
    /// A connection whose handshake begins.
    pub(super) fn new(inner: TcpStream, permit: Arc<ConnectionPermit>) -> Self {
        Self { inner, handshake: Some(HandshakeBytes { count: 0, permit }) }
    }

    /// Records that the handshake is over.
    pub(super) fn established(&mut self) {
        if let Some(HandshakeBytes { permit, .. }) = self.handshake.take() {
            permit.has_long_handshake(false);
        }
    }

    /// The client's address.
    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.inner.peer_addr()
    }

    /// Waits until there may be something to read.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.inner.readable().await
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let count = buffer.filled().len() - before;
        Poll::Ready(self.handshake.as_mut().map_or(Ok(()), |handshake| handshake.add(count)))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::Ipv4Addr;

    use futures::FutureExt;

    use super::super::connections::LONG_HANDSHAKES_MAX;
    use super::super::permit::ConnectionPermits;
    use super::*;

    fn is_closed(handshake: &HandshakeBytes) -> bool {
        handshake.permit.closed().now_or_never().is_some()
    }

    /// Hundreds of addresses held 64 KiB on each of all connections that may be open: 1 GiB.
    #[test]
    fn a_long_handshake_gives_way_to_later_ones_of_any_address() {
        let permits = ConnectionPermits::new(1_000, 10);
        let open =
            |at: u32| HandshakeBytes { count: 0, permit: Arc::new(permits.take(Ipv4Addr::from(at).into())) };
        let mut all: Vec<_> = (0..2 + LONG_HANDSHAKES_MAX as u32).map(open).collect();
        all.iter_mut().for_each(|handshake| handshake.add(SHORT_HANDSHAKE).unwrap());
        let (short, long) = all.split_first_mut().unwrap();
        long.iter_mut().for_each(|handshake| handshake.add(1).unwrap());
        let closed: Vec<usize> = (0..long.len()).filter(|at| is_closed(&long[*at])).collect();
        assert_eq!(closed, [0], "the one that is open for longest");
        assert!(!is_closed(short), "it has sent little");
        let newest = long.last_mut().unwrap();
        newest.add(HANDSHAKE_BYTES - SHORT_HANDSHAKE - 1).unwrap();
        assert_eq!(newest.add(1).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_handshake_that_is_over_gives_its_place_back() {
        let permits = ConnectionPermits::new(1_000, 10);
        let mut before = Vec::new();
        for at in 0..2 * LONG_HANDSHAKES_MAX as u32 {
            let permit = Arc::new(permits.take(Ipv4Addr::from(at).into()));
            let mut handshake = HandshakeBytes { count: 0, permit: permit.clone() };
            handshake.add(SHORT_HANDSHAKE + 1).unwrap();
            permit.has_long_handshake(false);
            before.push(handshake);
        }
        assert!(!before.iter().any(is_closed));
    }
}
