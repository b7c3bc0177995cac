//! Reading a request's body, within bounds.

use std::ops::Deref;
use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use drydock_machinery::ApiError;
use drydock_serving::wire::negotiate::{MEDIA_TYPES, WireFormat};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use hyper::body::Body as _;

use crate::flow_control::fair_budget::{FairBudget, Holding};
use crate::request::spans;

/// Largest body that is read (k8s.io/apiserver/pkg/server/config.go, MaxRequestBodyBytes).
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;
/// Bytes of the bodies of all requests in flight. What is decoded of a body may be 24 times as large.
const BUDGET: usize = 32 << 20;
/// Room for the announced length is made once the length divided by this has come: a client need not send what it
/// announces.
const AHEAD: usize = 8;

/// The budget of all bodies in flight.
pub fn budget() -> Arc<FairBudget> {
    let why = "Too many bytes in the bodies of requests in flight, please try again later.";
    Arc::new(FairBudget::new(BUDGET, why))
}

/// A body that has been read. It is counted among those in flight until it is dropped.
#[derive(Debug)]
pub struct RequestBody {
    bytes: Bytes,
    _holding: Option<Holding>,
}

impl RequestBody {
    /// The body of a request whose body is not read.
    pub const fn empty() -> Self {
        Self { bytes: Bytes::new(), _holding: None }
    }

    /// The bytes. Cloning them copies nothing.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Deref for RequestBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the whole body of a request, as the budget of its holding has room for it.
///
/// # Errors
/// 413 past the limit, 400 if it breaks off, 429 if there is no room for it in time.
pub async fn read(mut body: Body, mut holding: Holding) -> Result<RequestBody, ApiError> {
    let announced = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let announced = announced.unwrap_or_default().min(MAX_BODY_BYTES);
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| ApiError::bad_request(format!("error reading the request body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = first.len() + all.len() + data.len();
        if length > MAX_BODY_BYTES {
            return Err(ApiError::request_entity_too_large(format_args!("limit is {MAX_BODY_BYTES}")));
        }
        holding.take(data.len()).await?;
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        make_room(&mut all, length, announced);
        if !first.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    let bytes = if all.is_empty() { first } else { all.freeze() };
    spans::received(&bytes);
    Ok(RequestBody { bytes, _holding: Some(holding) })
}

/// Makes room for `length` bytes, and for all that is announced once a part of it has come.
fn make_room(all: &mut BytesMut, length: usize, announced: usize) {
    if length > all.capacity() {
        let ahead = if announced / AHEAD <= length { announced } else { length.saturating_mul(2) };
        all.reserve(ahead.clamp(length, MAX_BODY_BYTES) - all.len());
    }
}

/// The format of an object in the body; 415 for one that is not supported.
pub fn format(headers: &HeaderMap) -> Result<WireFormat, ApiError> {
    let media_type = media_type(headers);
    if media_type.is_empty() {
        return Ok(WireFormat::Json);
    }
    WireFormat::of_media_type(&media_type).ok_or_else(|| ApiError::unsupported_media_type(&MEDIA_TYPES))
}

/// The body's media type without parameters, in lower case.
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;
    use std::time::{Duration, Instant};

    use drydock_serving::request::user::User;
    use futures::{FutureExt, StreamExt, stream};

    use super::*;
    use crate::flow_control::PriorityLevel;

    fn chunked(chunks: Vec<Vec<u8>>) -> Body {
        Body::from_stream(stream::iter(chunks.into_iter().map(Ok::<_, Infallible>)))
    }

    /// The part of the budget that is not reserved for controllers and components of the host.
    const COMMON: usize = BUDGET - BUDGET / 4;

    fn user(name: &str) -> Arc<User> {
        Arc::new(User { name: name.to_owned(), ..User::default() })
    }

    async fn read_by(name: &str, body: Body, budget: &Arc<FairBudget>) -> Result<RequestBody, ApiError> {
        let deadline = Instant::now() + Duration::from_secs(34);
        read(body, budget.holding(&user(name), PriorityLevel::Everybody, deadline)).await
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_put_together_and_counted_until_it_is_dropped() {
        let budget = budget();
        let pieces: Vec<Vec<u8>> = (0..100_u8).map(|n| vec![n; usize::from(n)]).collect();
        let read = read_by("a", chunked(pieces.clone()), &budget).await.unwrap();
        assert_eq!(read.to_vec(), pieces.concat());
        assert_eq!(budget.free(), COMMON - read.len());
        drop(read);
        assert_eq!(budget.free(), COMMON);
        assert!(read_by("a", Body::empty(), &budget).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_breaks_off_or_is_too_long_gives_back_what_it_took() {
        let budget = budget();
        let too_long = chunked(vec![vec![0; 1 << 20]; 4]);
        assert_eq!(read_by("a", too_long, &budget).await.unwrap_err().code(), 413);
        let broken = Body::from_stream(stream::iter([Ok(vec![0; 9]), Err(std::io::Error::other("gone"))]));
        assert_eq!(read_by("a", broken, &budget).await.unwrap_err().code(), 400);
        assert_eq!(budget.free(), COMMON);
    }

    /// 200 bodies of 3 MiB took 1.2 GB.
    #[tokio::test]
    async fn bodies_that_never_end_leave_room_for_others() {
        let budget = budget();
        let endless = || {
            let chunks = stream::iter(vec![Ok::<_, Infallible>(vec![0; 1 << 19]); 5]);
            Body::from_stream(chunks.chain(stream::pending()))
        };
        let mut held: Vec<_> = (0..200).map(|_| Box::pin(read_by("a", endless(), &budget))).collect();
        assert!(held.iter_mut().all(|read| read.now_or_never().is_none()));
        assert_eq!(budget.free(), COMMON / 2);
        let other = read_by("b", chunked(vec![vec![0; 1 << 20]; 3]), &budget).now_or_never();
        assert_eq!(other.unwrap().unwrap().len(), 3 << 20);
        drop(held);
        assert_eq!(budget.free(), COMMON);
    }

    #[test]
    fn what_is_announced_gets_room_only_once_a_part_of_it_has_come() {
        let mut all = BytesMut::new();
        make_room(&mut all, 1000, MAX_BODY_BYTES);
        assert!(all.capacity() <= 2000);
        make_room(&mut all, MAX_BODY_BYTES / AHEAD, MAX_BODY_BYTES);
        assert!((MAX_BODY_BYTES..MAX_BODY_BYTES + 4096).contains(&all.capacity()));
    }
}
