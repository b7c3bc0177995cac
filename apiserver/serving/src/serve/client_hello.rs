//! The ClientHello, read as it comes and parsed in its turn.
//!
//! rustls reads a message of up to 64 KiB, and what it makes of one takes more than ten times its bytes. So the records are
//! read here, with a bound, and rustls gets them when the connection's turn has come ([`super::handshakes`]): a connection
//! that waits takes no more memory than its client has sent.
//!
//! A client may name a group for the key exchange and send no key for it. rustls then asks for another ClientHello
//! (HelloRetryRequest; RFC 8446, section 4.1.4), and works on the key exchange and the signature when that one has come. A
//! [`Retry`] is the handshake of such a client, each step of which takes a turn. It has only so many, whatever the number of
//! pieces in which the client sends its bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_rustls::Accept;
use tokio_rustls::server::{StartHandshake, TlsStream};

use super::client_stream::ClientStream;

/// Maximum bytes of a ClientHello with the heads of its records. Clients send 2 KiB.
const HELLO_BYTES: usize = 16 << 10;
/// Maximum records of one. Few clients send more than one record.
const RECORDS: usize = 16;
/// Maximum steps of a [`Retry`]. A client with certificates of 16 KiB takes about twenty, as many as segments.
pub(super) const RETRY_STEPS: usize = 64;
/// Bytes that are reserved before they come: as many as most clients send.
const USUAL_BYTES: usize = 2 << 10;
/// Bytes of a record's head: type, version (2), length (2).
const RECORD_HEAD: usize = 5;
/// Bytes of a message's head: type, length (3).
const MESSAGE_HEAD: usize = 4;
/// The type of records that are part of a handshake.
const HANDSHAKE: u8 = 22;

/// Reads records until they hold a whole message, and no byte more. Returns what has come as soon as it is no part of a
/// handshake: rustls says what is wrong with it.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let (mut hello, mut begin, mut length) = (Vec::new(), Vec::<u8>::new(), 0);
    for _ in 0..RECORDS {
        let head = hello.len();
        read_exactly(stream, &mut hello, RECORD_HEAD).await?;
        let [kind, _, _, high, low] = hello[head..] else { break };
        let part = usize::from(u16::from_be_bytes([high, low]));
        if kind != HANDSHAKE || part == 0 {
            return Ok(hello);
        }
        read_exactly(stream, &mut hello, part).await?;
        let payload = &hello[head + RECORD_HEAD..];
        begin.extend(payload.iter().take(MESSAGE_HEAD - begin.len()));
        length += part;
        if let [_, a, b, c] = begin[..] {
            let message = u32::from_be_bytes([0, a, b, c]) as usize;
            if message > HELLO_BYTES {
                break;
            }
            if length >= MESSAGE_HEAD + message {
                return Ok(hello);
            }
        }
    }
    Err(too_long())
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the ClientHello is too long")
}

/// Appends so many bytes.
async fn read_exactly(
    stream: &mut (impl AsyncRead + Unpin),
    to: &mut Vec<u8>,
    count: usize,
) -> io::Result<()> {
    if to.len() + count > HELLO_BYTES {
        return Err(too_long());
    }
    to.reserve(count.min(USUAL_BYTES));
    let read = stream.take(count as u64).read_to_end(to).await?;
    if read < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// What the first step of a handshake has brought about.
pub(super) enum FirstStep {
    /// What is left of it costs little.
    Answered(Box<Accept<ClientStream>>),
    /// The client has to send another ClientHello.
    Retry(Box<Retry>),
    /// It is over, after this alert has been sent.
    Refused { stream: ClientStream, alert: Vec<u8>, error: io::Error },
}

/// Works on the first step of a handshake. Does not wait for the client.
pub(super) fn begin(hello: &[u8], stream: ClientStream, tls: Arc<ServerConfig>) -> FirstStep {
    let accepted = match parse(hello) {
        Ok(accepted) => accepted,
        Err((error, alert)) => return FirstStep::Refused { stream, alert, error },
    };
    let mut is_retried = false;
    let shaking = StartHandshake::from_parts(accepted, stream).into_stream_with(tls, |connection| {
        is_retried = connection.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
    });
    match is_retried {
        // A client that knows what it will be asked for may have sent that already.
        true => FirstStep::Retry(Box::new(Retry { shaking, shaken: Poll::Pending }).step()),
        false => FirstStep::Answered(Box::new(shaking)),
    }
}

/// The connection as rustls has it after the ClientHello; otherwise why there is none, and the alert that says so.
fn parse(mut hello: &[u8]) -> Result<Accepted, (io::Error, Vec<u8>)> {
    let mut acceptor = Acceptor::default();
    while !hello.is_empty() {
        acceptor.read_tls(&mut hello).map_err(|error| (error, Vec::new()))?;
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) => {}
            Err((error, alert)) => {
                return Err((io::Error::new(io::ErrorKind::InvalidData, error), text(alert)));
            }
        }
    }
    Err((io::Error::new(io::ErrorKind::InvalidData, "no ClientHello"), Vec::new()))
}

