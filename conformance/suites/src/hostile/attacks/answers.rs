//! Answers that are never read, and answers that cost far more than their bytes.

use std::sync::Arc;

use anyhow::Context;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::json;

use super::eviction_requests::{Findings, create_requests, large_request, no_findings, uid};
use crate::attack::Attack;
use crate::client::{FlowWindows, RawFrames, ServerEndpoint, UserConnection, UserRequest, fields};
use crate::context::{ATTACKER_ADDRESS, AttackContext};

/// Objects, and bytes of each: a list of 8 MB.
const LARGE_REQUESTS: (usize, usize) = (200, 40_000);
/// Connections whose answers wait, and streams on each.
const UNREAD: (usize, usize) = (16, 50);
/// The same through the host, which takes 100 streams on a connection.
const THROUGH_HOST: (usize, usize) = (4, 80);
/// MiB that the host may take more meanwhile: 40 for those, and the rest for its other work. It would be 1,280 if each
/// was sent what the host's transport has room for.
const HOST: u64 = 256;
/// The same for small answers, which leave their place at once.
const SMALL: (usize, usize) = (16, 400);

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("unread-lists", "800 lists of 8 MB that nobody reads", |f| Box::pin(unread_lists(f))),
        Attack::new("unread-answers", "6,400 answers of 60 KB that nobody reads", |f| {
            Box::pin(unread_answers(f))
        }),
        Attack::new(
            "unread-watches",
            "800 watches that nobody reads, and writes that they would tell of",
            |f| Box::pin(unread_watches(f)),
        ),
        Attack::new("unread-through-host", "320 watches through the aggregator that nobody reads", |f| {
            Box::pin(unread_through_host(f))
        }),
        Attack::new("resumed-watches", "800 watches from before 35 MB of changes, that nobody reads", |f| {
            Box::pin(resumed_watches(f))
        }),
        Attack::new("zero-window", "streams that let in a byte now and then", |f| Box::pin(zero_window(f))),
        Attack::new("compressed-answers", "lists to be compressed, 16 at a time", |f| {
            Box::pin(lists(f, &[("accept-encoding", "gzip")]))
        }),
        Attack::new("costly-formats", "lists as YAML, pretty JSON, tables and protobuf, 16 at a time", |f| {
            Box::pin(costly_formats(f))
        }),
        Attack::new(
            "heavy-formats",
            "protobuf, short tables and selections of the largest objects, 31 at a time",
            |f| Box::pin(heavy_formats(f)),
        ),
    ]
}

async fn unread_lists(context: AttackContext) -> Findings {
    create_requests(&context, LARGE_REQUESTS.0, LARGE_REQUESTS.1).await?;
    unread(&context, UNREAD, context.tenant.requests()).await
}

async fn unread_answers(context: AttackContext) -> Findings {
    context
        .connect()
        .await?
        .done(&UserRequest::post(context.tenant.requests(), &large_request(0, 55_000)))
        .await?;
    unread(&context, SMALL, context.tenant.request(&uid(0))).await
}

async fn unread_watches(context: AttackContext) -> Findings {
    create_requests(&context, 20, 1000).await?;
    let watch = format!("{}?watch=1&timeoutSeconds=600", context.tenant.requests());
    let held = hold(&context, &context.setup.direct, UNREAD, &watch).await;
    write(&context, 20_000).await;
    drop(held);
    no_findings()
}

/// The host buffers what its clients do not read; once its connection to us is full, the answers for all of
/// its clients wait.
async fn unread_through_host(context: AttackContext) -> Findings {
    create_requests(&context, 4, 1000).await?;
    let watch = format!("{}?watch=1&timeoutSeconds=600", context.tenant.requests());
    let held = hold(&context, &context.setup.host, THROUGH_HOST, &watch).await;
    let before = context.setup.host_resident();
    write(&context, 60_000).await;
    let kept = context.setup.host_resident().saturating_sub(before);
    drop(held);
    // How much a Go program holds that it does not need depends on when it collects its garbage.
    Ok(vec![context.figure(kept <= HOST, format!("the host took {kept} MiB more, of at most {HOST}"))])
}

/// One object is changed until its history is longer than what the server keeps in memory of it.
async fn resumed_watches(context: AttackContext) -> Findings {
    const CHANGES: usize = 640;
    let made = context
        .connect()
        .await?
        .done(&UserRequest::post(context.tenant.requests(), &large_request(0, 55_000)))
        .await?;
    let revision = made["metadata"]["resourceVersion"].as_str().context("an object without a version")?;
    let path = context.tenant.request(&uid(0));
    let change = |at: usize| {
        let annotations = json!({"example.com/padding": format!("{at}{}", "x".repeat(55_000))});
        UserRequest::merge(&path, &json!({"metadata": {"annotations": annotations}}))
    };
    context.each((0..CHANGES).map(change).collect(), 16).await?;
    let requests = context.tenant.requests();
    let watch = format!("{requests}?watch=1&timeoutSeconds=600&resourceVersion={revision}");
    unread(&context, UNREAD, watch).await
}

