//! Answers that nobody reads, and answers that cost more than they weigh.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::stock::{Findings, heavy, lay_in, nothing, uid};
use crate::attack::Attack;
use crate::door::{Ask, Frames, Line, Windows, fields};
use crate::field::{Field, LAIR};

/// Objects, and bytes of each: a list of 8 MB.
const STOCK: (usize, usize) = (200, 40_000);
/// Connections whose answers wait, and streams on each.
const UNREAD: (usize, usize) = (16, 50);
/// The same for small answers, which leave their place at once.
const SMALL: (usize, usize) = (16, 400);

/// These attacks.
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
        Attack::new("zero-window", "streams that let in a byte now and then", |f| Box::pin(zero_window(f))),
        Attack::new("compressed-answers", "lists to be compressed, 16 at a time", |f| {
            Box::pin(lists(f, &[("accept-encoding", "gzip")]))
        }),
        Attack::new("costly-formats", "lists as YAML, pretty JSON, tables and protobuf, 16 at a time", |f| {
            Box::pin(costly_formats(f))
        }),
    ]
}

async fn unread_lists(field: Field) -> Findings {
    lay_in(&field, STOCK.0, STOCK.1).await?;
    unread(&field, UNREAD, field.tenant.requests()).await
}

async fn unread_answers(field: Field) -> Findings {
    field.line().await?.done(&Ask::post(field.tenant.requests(), &heavy(0, 55_000))).await?;
    unread(&field, SMALL, field.tenant.request(&uid(0))).await
}

async fn unread_watches(field: Field) -> Findings {
    lay_in(&field, 20, 1000).await?;
    let held = hold(&field, UNREAD, &format!("{}?watch=1&timeoutSeconds=600", field.tenant.requests())).await;
    let path = field.tenant.requests();
    field
        .ask_storm(4, move |lane, round| {
            let metadata =
                serde_json::json!({"annotations": {"n": format!("{round}{}", "x".repeat(20_000))}});
            Ask::merge(format!("{path}/{}", uid(lane)), &serde_json::json!({"metadata": metadata}))
        })
        .await;
    drop(held);
    nothing()
}

/// Holds answers open until the time is over.
async fn unread(field: &Field, many: (usize, usize), path: String) -> Findings {
    let held = hold(field, many, &path).await;
    field.wait().await;
    drop(held);
    nothing()
}

type Held = Vec<(Line, Arc<Mutex<Vec<Incoming>>>)>;

/// Asks on so many connections, so many times on each, and reads no answer.
async fn hold(field: &Field, (lines, streams): (usize, usize), path: &str) -> Held {
    let mut held = Vec::new();
    for _ in 0..lines {
        let Ok(line) = field.line_of(field.tenant.account(), Windows::NONE).await else { continue };
        let bodies = Arc::<Mutex<Vec<Incoming>>>::default();
        for _ in 0..streams {
            let (field, line, bodies, ask) = (field.clone(), line.clone(), bodies.clone(), Ask::get(path));
            tokio::spawn(async move {
                match line.send(&ask).await {
                    Ok(answer) => {
                        field.count(answer.status().as_str());
                        bodies.lock().push(answer.into_body());
                    }
                    Err(_) => field.count("broken"),
                }
            });
        }
        held.push((line, bodies));
    }
    held
}

async fn zero_window(field: Field) -> Findings {
    lay_in(&field, 20, 20_000).await?;
    let authorization = format!("Bearer {}", field.tenant.account().token);
    let path = field.tenant.requests();
    let block = fields(&field.stage.direct.authority(), &path, &[("authorization", &authorization)]);
    let mut lines = Vec::new();
    for _ in 0..16 {
        // SETTINGS_INITIAL_WINDOW_SIZE.
        let mut frames = Frames::open(&field.stage.direct, LAIR, &[(4, 0)]).await?.listen();
        for stream in (1..400).step_by(2) {
            frames.request(stream, &block).await?;
            field.count("stream");
        }
        frames.flush().await?;
        lines.push(frames);
    }
    while !field.is_over() {
        for frames in &mut lines {
            for stream in (1..400).step_by(2) {
                let _ = frames.window(stream, 1).await;
            }
            let _ = frames.flush().await;
        }
        tokio::task::yield_now().await;
    }
    nothing()
}

async fn costly_formats(field: Field) -> Findings {
    const FORMATS: [(&str, &str); 4] = [
        ("accept", "application/yaml"),
        ("user-agent", "curl/8"),
        ("accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),
        ("accept", "application/vnd.kubernetes.protobuf"),
    ];
    lists(field, &FORMATS).await
}

/// Lists that are read, with one of these header fields in turn.
async fn lists(field: Field, headers: &'static [(&'static str, &'static str)]) -> Findings {
    lay_in(&field, STOCK.0, STOCK.1).await?;
    let each = field.clone();
    field
        .storm(16, move |lane, _| {
            let field = each.clone();
            async move {
                let (name, value) = headers[lane % headers.len()];
                let ask = Ask::get(field.tenant.requests()).with(name, value);
                let answer = field.line().await?.send(&ask).await?;
                field.count(answer.status().as_str());
                let mut body = answer.into_body();
                while let Some(frame) = body.frame().await {
                    frame?;
                }
                Ok(())
            }
        })
        .await;
    nothing()
}