/// The bytes of an alert.
fn text(mut alert: AcceptedAlert) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A Vec takes all of it.
    let _ = alert.write_all(&mut bytes);
    bytes
}

/// The handshake of a client that has to send another ClientHello.
pub(super) struct Retry {
    shaking: Accept<ClientStream>,
    shaken: Poll<io::Result<TlsStream<ClientStream>>>,
}

impl Retry {
    /// Works on what has come from the client. Does not wait for more.
    pub(super) fn step(mut self: Box<Self>) -> Box<Self> {
        if self.shaken.is_pending() {
            self.shaken = Pin::new(&mut self.shaking).poll(&mut Context::from_waker(Waker::noop()));
        }
        self
    }

    /// Returns the connection, or why there is none, if the handshake is over. Otherwise waits until more has come.
    pub(super) async fn shaken(self: Box<Self>) -> Result<io::Result<TlsStream<ClientStream>>, Box<Self>> {
        let Self { shaking, shaken } = *self;
        let shaken = match shaken {
            Poll::Ready(shaken) => return Ok(shaken),
            Poll::Pending => Poll::Pending,
        };
        let Some(stream) = shaking.get_ref() else {
            return Ok(Err(io::ErrorKind::NotConnected.into()));
        };
        if let Err(error) = stream.readable().await {
            return Ok(Err(error));
        }
        Err(Box::new(Self { shaking, shaken }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Records with parts of a message of this length, of which so many bytes are sent.
    fn records(length: usize, sent: usize, part: usize) -> Vec<u8> {
        let mut message = u32::try_from(length).unwrap().to_be_bytes().to_vec();
        message[0] = 1;
        message.resize(MESSAGE_HEAD + sent, 7);
        let record = |payload: &[u8]| {
            let [high, low] = u16::try_from(payload.len()).unwrap().to_be_bytes();
            [&[HANDSHAKE, 3, 1, high, low], payload].concat()
        };
        message.chunks(part).flat_map(record).collect()
    }

    async fn read_of(sent: &[u8]) -> io::Result<usize> {
        let mut rest = sent;
        read(&mut rest).await.map(|hello| {
            assert_eq!(hello, sent[..hello.len()]);
            hello.len()
        })
    }

    #[tokio::test]
    async fn a_hello_of_several_records_is_read_to_its_end() {
        for part in [300, 1_000, 16_000] {
            let hello = records(2_000, 2_000, part);
            let more = [&*hello, &records(50, 50, 50)].concat();
            assert_eq!(read_of(&more).await.unwrap(), hello.len(), "records of {part} bytes");
        }
    }

    /// rustls waited for 64 KiB on each of all connections that may be open: 1 GiB.
    #[tokio::test]
    async fn an_oversized_hello_is_refused_before_it_is_complete() {
        for (length, sent, part) in [(65_000, 100, 104), (20_000, 16_300, 16_304), (2_000, 2_000, 100)] {
            let error = read_of(&records(length, sent, part)).await.unwrap_err();
            assert_eq!(error.to_string(), "the ClientHello is too long", "{length} in records of {part}");
        }
        let error = read_of(&records(2_000, 1_000, 2_000)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn other_bytes_than_a_hello_get_an_alert() {
        for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[21, 3, 3, 0, 2, 1, 0], &[HANDSHAKE, 3, 3, 0, 0]] {
            let hello = read(&mut &*said).await.unwrap();
            let (error, alert) = parse(&hello).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            let is_alert = alert.first() == Some(&21);
            assert!(is_alert || said[0] == 21, "{said:?}: {error}: {alert:?}");
        }
    }
}
