//! HTTP/2 as no client speaks it.

use std::net::Ipv4Addr;

use futures::future::join_all;

use super::stock::{Findings, nothing};
use crate::attack::Attack;
use crate::door::{RawFrames, fields};
use crate::field::{AttackField, LAIR};

/// Connections at a time.
const LANES: usize = 8;
/// Addresses with half heads, and connections from each: no more than may begin a handshake in a second.
const HALF: (u8, usize) = (16, 60);
/// Fields of a half head: they are nearly as long as a head may be, by HTTP/2's own count (RFC 9113, section 6.5.2).
const FIELDS: usize = 1_600;

/// These attacks.
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

async fn rapid_reset(field: AttackField) -> Findings {
    let block = block(&field, &[]);
    each(&field, move |field| {
        let block = block.clone();
        async move {
            let mut frames = open(&field).await?.listen();
            for stream in (1..200_001).step_by(2) {
                frames.request(stream, &block).await?;
                frames.cancel(stream).await?;
                field.count("reset");
            }
            Ok(())
        }
    })
    .await
}

async fn continuation(field: AttackField) -> Findings {
    let long = "x".repeat(1 << 20);
    let block = block(&field, &[("x", &long)]);
    each(&field, move |field| {
        let block = block.clone();
        async move {
            let mut frames = open(&field).await?.listen();
            frames.long_request(1, &block, false).await?;
            field.count("block");
            for _ in 0..64 {
                frames.more(1, &block).await?;
            }
            frames.flush().await
        }
    })
    .await
}

/// The tenant of each connection is known by a whole request before.
async fn half_heads(field: AttackField) -> Findings {
    let whole = block(&field, &[]);
    let names: Vec<String> = (0..FIELDS).map(|at| format!("h{at}")).collect();
    let more: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let half = block(&field, &more);
    let before = field.setup.resident();
    let held = join_all((0..HALF.0).map(|at| from_address(&field, at, &whole, &half))).await;
    field.wait().await;
    let more = field.setup.resident().saturating_sub(before);
    field.say(format!("the server took {more} MiB more"));
    drop(held);
    nothing()
}

async fn from_address(field: &AttackField, at: u8, whole: &[u8], half: &[u8]) -> Vec<RawFrames> {
    let (from, mut held) = (Ipv4Addr::new(127, 0, 1, at), Vec::new());
    for _ in 0..HALF.1 {
        let opened = async {
            let mut frames = RawFrames::open(&field.setup.direct, from, &[]).await?.listen();
            frames.request(1, whole).await?;
            frames.long_request(3, half, false).await?;
            frames.flush().await?;
            anyhow::Ok(frames)
        };
        match opened.await {
            Ok(frames) => {
                field.count("half");
                held.push(frames);
            }
            Err(_) => field.count("broken"),
        }
    }
    held
}

async fn many_fields(field: AttackField) -> Findings {
    let names: Vec<String> = (0..4_000).map(|at| format!("h{at}")).collect();
    let more: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
    let block = block(&field, &more);
    each(&field, move |field| {
        let block = block.clone();
        async move {
            let mut frames = open(&field).await?.listen();
            for stream in (1..2_001).step_by(2) {
                frames.long_request(stream, &block, true).await?;
                field.count("request");
            }
            frames.flush().await
        }
    })
    .await
}

async fn control(field: AttackField) -> Findings {
    each(&field, move |field| async move {
        let mut frames = open(&field).await?;
        loop {
            frames.ping().await?;
            frames.settings().await?;
            field.count("frame");
        }
    })
    .await
}

async fn each<F>(field: &AttackField, attack: impl Fn(AttackField) -> F + Send + Sync + 'static) -> Findings
where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let own = field.clone();
    field.storm(LANES, move |_, _| attack(own.clone())).await;
    nothing()
}

async fn open(field: &AttackField) -> anyhow::Result<RawFrames> {
    RawFrames::open(&field.setup.direct, LAIR, &[]).await
}

fn block(field: &AttackField, more: &[(&str, &str)]) -> Vec<u8> {
    let authorization = format!("Bearer {}", field.tenant.account().token);
    let mut all = vec![("authorization", authorization.as_str())];
    all.extend(more);
    fields(&field.setup.direct.authority(), &field.tenant.requests(), &all)
}
