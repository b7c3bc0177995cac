//! Invalid calls of the gRPC status stream: garbage, and forged resume tokens.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use drydock_proto::status::v1alpha1::watch_evictions_response::Event;
use drydock_proto::status::v1alpha1::{WatchEvictionsRequest, WatchEvictionsResponse, WatchOptions};
use drydock_testkit::finding::Finding;
use drydock_testkit::wait::{LIMIT, until_some};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::eviction_requests::{Findings, create_requests};
use crate::attack::Attack;
use crate::client::{Calls, FlowWindows, NotReady, UserConnection, UserRequest, call, frame};
use crate::context::AttackContext;

const METHOD: &str = "WatchEvictions";
/// Calls at a time.
const LANES: usize = 16;
/// How long to read the answer to a call with a forged token, before the call is dropped.
const LISTEN: Duration = Duration::from_millis(200);

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "garbage-frames",
            "gRPC messages and metadata that are broken, long or gzip bombs",
            |f| Box::pin(garbage(f)),
        ),
        Attack::new("forged-tokens", "resume tokens that are made up, changed, or another tenant's", |f| {
            Box::pin(forged(f))
        }),
    ]
}

async fn garbage(context: AttackContext) -> Findings {
    create_requests(&context, 1, 1000).await?;
    let asks = Arc::new(broken(&context)?);
    // Each once, however long it takes; then as many as there is time for.
    for ask in asks.iter() {
        context.note_call(&context.connect().await?.send(ask).await);
    }
    let own = context.clone();
    context
        .repeat(LANES, move |lane, _| {
            let (context, asks) = (own.clone(), asks.clone());
            async move {
                let connection = context.connect().await?;
                let mut all = asks.iter().cycle().skip(lane);
                while let Some(ask) = all.next().filter(|_| !connection.is_closed()) {
                    context.note_call(&connection.send(ask).await);
                }
                Ok(())
            }
        })
        .await;
    let unknown = context.counted("grpc-status 12");
    Ok(vec![
        Finding::new(context.counted("open") == 0, "a stream was opened by a broken call"),
        Finding::new(unknown > 0, "a method that there is not was not refused as such"),
    ])
}

/// Calls, each of which is invalid in one way.
fn broken(context: &AttackContext) -> Result<Vec<UserRequest>> {
    let good = watch(&context.tenant.namespace, Bytes::new());
    let with_body = |body: Bytes| UserRequest { body, ..call(METHOD, &good) };
    let zipped = |body: &[u8]| anyhow::Ok(with_body(frame(1, &gzip(body)?)).with("grpc-encoding", "gzip"));
    let whole = frame(0, &good.encode_to_vec());
    let selector =
        |text: String| call(METHOD, &WatchEvictionsRequest { label_selector: text, ..good.clone() });
    let mut all: Vec<UserRequest> = [
        Bytes::new(),
        Bytes::from_static(&[0]),
        Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff]),
        Bytes::from_static(&[7, 0, 0, 0, 0]),
        Bytes::from_static(&[1, 0, 0, 0, 0]),
        whole.slice(..whole.len() - 1),
        [&whole[..], &whole[..]].concat().into(),
        frame(0, &[0xff; 1000]),
        frame(0, &[0x0a; 60_000]),
        frame(0, &vec![0; 3 << 20]),
        // A group within a group (field 100), a thousand times.
        frame(0, &[0xa3, 0x06].repeat(1000)),
    ]
    .into_iter()
    .map(with_body)
    .collect();
    all.extend([
        zipped(&vec![0; 64 << 20])?,
        zipped(&gzip(&vec![0; 64 << 20])?)?,
        with_body(frame(1, b"this is not gzip")).with("grpc-encoding", "gzip"),
        with_body(frame(1, b"x")).with("grpc-encoding", "br"),
        call(METHOD, &good).with("grpc-timeout", "999999999999H"),
        call("WatchNothing", &good),
        UserRequest { method: http::Method::GET, ..call(METHOD, &good) },
        selector("x=".repeat(30_000)),
        selector("((".to_owned()),
        // The last one, as it may end the connection.
        call(METHOD, &good).with("x-long", "x".repeat(200_000)),
    ]);
    Ok(all)
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

