//! What answers at the port: gRPC calls go to the mounted service, all other requests to the chain.

use std::sync::Arc;

use axum::body::Body;
use drydock_serving::auth::authn::Peer;
use drydock_serving::serve::RequestHandler;
use http::{Method, Request, Response, Version, header};

use crate::chain::{Chain, ResponseGuard};
use crate::grpc::Grpc;
use crate::responses::ResponseBody;

/// Everything that answers at the port: the chain of HTTP requests, and a gRPC service where one is mounted.
pub struct Mux {
    /// Answers requests.
    pub chain: Arc<Chain>,
    /// Answers calls.
    pub grpc: Option<Grpc>,
}

impl Mux {
    /// Reviews the open streams and follows the readiness of the server, until the future is dropped. Returns at once
    /// if no service is mounted.
    pub async fn review_streams(self: Arc<Self>) {
        let Some(grpc) = &self.grpc else { return };
        grpc.review_streams(self.chain.clone()).await;
    }
}

impl RequestHandler for Mux {
    type Body = ResponseBody<ResponseGuard>;

    async fn handle(&self, request: Request<Body>, peer: &Peer) -> Response<Self::Body> {
        match self.grpc.as_ref().filter(|_| is_call(&request)) {
            // Boxed: its state is larger than that of other requests, which would all make room for it.
            Some(grpc) => Box::pin(self.chain.serve_call(grpc, request, peer)).await,
            None => self.chain.handle_request(request, peer).await,
        }
    }

    fn is_front_proxy(&self, peer: &Peer) -> Option<bool> {
        self.chain.authenticator.is_front_proxy(peer)
    }
}

/// Whether a request is a gRPC call. Other requests cost one comparison here, those with POST one look at a header. The
/// path of a resource is never a method's: a create of an object with this media type gets 415.
fn is_call(request: &Request<Body>) -> bool {
    request.method() == Method::POST
        && request.version() == Version::HTTP_2
        && request.headers().get(header::CONTENT_TYPE).is_some_and(|value| is_grpc(value.as_bytes()))
        && !["/api/", "/apis/"].iter().any(|start| request.uri().path().starts_with(start))
}

/// `application/grpc` or `application/grpc+proto`, with or without parameters.
fn is_grpc(media_type: &[u8]) -> bool {
    let end = media_type.iter().position(|byte| matches!(byte, b';' | b' ')).unwrap_or(media_type.len());
    let media_type = &media_type[..end];
    [&b"application/grpc"[..], b"application/grpc+proto"].iter().any(|it| media_type.eq_ignore_ascii_case(it))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_post_over_http2_with_the_media_type_of_grpc_is_a_call() {
        let at = |path: &str, method: Method, version, media_type: &str| {
            let request = Request::builder().uri(path).method(method).version(version);
            is_call(&request.header(header::CONTENT_TYPE, media_type).body(Body::empty()).unwrap())
        };
        let call = |method, version, media_type: &str| at("/p.S/M", method, version, media_type);
        assert!(!at("/apis/g/v1/things", Method::POST, Version::HTTP_2, "application/grpc"));
        for media_type in ["application/grpc", "application/grpc+proto", "Application/gRPC; charset=utf-8"] {
            assert!(call(Method::POST, Version::HTTP_2, media_type), "{media_type}");
            assert!(!call(Method::POST, Version::HTTP_11, media_type), "{media_type}");
            assert!(!call(Method::GET, Version::HTTP_2, media_type), "{media_type}");
        }
        for media_type in
            ["application/grpc-web", "application/grpc+json", "application/grp", "application/json", ""]
        {
            assert!(!call(Method::POST, Version::HTTP_2, media_type), "{media_type}");
        }
    }
}
