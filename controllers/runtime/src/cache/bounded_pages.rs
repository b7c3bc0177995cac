//! Pages of lists, bounded by their bytes.
//!
//! A server takes the number of objects that a page may have, and not of bytes. A page is in memory as a whole before an object
//! of it is decoded, and tenants make objects of 1.5 MiB: 500 of them are three quarters of a gigabyte. A page that is longer
//! than [`MAX_PAGE_BYTES`] is therefore given up and asked for again with fewer objects, down to one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt;
use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderValue, Request, Response, Uri};
use kube::Client;
use kube::client::Body;

/// Most bytes of a page with more than one object: 16 KiB for each of 500, more than usual pods have.
const MAX_PAGE_BYTES: usize = 8 << 20;
/// The media types of metadata alone (k8s.io/apimachinery/pkg/apis/meta/v1.PartialObjectMetadata): of an object and of the objects
/// of a watch, and of a list.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// By what the number of objects is divided when a page was too long.
const DIVISOR: u32 = 4;

/// Returns a client that reads each page of a list within the bound. A caller gets shorter pages than it asked for, as a server
/// may give them at any time.
pub fn bounded(client: Client) -> Client {
    let pages = Arc::new(BoundedPages { client, limit: AtomicU32::new(u32::MAX) });
    let namespace = pages.client.default_namespace().to_owned();
    let send = move |request| {
        let pages = pages.clone();
        async move { pages.send(request).await }
    };
    Client::new(tower::service_fn(send), namespace)
}

/// Returns a client that gets of each object its metadata alone.
pub fn metadata_alone(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = move |mut request: Request<Body>| {
        let client = client.clone();
        let accepts = match limit_of(request.uri()) {
            Some(_) => METADATA_LIST,
            None => METADATA,
        };
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accepts));
        async move { client.send(request).await }
    };
    Client::new(tower::service_fn(send), namespace)
}

struct BoundedPages {
    client: Client,
    /// How many objects the next page may have.
    limit: AtomicU32,
}

impl BoundedPages {
    async fn send(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let Some(asked) = limit_of(request.uri()) else { return self.client.send(request).await };
        let (head, _) = request.into_parts();
        loop {
            let limit = self.limit.load(Ordering::Relaxed).clamp(1, asked.max(1));
            let (answer, body) = self.client.send(with_limit(&head, limit)).await?.into_parts();
            let most = if limit == 1 { usize::MAX } else { MAX_PAGE_BYTES };
            match read(body, most).await? {
                Some(page) => {
                    let may_grow = page.len() <= MAX_PAGE_BYTES / 2;
                    self.limit
                        .store(if may_grow { limit.saturating_mul(2) } else { limit }, Ordering::Relaxed);
                    return Ok(Response::from_parts(answer, Body::from(page)));
                }
                None => self.limit.store(limit / DIVISOR, Ordering::Relaxed),
            }
        }
    }
}

/// How many objects a request asks for; none if it is for no page of a list.
fn limit_of(uri: &Uri) -> Option<u32> {
    let limit = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("limit="))?;
    limit.parse().ok()
}

/// The request for a page of so many objects.
fn with_limit(head: &Parts, limit: u32) -> Request<Body> {
    let mut head = head.clone();
    let pairs = head.uri.query().unwrap_or_default().split('&');
    let pairs =
        pairs.map(|pair| if pair.starts_with("limit=") { format!("limit={limit}") } else { pair.to_owned() });
    let query = pairs.collect::<Vec<_>>().join("&");
    let mut uri = head.uri.clone().into_parts();
    uri.path_and_query = format!("{}?{query}", head.uri.path()).parse().ok();
    head.uri = Uri::from_parts(uri).unwrap_or(head.uri);
    Request::from_parts(head, Body::empty())
}

/// Reads a body; none if it has more than `most` bytes.
async fn read(body: Body, most: usize) -> kube::Result<Option<Vec<u8>>> {
    let (mut read, mut chunks) = (Vec::new(), axum::body::Body::new(body).into_data_stream());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| kube::Error::Service(error.into_inner()))?;
        if chunk.len() > most - read.len() {
            return Ok(None);
        }
        read.extend_from_slice(&chunk);
    }
    Ok(Some(read))
}

#[cfg(test)]
#[path = "bounded_pages_tests.rs"]
mod tests;
