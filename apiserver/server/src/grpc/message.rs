//! The one request message of a call: read within bounds, and decompressed.

use std::io::Read as _;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use drydock_machinery::ApiError;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt;
use tonic::Status;

use super::CallRefusal;
use crate::flow_control::fair_budget::Holding;

/// Maximum bytes of a request message, compressed and decompressed.
pub(super) const MAX_BYTES: usize = 64 << 10;
/// Bytes before a message: whether it is compressed (1), and its length (4).
const PREFIX: usize = 5;

const ENCODING: &str = "grpc-encoding";
const ACCEPT_ENCODING: &str = "grpc-accept-encoding";

/// Reads the message, and removes the headers of its encoding. Its bytes count in `holding` while it is read.
///
/// # Errors
/// INVALID_ARGUMENT for anything but exactly one whole message, RESOURCE_EXHAUSTED for one that is too long,
/// UNIMPLEMENTED for a compression other than gzip, and the refusals of [`Holding::take`].
pub(super) async fn read(
    headers: &mut HeaderMap,
    body: Body,
    holding: Option<&mut Holding>,
    most: usize,
) -> Result<Bytes, CallRefusal> {
    let encoding = headers.remove(ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    let frame = collect(body, holding, most).await?;
    let (prefix, message) = frame.split_at(PREFIX);
    match (prefix[0], encoding.as_ref().map(HeaderValue::as_bytes)) {
        (0, _) => Ok(frame.slice(PREFIX..)),
        (1, Some(b"gzip")) => inflate(message, most),
        (1, None | Some(b"identity")) => {
            Err(malformed("a compressed message needs the header grpc-encoding"))
        }
        (1, Some(_)) => Err(unknown_encoding()),
        _ => Err(malformed("the first byte of a message must be 0 or 1")),
    }
}

/// A body of this message alone.
pub(super) fn framed(message: &Bytes) -> Body {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    // No message is as long as 4 GiB.
    frame.put_u32(u32::try_from(message.len()).unwrap_or_default());
    frame.put_slice(message);
    Body::from(frame.freeze())
}

/// The whole body, which must be one message with its prefix.
async fn collect(
    mut body: Body,
    mut holding: Option<&mut Holding>,
    most: usize,
) -> Result<Bytes, CallRefusal> {
    let mut all = BytesMut::new();
    while let Some(part) = body.frame().await {
        let part = part.map_err(|_| malformed("the request body broke off"))?;
        let Ok(data) = part.into_data() else { continue };
        if let Some(holding) = &mut holding {
            holding.take(data.len()).await?;
        }
        all.extend_from_slice(&data);
        check_length(&all, most)?;
    }
    match announced(&all) {
        Some(length) if all.len() == PREFIX + length => Ok(all.freeze()),
        _ if all.is_empty() => Err(malformed("the request has no message")),
        _ => Err(malformed("the request ends within its message")),
    }
}

/// Refuses a message that announces too many bytes as soon as that is known, and anything after the message.
fn check_length(all: &[u8], most: usize) -> Result<(), CallRefusal> {
    match announced(all) {
        Some(length) if length > most => Err(too_large(most)),
        Some(length) if all.len() > PREFIX + length => {
            Err(malformed("the request has more than one message"))
        }
        _ => Ok(()),
    }
}

fn announced(all: &[u8]) -> Option<usize> {
    let length = all.get(1..PREFIX)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

/// Inflates a message, up to one byte more than `most`, which then is too long.
fn inflate(message: &[u8], most: usize) -> Result<Bytes, CallRefusal> {
    let mut plain = Vec::new();
    let read = GzDecoder::new(message).take(most as u64 + 1).read_to_end(&mut plain);
    match read {
        Ok(length) if length > most => Err(too_large(most)),
        Ok(_) => Ok(plain.into()),
        Err(_) => Err(malformed("the message is not gzip")),
    }
}

fn malformed(why: &'static str) -> CallRefusal {
    ApiError::bad_request(why).into()
}

fn too_large(most: usize) -> CallRefusal {
    let why = format!("a request message has at most {most} bytes, compressed and decompressed");
    ApiError::request_entity_too_large(why).into()
}

fn unknown_encoding() -> CallRefusal {
    let mut status = Status::unimplemented("grpc-encoding must be identity or gzip");
    let accepted = tonic::metadata::MetadataValue::from_static("identity,gzip");
    status.metadata_mut().insert(ACCEPT_ENCODING, accepted);
    status.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use futures::{StreamExt, stream};
    use tonic::Code;

    use super::*;

    fn frame(flag: u8, announced: usize, bytes: &[u8]) -> Vec<u8> {
        let mut frame = vec![flag];
        frame.extend_from_slice(&u32::try_from(announced).unwrap().to_be_bytes());
        frame.extend_from_slice(bytes);
        frame
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    async fn read_in(body: Body, encoding: Option<&'static str>) -> Result<Bytes, Code> {
        let mut headers = HeaderMap::new();
        if let Some(encoding) = encoding {
            headers.insert(ENCODING, HeaderValue::from_static(encoding));
        }
        read(&mut headers, body, None, MAX_BYTES).await.map_err(|refusal| refusal.status.code())
    }

    async fn read_of(frame: Vec<u8>, encoding: Option<&'static str>) -> Result<Bytes, Code> {
        read_in(Body::from(frame), encoding).await
    }

    #[tokio::test]
    async fn a_message_is_read_however_it_comes() {
        let whole = frame(0, 5, b"hello");
        assert_eq!(read_of(whole.clone(), None).await.unwrap(), "hello");
        assert_eq!(read_of(whole.clone(), Some("gzip")).await.unwrap(), "hello", "not compressed after all");
        let bytes = stream::iter(whole.into_iter().map(|byte| Ok::<_, Infallible>(vec![byte])));
        assert_eq!(read_in(Body::from_stream(bytes), None).await.unwrap(), "hello");
        assert_eq!(read_of(frame(0, 0, b""), None).await.unwrap(), "");
        let packed = gzip(b"hello");
        assert_eq!(read_of(frame(1, packed.len(), &packed), Some("gzip")).await.unwrap(), "hello");
        let framed = framed(&Bytes::from_static(b"hello")).collect().await.unwrap().to_bytes();
        assert_eq!(framed, frame(0, 5, b"hello"));
    }

    #[tokio::test]
    async fn anything_but_one_whole_message_is_an_invalid_argument() {
        let two = [frame(0, 1, b"a"), frame(0, 1, b"b")].concat();
        for garbage in
            [vec![], vec![0, 0, 0], frame(0, 5, b"hell"), frame(2, 1, b"a"), two, frame(1, 3, b"abc")]
        {
            assert_eq!(read_of(garbage.clone(), None).await, Err(Code::InvalidArgument), "{garbage:?}");
        }
        assert_eq!(read_of(frame(1, 3, b"abc"), Some("gzip")).await, Err(Code::InvalidArgument));
        let cut = gzip(b"hello");
        let cut = &cut[..cut.len() - 4];
        assert_eq!(read_of(frame(1, cut.len(), cut), Some("gzip")).await, Err(Code::InvalidArgument));
        assert_eq!(read_of(frame(1, 3, b"abc"), Some("zstd")).await, Err(Code::Unimplemented));
    }

    /// A message that announces too many bytes, or never ends, is not waited for.
    #[tokio::test]
    async fn a_message_that_is_too_long_is_refused_before_it_has_come() {
        let endless = |start: Vec<u8>| {
            Body::from_stream(stream::iter([Ok::<_, Infallible>(start)]).chain(stream::pending()))
        };
        let announced = read_in(endless(frame(0, MAX_BYTES + 1, b"")), None).await;
        assert_eq!(announced, Err(Code::ResourceExhausted));
        let more = read_in(endless(frame(0, 1, b"ab")), None).await;
        assert_eq!(more, Err(Code::InvalidArgument));
        assert!(read_of(frame(0, MAX_BYTES, &vec![0; MAX_BYTES]), None).await.is_ok());
    }

    #[tokio::test]
    async fn a_gzip_bomb_is_inflated_no_further_than_the_bound() {
        let bomb = gzip(&vec![0; 16 << 20]);
        assert!(bomb.len() < MAX_BYTES);
        assert_eq!(read_of(frame(1, bomb.len(), &bomb), Some("gzip")).await, Err(Code::ResourceExhausted));
        let largest = gzip(&vec![0; MAX_BYTES]);
        assert_eq!(read_of(frame(1, largest.len(), &largest), Some("gzip")).await.unwrap().len(), MAX_BYTES);
    }
}
