//! The gRPC codec of the service: requests stay bytes, and responses are already encoded.

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::error::request_too_long;
use crate::messages::fields::RESUME_TOKEN;
use crate::token::{TOKEN_LEN, Token};

/// Maximum bytes of a request message.
const REQUEST_MAX: usize = 64 << 10;
/// Initial bytes of a stream's buffer, which lives as long as the stream.
const BUFFER: usize = 1024;
/// Bytes of messages that are collected before they are sent.
const SEND: usize = 4 << 10;

/// One response of a stream.
#[derive(Clone, Debug)]
pub struct StreamMessage {
    /// The resume token: a stream that resumes with it starts after this response.
    pub token: Token,
    /// The encoded field of the event.
    pub event: Bytes,
}

/// A response.
pub enum Response {
    /// A whole message, encoded.
    Whole(Bytes),
    /// A message of a stream.
    Stream(StreamMessage),
}

/// Passes requests on as bytes, because their type depends on the method.
#[derive(Default)]
pub struct EncodedCodec;

/// Writes responses out.
pub struct EncodedEncoder;

/// Reads requests.
pub struct EncodedDecoder;

impl Codec for EncodedCodec {
    type Encode = Response;
    type Decode = Bytes;
    type Encoder = EncodedEncoder;
    type Decoder = EncodedDecoder;

    fn encoder(&mut self) -> Self::Encoder {
        EncodedEncoder
    }

    fn decoder(&mut self) -> Self::Decoder {
        EncodedDecoder
    }
}

impl Decoder for EncodedDecoder {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        // tonic's own limit is not used: it fails with OUT_OF_RANGE, which here means that a resume token has expired.
        if message.remaining() > REQUEST_MAX {
            return Err(request_too_long(REQUEST_MAX));
        }
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, SEND)
    }
}

impl Encoder for EncodedEncoder {
    type Item = Response;
    type Error = Status;

    fn encode(&mut self, item: Response, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        match item {
            Response::Whole(message) => out.put(message),
            Response::Stream(StreamMessage { token, event }) => {
                out.put_u8(RESUME_TOKEN);
                // Less than 128, so its varint is one byte.
                out.put_u8(TOKEN_LEN as u8);
                token.encode(&mut *out);
                out.put(event);
            }
        }
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, SEND)
    }
}
