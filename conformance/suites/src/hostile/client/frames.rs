//! HTTP/2 frames by hand (RFC 9113), with header blocks that compress nothing (RFC 7541, 6.2.2).

use std::net::Ipv4Addr;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use super::{ServerEndpoint, TlsConnection};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// RFC 9113, 7: CANCEL.
const CANCEL: u32 = 8;
/// The largest frame that every server accepts.
const FRAME: usize = 16_384;

/// A connection on which frames are written as they are.
pub struct RawFrames {
    write: WriteHalf<TlsConnection>,
    read: Option<ReadHalf<TlsConnection>>,
    reader: Option<JoinHandle<()>>,
}

impl RawFrames {
    /// Opens it, with the preface and these settings (identifier, value).
    pub async fn open(
        endpoint: &ServerEndpoint,
        from: Ipv4Addr,
        settings: &[(u16, u32)],
    ) -> Result<RawFrames> {
        Self::begin(endpoint.http2(from).await?, settings).await
    }

    /// Begins on a connection, with the preface and these settings (identifier, value).
    pub async fn begin(stream: TlsConnection, settings: &[(u16, u32)]) -> Result<RawFrames> {
        let (read, write) = tokio::io::split(stream);
        let mut frames = RawFrames { write, read: Some(read), reader: None };
        frames.write.write_all(PREFACE).await?;
        let settings =
            settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
        frames.frame(SETTINGS, 0, 0, &settings.collect::<Vec<u8>>()).await?;
        Ok(frames)
    }

    /// Reads and discards what the server sends from now on. Before, nothing is read.
    pub fn listen(mut self) -> RawFrames {
        self.reader = self.read.take().map(|read| tokio::spawn(read_all(read)));
        self
    }

    /// Waits until the server has ended a connection that is listened to.
    pub async fn ended(&mut self) {
        if let Some(reader) = &mut self.reader {
            // It ends with what it reads.
            let _ = reader.await;
            self.reader = None;
        }
    }

    /// Answers pings until the server has ended a connection that is not listened to.
    pub async fn pong_until_ended(&mut self) {
        while let Some(read) = &mut self.read {
            let (mut head, mut payload) = ([0; 9], Vec::new());
            let read = async {
                read.read_exact(&mut head).await?;
                payload.resize(u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize, 0);
                read.read_exact(&mut payload).await
            };
            if read.await.is_err() {
                self.read = None;
            } else if (head[3], head[4]) == (PING, 0) {
                let _ = self.frame(PING, ACK, 0, &payload).await;
                let _ = self.flush().await;
            }
        }
    }

    /// A request without a body.
    pub async fn request(&mut self, stream: u32, block: &[u8]) -> Result<()> {
        self.frame(HEADERS, END_STREAM | END_HEADERS, stream, block).await
    }

    /// A request with this body, in one frame.
    pub async fn request_with(&mut self, stream: u32, block: &[u8], body: &[u8]) -> Result<()> {
        self.frame(HEADERS, END_HEADERS, stream, block).await?;
        self.frame(DATA, END_STREAM, stream, body).await
    }

    /// A header block in many frames; its end comes only if asked for.
    pub async fn long_request(&mut self, stream: u32, block: &[u8], end: bool) -> Result<()> {
        let mut pieces = block.chunks(FRAME).peekable();
        let mut kind = (HEADERS, END_STREAM);
        while let Some(piece) = pieces.next() {
            let last = if end && pieces.peek().is_none() { END_HEADERS } else { 0 };
            self.frame(kind.0, kind.1 | last, stream, piece).await?;
            kind = (CONTINUATION, 0);
        }
        Ok(())
    }

    /// More of a header block that has not ended.
    pub async fn more(&mut self, stream: u32, block: &[u8]) -> Result<()> {
        for piece in block.chunks(FRAME) {
            self.frame(CONTINUATION, 0, stream, piece).await?;
        }
        Ok(())
    }

    /// Ends a stream.
    pub async fn cancel(&mut self, stream: u32) -> Result<()> {
        self.frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()).await
    }

    /// Asks for an answer.
    pub async fn ping(&mut self) -> Result<()> {
        self.frame(PING, 0, 0, &[0; 8]).await
    }

    /// Asks for an acknowledgement.
    pub async fn settings(&mut self) -> Result<()> {
        self.frame(SETTINGS, 0, 0, &[]).await
    }

    /// Lets the server send so many bytes more; stream 0 is the connection.
    pub async fn window(&mut self, stream: u32, bytes: u32) -> Result<()> {
        self.frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes()).await
    }

    /// Sends what was written.
    pub async fn flush(&mut self) -> Result<()> {
        Ok(self.write.flush().await?)
    }

    async fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<()> {
        let length = u32::try_from(payload.len())?.to_be_bytes();
        let mut bytes = Vec::with_capacity(9 + payload.len());
        bytes.extend_from_slice(&length[1..]);
        bytes.extend_from_slice(&[kind, flags]);
        bytes.extend_from_slice(&stream.to_be_bytes());
        bytes.extend_from_slice(payload);
        Ok(self.write.write_all(&bytes).await?)
    }
}

impl Drop for RawFrames {
    fn drop(&mut self) {
        self.reader.iter().for_each(JoinHandle::abort);
    }
}

async fn read_all(mut read: ReadHalf<TlsConnection>) {
    let mut piece = vec![0; 64 << 10];
    while read.read(&mut piece).await.is_ok_and(|count| count > 0) {}
}

/// A header block of a GET with more fields, each literal and not indexed.
pub fn fields(authority: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    block_of("GET", authority, path, more)
}

/// The same of a gRPC call.
pub fn call_fields(authority: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let usual = [("content-type", "application/grpc"), ("te", "trailers")];
    block_of("POST", authority, path, &[&usual, more].concat())
}

fn block_of(method: &str, authority: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let usual = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)];
    let mut block = Vec::new();
    for (name, value) in usual.iter().chain(more) {
        block.push(0);
        text(&mut block, name);
        text(&mut block, value);
    }
    block
}

/// RFC 7541, 5.2: a string without Huffman coding, its length an integer with a prefix of 7 bits.
fn text(block: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 127 {
        block.push(length as u8);
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push((length % 128) as u8 | 128);
            length /= 128;
        }
        block.push(length as u8);
    }
    block.extend_from_slice(text.as_bytes());
}