/// Writes of so many bytes to four requests until the time is over.
async fn write(context: &AttackContext, bytes: usize) {
    let path = context.tenant.requests();
    context
        .repeat_requests(4, move |lane, round| {
            let metadata = json!({"annotations": {"n": format!("{round}{}", "x".repeat(bytes))}});
            UserRequest::merge(format!("{path}/{}", uid(lane)), &json!({"metadata": metadata}))
        })
        .await;
}

/// Holds answers open until the time is over.
async fn unread(context: &AttackContext, many: (usize, usize), path: String) -> Findings {
    let held = hold(context, &context.setup.direct, many, &path).await;
    context.wait().await;
    drop(held);
    no_findings()
}

type HeldAnswers = Vec<(UserConnection, Arc<Mutex<Vec<Incoming>>>)>;

/// Sends requests on so many connections, so many on each, and reads no answer.
async fn hold(
    context: &AttackContext,
    endpoint: &ServerEndpoint,
    (connections, streams): (usize, usize),
    path: &str,
) -> HeldAnswers {
    let mut held = Vec::new();
    for _ in 0..connections {
        let Ok(connection) =
            context.tenant.account().connect(endpoint, ATTACKER_ADDRESS, FlowWindows::NONE).await
        else {
            continue;
        };
        let bodies = Arc::<Mutex<Vec<Incoming>>>::default();
        for _ in 0..streams {
            let (context, connection, bodies, ask) =
                (context.clone(), connection.clone(), bodies.clone(), UserRequest::get(path));
            tokio::spawn(async move {
                match connection.send(&ask).await {
                    Ok(answer) => {
                        context.count(answer.status().as_str());
                        bodies.lock().push(answer.into_body());
                    }
                    Err(_) => context.count("broken"),
                }
            });
        }
        held.push((connection, bodies));
    }
    held
}

async fn zero_window(context: AttackContext) -> Findings {
    create_requests(&context, 20, 20_000).await?;
    let authorization = format!("Bearer {}", context.tenant.account().token);
    let path = context.tenant.requests();
    let block = fields(&context.setup.direct.authority(), &path, &[("authorization", &authorization)]);
    let mut connections = Vec::new();
    for _ in 0..16 {
        // SETTINGS_INITIAL_WINDOW_SIZE.
        let mut frames = RawFrames::open(&context.setup.direct, ATTACKER_ADDRESS, &[(4, 0)]).await?.listen();
        for stream in (1..400).step_by(2) {
            frames.request(stream, &block).await?;
            context.count("stream");
        }
        frames.flush().await?;
        connections.push(frames);
    }
    while !context.is_over() {
        for frames in &mut connections {
            for stream in (1..400).step_by(2) {
                let _ = frames.window(stream, 1).await;
            }
            let _ = frames.flush().await;
        }
        tokio::task::yield_now().await;
    }
    no_findings()
}

async fn costly_formats(context: AttackContext) -> Findings {
    const FORMATS: [(&str, &str); 4] = [
        ("accept", "application/yaml"),
        ("user-agent", "curl/8"),
        ("accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),
        ("accept", "application/vnd.kubernetes.protobuf"),
    ];
    lists(context, &FORMATS).await
}

/// The server has to decode much for a short answer, or before the first byte of one.
async fn heavy_formats(context: AttackContext) -> Findings {
    const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
    const FORMATS: [(&str, &str); 4] = [
        ("", "application/vnd.kubernetes.protobuf"),
        ("?includeObject=None", TABLE),
        ("?labelSelector=nothing%3Dx", "application/json"),
        ("?watch=1&timeoutSeconds=2&includeObject=None", TABLE),
    ];
    create_requests(&context, context.pick(300, 1000), 60_000).await?;
    let requests = context.tenant.requests();
    let asks =
        FORMATS.map(|(query, accept)| UserRequest::get(format!("{requests}{query}")).with("accept", accept));
    read(context, 31, asks.into()).await
}

/// Lists that are read, with one of these header fields in turn.
async fn lists(context: AttackContext, headers: &'static [(&'static str, &'static str)]) -> Findings {
    create_requests(&context, LARGE_REQUESTS.0, LARGE_REQUESTS.1).await?;
    let path = context.tenant.requests();
    let asks = headers.iter().map(|(name, value)| UserRequest::get(&path).with(name, *value)).collect();
    read(context, 16, asks).await
}

/// So many tasks repeat these requests in turn, and read the answers.
async fn read(context: AttackContext, lanes: usize, asks: Vec<UserRequest>) -> Findings {
    let (each, asks) = (context.clone(), Arc::new(asks));
    context
        .repeat(lanes, move |lane, _| {
            let (context, asks) = (each.clone(), asks.clone());
            async move {
                let ask = &asks[lane % asks.len()];
                let answer = context.connect().await?.send(ask).await?;
                context.count(answer.status().as_str());
                let mut body = answer.into_body();
                while let Some(frame) = body.frame().await {
                    frame?;
                }
                Ok(())
            }
        })
        .await;
    no_findings()
}
