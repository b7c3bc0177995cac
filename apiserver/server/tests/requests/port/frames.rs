//! HTTP/2 by hand: frames in an order that no client library sends (RFC 9113, and RFC 7541 without its tables).

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data = 0,
    Headers = 1,
    Reset = 3,
    Settings = 4,
    Ping = 6,
    GoAway = 7,
    WindowUpdate = 8,
    Other,
}

#[derive(Debug)]
pub struct Frame {
    pub kind: Kind,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, Kind::Data | Kind::Headers) && self.flags & END_STREAM != 0
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }
}

/// One connection, which reads what a test asks for, and answers pings and settings.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    next: u32,
    /// Whether pings are answered.
    pub pongs: bool,
}

impl Connection {
    pub async fn open(stream: TlsStream<TcpStream>) -> Self {
        Self::granting(65_535, stream).await
    }

    /// One that grants each stream so many bytes.
    pub async fn granting(window: u32, mut stream: TlsStream<TcpStream>) -> Self {
        let setting = [&[0, 4], window.to_be_bytes().as_slice()].concat();
        let hello = [PREFACE, &frame(Kind::Settings, 0, 0, &setting)].concat();
        stream.write_all(&hello).await.unwrap();
        let mut connection = Self { stream, next: 1, pongs: true };
        // The window of the connection is so large that the server never waits for this side.
        connection.send(&frame(Kind::WindowUpdate, 0, 0, &(1_u32 << 30).to_be_bytes())).await;
        connection
    }

    /// The number of a new stream, and the frame that asks on it.
    pub fn request(&mut self, line: &str, headers: &[(&str, &str)], has_body: bool) -> (u32, Vec<u8>) {
        let (method, path) = line.split_once(' ').unwrap();
        let mut block = vec![0x87];
        literal(&mut block, ":method", method);
        literal(&mut block, ":path", path);
        literal(&mut block, ":authority", "localhost");
        headers.iter().for_each(|(name, value)| literal(&mut block, name, value));
        let stream = self.next;
        self.next += 2;
        let ends = if has_body { 0 } else { END_STREAM };
        (stream, frame(Kind::Headers, END_HEADERS | ends, stream, &block))
    }

    /// Sends bytes as they are. They leave together, as far as TLS lets them.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Asks something of a server that may have closed the connection.
    pub async fn insist(&mut self, line: &str) -> u32 {
        let (stream, request) = self.request(line, &[], false);
        self.reply(&request).await;
        stream
    }

    /// Asks, and returns the stream.
    pub async fn ask(&mut self, line: &str, headers: &[(&str, &str)], body: &str) -> u32 {
        let (stream, mut bytes) = self.request(line, headers, !body.is_empty());
        if !body.is_empty() {
            bytes.extend(frame(Kind::Data, END_STREAM, stream, body.as_bytes()));
        }
        self.send(&bytes).await;
        stream
    }

    /// The next frame; none when the server has closed.
    pub async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let mut payload =
            vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
        self.stream.read_exact(&mut payload).await.ok()?;
        let kind = match head[3] {
            0 => Kind::Data,
            1 => Kind::Headers,
            3 => Kind::Reset,
            4 => Kind::Settings,
            6 => Kind::Ping,
            7 => Kind::GoAway,
            8 => Kind::WindowUpdate,
            _ => Kind::Other,
        };
        let (flags, stream) = (head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        match kind {
            Kind::Settings if flags & ACK == 0 => self.reply(&frame(kind, ACK, 0, &[])).await,
            Kind::Ping if flags & ACK == 0 && self.pongs => self.reply(&frame(kind, ACK, 0, &payload)).await,
            _ => {}
        }
        Some(Frame { kind, flags, stream, payload })
    }

    /// Reads up to the frame that is looked for; the connection must not end before, nor be retired.
    pub async fn until(&mut self, what: &str, is_it: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("closed before {what}"));
            if is_it(&frame) {
                return frame;
            }
            assert_ne!(frame.kind, Kind::GoAway, "before {what}: {}", frame.text());
        }
    }

    /// Reads up to the end of the answer on a stream, and returns its body.
    pub async fn answer(&mut self, stream: u32) -> String {
        let mut body = String::new();
        loop {
            let frame = self.until("an answer", |frame| frame.stream == stream).await;
            match frame.kind {
                Kind::Data => body.push_str(&frame.text()),
                Kind::Reset => panic!("stream {stream} was reset"),
                _ => {}
            }
            if frame.ends_stream() {
                return body;
            }
        }
    }

    async fn reply(&mut self, bytes: &[u8]) {
        // The server may have closed.
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.flush().await;
    }
}

/// A frame as it goes over the wire.
pub fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind as u8, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// RST_STREAM with CANCEL.
pub fn cancel(stream: u32) -> Vec<u8> {
    frame(Kind::Reset, 0, stream, &8_u32.to_be_bytes())
}

/// A field that no table holds (RFC 7541, 6.2.2).
fn literal(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        block.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).unwrap());
        block.extend(text.as_bytes());
    }
}
