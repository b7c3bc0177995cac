//! The gRPC codec of the service: requests are decoded, responses come encoded.

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::error::request_too_long;
use crate::messages::fields::RESUME_TOKEN;
use crate::token::{TOKEN_LEN, Token};

/// Most bytes of a request message.
const REQUEST_MAX: usize = 64 << 10;
/// Bytes that a stream's buffer has at first: it lives as long as the stream.
const BUFFER: usize = 1024;
/// Bytes of messages that are put together before they are sent.
const SEND: usize = 4 << 10;

/// One response: its token and its event, encoded.
#[derive(Clone, Debug)]
pub struct StreamMessage {
    /// Where to resume after it.
    pub token: Token,
    /// The field of the event.
    pub event: Bytes,
}

/// A response.
pub enum Response {
    /// A whole message, encoded.
    Whole(Bytes),
    /// A message of a stream.
    Stream(StreamMessage),
}

/// Takes requests as bytes, which are decoded with the method in hand.
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
        // Not the codec's own bound: its OUT_OF_RANGE would say that a resume token has expired.
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
                // Below 128: one byte of a varint.
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