async fn forged(context: AttackContext) -> Findings {
    create_requests(&context, 20, 1000).await?;
    let token =
        first_token(&context.connect().await?, &watch(&context.tenant.namespace, Bytes::new())).await?;
    ensure!(!token.is_empty(), "a response without a token");
    let system_masters = UserConnection::open(
        &context.setup.system_masters,
        crate::context::ATTACKER_ADDRESS,
        None,
        FlowWindows::USUAL,
    )
    .await?;
    let others = first_token(&system_masters, &WatchEvictionsRequest::default()).await?;
    let (own, namespace) = (context.clone(), context.tenant.namespace.clone());
    context
        .repeat(LANES, move |lane, round| {
            let (context, namespace) = (own.clone(), namespace.clone());
            let forged = forge(&token, &others, lane * 1000 + round);
            async move {
                let connection = context.connect().await?;
                let answer = connection.send(&call(METHOD, &watch(&namespace, forged))).await;
                context.note_call(&answer);
                if let Ok(calls) = Calls::of(answer?) {
                    // Nothing may come for long: a heartbeat is seconds away.
                    let _ = tokio::time::timeout(LISTEN, count_objects(&context, calls, &namespace)).await;
                }
                Ok(())
            }
        })
        .await;
    Ok(vec![Finding::new(context.counted("foreign") == 0, "a forged token showed another namespace")])
}

/// Counts the objects of its own namespace and of others that a stream delivers.
async fn count_objects(context: &AttackContext, mut calls: Calls, namespace: &str) -> Result<()> {
    loop {
        let response: WatchEvictionsResponse = calls.next().await?;
        let of = match &response.event {
            Some(Event::Updated(eviction)) => &eviction.namespace,
            Some(Event::Removed(key)) => &key.namespace,
            _ => continue,
        };
        context.count(if of == namespace { "own" } else { "foreign" });
    }
}

/// The token in the first response of a call, which is made again while the server is not ready for it.
async fn first_token(connection: &UserConnection, ask: &WatchEvictionsRequest) -> Result<Bytes> {
    until_some(
        LIMIT,
        || "the server is never ready for a call".into(),
        async || match Calls::of(connection.send(&call(METHOD, ask)).await?) {
            Ok(mut calls) => Ok(Some(calls.next::<WatchEvictionsResponse>().await?.resume_token)),
            Err(error) if error.is::<NotReady>() => Ok(None),
            Err(error) => Err(error),
        },
    )
    .await
}

/// Forges a token in one of several ways: a flipped bit, a piece, random bytes, or the token of another filter.
fn forge(token: &[u8], others: &Bytes, number: usize) -> Bytes {
    let (kind, at) = (number % 5, number / 5);
    let mut forged = token.to_vec();
    match kind {
        0 | 1 => {
            let bit = at % (8 * forged.len());
            forged[bit / 8] ^= 1 << (bit % 8);
        }
        2 => forged.truncate(at % forged.len()),
        3 => {
            // Not the first byte, which is the form of the token, and not the filter's digest at its end.
            let inner = 1..forged.len().saturating_sub(8).max(1);
            let mut seed = at as u64;
            for byte in &mut forged[inner] {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (seed >> 56) as u8;
            }
        }
        _ => return others.clone(),
    }
    forged.into()
}

fn watch(namespace: &str, resume_token: Bytes) -> WatchEvictionsRequest {
    let options = Some(WatchOptions { resume_token, ..Default::default() });
    WatchEvictionsRequest { options, namespace: namespace.to_owned(), ..Default::default() }
}
