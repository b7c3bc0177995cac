//! Calls of the gRPC status stream.

use std::fmt::{self, Display};

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, Method, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;

use super::UserRequest;

// gRPC's codes of refusals after which a client may make its call again (statuscodes.md).
const DEADLINE_EXCEEDED: &str = "4";
const RESOURCE_EXHAUSTED: &str = "8";
const UNAVAILABLE: &str = "14";

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// A call of a method of the status service with this message.
pub fn call(method: &str, message: &impl Message) -> UserRequest {
    let path = format!("/drydock.status.v1alpha1.StatusService/{method}");
    let ask = UserRequest::body(Method::POST, path, "application/grpc", frame(0, &message.encode_to_vec()));
    ask.with("te", "trailers")
}

/// A message behind its prefix.
pub fn frame(compressed: u8, message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(compressed);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

/// The code of gRPC in a head or in trailers.
pub fn status_of(headers: &HeaderMap) -> Option<&str> {
    headers.get("grpc-status")?.to_str().ok()
}

/// A call that the server refused because it is not ready for it: clients make it again.
#[derive(Debug)]
pub struct NotReady;

impl Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server is not ready for the call")
    }
}

/// Whether the server was not ready, had no time left, or has the call wait for its turn: with a RetryInfo, and without the
/// ErrorInfo that a bound of the stream has.
fn may_be_made_again(refusal: &HeaderMap) -> bool {
    let details = refusal.get("grpc-status-details-bin").and_then(|details| details.to_str().ok());
    let details = details.and_then(|text| STANDARD_NO_PAD.decode(text.trim_end_matches('=')).ok());
    let details = details.unwrap_or_default();
    let has = |detail: &str| details.windows(detail.len()).any(|at| at == detail.as_bytes());
    match status_of(refusal) {
        Some(UNAVAILABLE | DEADLINE_EXCEEDED) => true,
        Some(RESOURCE_EXHAUSTED) => has("google.rpc.RetryInfo") && !has("google.rpc.ErrorInfo"),
        _ => false,
    }
}

/// The responses of a call that streams.
pub struct Calls {
    body: Incoming,
    rest: BytesMut,
}

impl Calls {
    /// Reads the responses of an answer.
    ///
    /// # Errors
    /// The call was refused; with [`NotReady`] in the error if it may be made again.
    pub fn of(answer: Response<Incoming>) -> Result<Calls> {
        let code = answer.status();
        let head = answer.headers();
        if code.is_success() && status_of(head).is_none() {
            return Ok(Calls { body: answer.into_body(), rest: BytesMut::new() });
        }
        let error = anyhow!("the call was refused: {code}: {head:?}");
        Err(if may_be_made_again(head) { error.context(NotReady) } else { error })
    }

    /// The next response. Cancel safe.
    ///
    /// # Errors
    /// The end of the stream.
    pub async fn next<T: Message + Default>(&mut self) -> Result<T> {
        loop {
            if let Some(message) = self.whole() {
                return Ok(T::decode(message)?);
            }
            let frame = self.body.frame().await.context("the stream ended without trailers")??;
            match frame.into_data() {
                Ok(data) => self.rest.extend_from_slice(&data),
                Err(frame) => bail!("the stream ended: {:?}", frame.into_trailers()),
            }
        }
    }

    fn whole(&mut self) -> Option<BytesMut> {
        let length = self.rest.get(1..PREFIX)?.try_into().map(u32::from_be_bytes).ok()?;
        let end = PREFIX.checked_add(usize::try_from(length).ok()?)?;
        if self.rest.len() < end {
            return None;
        }
        let mut whole = self.rest.split_to(end);
        whole.advance(PREFIX);
        Some(whole)
    }
}
