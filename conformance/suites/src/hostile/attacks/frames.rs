//! HTTP/2 frames that no ordinary client sends.

use std::net::Ipv4Addr;

use drydock_testkit::finding::Finding;
use drydock_testkit::wait::LIMIT;
use futures::future::join_all;

use super::eviction_requests::{Findings, no_findings};
use crate::attack::Attack;
use crate::client::{RawFrames, RawHttp, fields};
use crate::context::{ATTACKER_ADDRESS, AttackContext};

/// Connections at a time.
const LANES: usize = 8;
/// Addresses with half heads, and connections from each: no more than may begin a handshake in a second.
const HALF: (u8, usize) = (16, 60);
/// Fields of a half head: they are nearly as long as a head may be, by HTTP/2's own count (RFC 9113, section 6.5.2).
const FIELDS: usize = 1_600;
/// Bytes of a half head over HTTP/1.1, nearly as long.
const HTTP1_HEAD: usize = 60_000;

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("rapid-reset", "streams that are reset as soon as they are open", |f| {
            Box::pin(rapid_reset(f))
        }),
        Attack::new("continuation-flood", "header blocks that never end", |f| Box::pin(continuation(f))),
        Attack::new("half-heads", "960 connections of one tenant with heads that never end", |f| {
            Box::pin(half_heads(f))
        }),
        Attack::new(
            "half-heads-unnegotiated",
            "960 connections with such heads over HTTP/2 that was not negotiated",
            |f| Box::pin(half_heads_unnegotiated(f)),
        ),
        Attack::new("half-heads-http1", "960 connections of one tenant with such heads over HTTP/1.1", |f| {
            Box::pin(half_heads_http1(f))
        }),
        Attack::new("many-fields", "requests with thousands of header fields", |f| Box::pin(many_fields(f))),
        Attack::new("control-flood", "PING and SETTINGS whose answers nobody reads", |f| {
            Box::pin(control(f))
        }),
    ]
}

async fn rapid_reset(context: AttackContext) -> Findings {
    let block = block(&context, &[]);
    each(&context, move |context| {
        let block = block.clone();
        async move {
            let mut frames = open(&context).await?.listen();
            for stream in (1..200_001).step_by(2) {
                frames.request(stream, &block).await?;
                frames.cancel(stream).await?;
                context.count("reset");
            }
            Ok(())
        }
    })
    .await
}

async fn continuation(context: AttackContext) -> Findings {
    let long = "x".repeat(1 << 20);
    let block = block(&context, &[("x", &long)]);
    each(&context, move |context| {
        let block = block.clone();
        async move {
            let mut frames = open(&context).await?.listen();
            frames.long_request(1, &block, false).await?;
            context.count("block");
            for _ in 0..64 {
                frames.more(1, &block).await?;
            }
            frames.flush().await
        }
    })
    .await
}

/// Each connection first sends a whole request, so that the server knows its tenant.
async fn half_heads(context: AttackContext) -> Findings {
    let (whole, half) = (block(&context, &[]), half(&context));
    hold(&context, async |context, from| {
        begin(RawFrames::open(&context.setup.direct, from, &[]).await?, &whole, &half).await
    })
    .await;
    no_findings()
}

/// The server must end each connection: it does not follow the frames of a protocol that was not negotiated.
async fn half_heads_unnegotiated(context: AttackContext) -> Findings {
    let (whole, half) = (block(&context, &[]), half(&context));
    let held = hold(&context, async |context, from| {
        let stream = context.setup.direct.unnegotiated(from).await?;
        begin(RawFrames::begin(stream, &[]).await?, &whole, &half).await
    })
    .await;
    let ended = join_all(held.into_iter().map(async |mut frames| frames.ended().await));
    let ended = tokio::time::timeout(LIMIT, ended).await.is_ok();
    Ok(vec![Finding::new(ended, "HTTP/2 is served to clients that did not negotiate it".to_owned())])
}

async fn half_heads_http1(context: AttackContext) -> Findings {
    let path = context.tenant.requests();
    let token = &context.tenant.account().token;
    let half = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n");
    let whole = format!("{half}\r\n");
    let half = half + &format!("x: {}", "y".repeat(HTTP1_HEAD));
    hold(&context, async |context, from| {
        let mut raw = RawHttp::open(&context.setup.direct, from).await?;
        raw.write(&whole).await?;
        raw.code().await?;
        raw.write(&half).await?;
        anyhow::Ok(raw)
    })
    .await;
    no_findings()
}

/// A header block that is nearly as long as a head may be.
fn half(context: &AttackContext) -> Vec<u8> {
    let names: Vec<String> = (0..FIELDS).map(|at| format!("h{at}")).collect();
    let more: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    block(context, &more)
}

async fn begin(frames: RawFrames, whole: &[u8], half: &[u8]) -> anyhow::Result<RawFrames> {
    let mut frames = frames.listen();
    frames.request(1, whole).await?;
    frames.long_request(3, half, false).await?;
    frames.flush().await?;
    Ok(frames)
}

/// Opens so many connections from each address, holds them until the time is over, and returns them.
async fn hold<T>(
    context: &AttackContext,
    open: impl AsyncFn(&AttackContext, Ipv4Addr) -> anyhow::Result<T>,
) -> Vec<T> {
    let before = context.setup.resident();
    let open = &open;
    let held = join_all((0..HALF.0).map(async |at| {
        let (from, mut held) = (Ipv4Addr::new(127, 0, 1, at), Vec::new());
        for _ in 0..HALF.1 {
            match open(context, from).await {
                Ok(connection) => {
                    context.count("half");
                    held.push(connection);
                }
                Err(_) => context.count("broken"),
            }
        }
        held
    }))
    .await;
    context.wait().await;
    let more = context.setup.resident().saturating_sub(before);
    context.say(format!("the server took {more} MiB more"));
    held.into_iter().flatten().collect()
}

async fn many_fields(context: AttackContext) -> Findings {
    let names: Vec<String> = (0..4_000).map(|at| format!("h{at}")).collect();
    let more: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
    let block = block(&context, &more);
    each(&context, move |context| {
        let block = block.clone();
        async move {
            let mut frames = open(&context).await?.listen();
            for stream in (1..2_001).step_by(2) {
                frames.long_request(stream, &block, true).await?;
                context.count("request");
            }
            frames.flush().await
        }
    })
    .await
}

async fn control(context: AttackContext) -> Findings {
    each(&context, move |context| async move {
        let mut frames = open(&context).await?;
        loop {
            frames.ping().await?;
            frames.settings().await?;
            context.count("frame");
        }
    })
    .await
}

async fn each<F>(
    context: &AttackContext,
    attack: impl Fn(AttackContext) -> F + Send + Sync + 'static,
) -> Findings
where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let own = context.clone();
    context.repeat(LANES, move |_, _| attack(own.clone())).await;
    no_findings()
}

async fn open(context: &AttackContext) -> anyhow::Result<RawFrames> {
    RawFrames::open(&context.setup.direct, ATTACKER_ADDRESS, &[]).await
}

fn block(context: &AttackContext, more: &[(&str, &str)]) -> Vec<u8> {
    let authorization = format!("Bearer {}", context.tenant.account().token);
    let mut all = vec![("authorization", authorization.as_str())];
    all.extend(more);
    fields(&context.setup.direct.authority(), &context.tenant.requests(), &all)
}
