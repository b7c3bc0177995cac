//! Streams of the gRPC status stream: many, unread, each with another filter, and dropped at once.

use anyhow::Result;
use drydock_proto::status::v1alpha1::WatchEvictionsRequest;
use futures::future::join_all;
use hyper::body::Incoming;
use serde_json::json;

use super::stock::{Findings, lay_in, nothing, uid};
use crate::attack::{Attack, AttackFinding};
use crate::door::{FlowWindows, RawFrames, UserConnection, UserRequest, call, call_fields, status_of};
use crate::field::{AttackField, LAIR};

/// Connections with many streams, and streams on each: together 10,000.
const MANY: (usize, usize) = (20, 500);
/// What one user may have open.
const MOST: usize = 4096;
/// The same of streams that are never read.
const UNREAD: (usize, usize) = (16, 50);
/// The same of streams whose filters are all different.
const DIFFERENT: (usize, usize) = (20, 100);
/// Objects that there are, and bytes of each.
const STOCK: (usize, usize) = (50, 1000);
/// Bytes of the annotation that each write of an object brings, of which readers see none.
const WRITE: usize = 100;
/// Connections on which streams are opened and dropped.
const LANES: usize = 8;
const METHOD: &str = "WatchEvictions";

/// These attacks.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("many-streams", "10,000 gRPC streams of one user", |f| Box::pin(many(f))),
        Attack::new("unread-streams", "800 gRPC streams that nobody reads, and writes they tell of", |f| {
            Box::pin(unread_streams(f))
        }),
        Attack::new(
            "unread-connections",
            "800 gRPC streams on connections that nobody reads, and writes they tell of",
            |f| Box::pin(unread_connections(f)),
        ),
        Attack::new("distinct-filters", "2,000 gRPC streams, each with another filter", |f| {
            Box::pin(distinct(f, 1))
        }),
        Attack::new(
            "selectors-of-many-terms",
            "2,000 gRPC streams, each with another selector of 60 terms",
            |f| Box::pin(distinct(f, 60)),
        ),
        Attack::new("opened-and-dropped", "gRPC streams that are reset as soon as they are open", |f| {
            Box::pin(opened_and_dropped(f))
        }),
    ]
}

async fn many(field: AttackField) -> Findings {
    lay_in(&field, 1, STOCK.1).await?;
    let request = watch(&field, String::new());
    let held = hold(&field, MANY, FlowWindows::USUAL, |_| request.clone()).await;
    field.wait().await;
    let open = held.bodies.len();
    let told = format!("{open} streams of one user were open, more than {MOST}");
    Ok(vec![
        AttackFinding::new(open <= MOST, told),
        AttackFinding::new(open > 0, "no stream was opened"),
        AttackFinding::new(field.counted("grpc-status 8") > 0, "no stream was refused"),
    ])
}

async fn unread_streams(field: AttackField) -> Findings {
    lay_in(&field, STOCK.0, STOCK.1).await?;
    let request = watch(&field, String::new());
    let held = hold(&field, UNREAD, FlowWindows::NONE, |_| request.clone()).await;
    write(&field).await;
    drop(held);
    nothing()
}

/// The server may send as much as it likes on each, and nothing of it is taken from the socket.
async fn unread_connections(field: AttackField) -> Findings {
    const LARGEST: u32 = (1 << 31) - 1;
    lay_in(&field, STOCK.0, STOCK.1).await?;
    let ask = call(METHOD, &watch(&field, String::new()));
    let authorization = format!("Bearer {}", field.tenant.account().token);
    let more = [("authorization", authorization.as_str())];
    let block = call_fields(&field.setup.direct.authority(), &ask.path, &more);
    let mut held = Vec::new();
    for _ in 0..UNREAD.0 {
        // SETTINGS_INITIAL_WINDOW_SIZE.
        let mut frames = RawFrames::open(&field.setup.direct, LAIR, &[(4, LARGEST)]).await?;
        frames.window(0, LARGEST - 65_535).await?;
        for stream in (1..).step_by(2).take(UNREAD.1) {
            frames.request_with(stream, &block, &ask.body).await?;
            field.count("stream");
        }
        frames.flush().await?;
        held.push(frames);
    }
    write(&field).await;
    drop(held);
    nothing()
}

/// Each selector selects every object by so many terms, each of which is asked about each change.
async fn distinct(field: AttackField, terms: usize) -> Findings {
    lay_in(&field, STOCK.0, STOCK.1).await?;
    let selector = |at: usize| (0..terms).map(|term| format!("k{term}!=a{at}")).collect::<Vec<_>>().join(",");
    let held = hold(&field, DIFFERENT, FlowWindows::USUAL, |at| watch(&field, selector(at))).await;
    write(&field).await;
    let open = held.bodies.len();
    Ok(vec![AttackFinding::new(open > 0, "no stream was opened")])
}

async fn opened_and_dropped(field: AttackField) -> Findings {
    lay_in(&field, STOCK.0, STOCK.1).await?;
    let ask = call(METHOD, &watch(&field, String::new()));
    let authorization = format!("Bearer {}", field.tenant.account().token);
    let more = [("authorization", authorization.as_str())];
    let block = call_fields(&field.setup.direct.authority(), &ask.path, &more);
    let own = field.clone();
    field
        .storm(LANES, move |lane, _| {
            let (field, block, ask) = (own.clone(), block.clone(), ask.clone());
            async move {
                if lane % 2 == 0 {
                    return dropped_after_its_head(&field, &ask).await;
                }
                let mut frames = RawFrames::open(&field.setup.direct, LAIR, &[]).await?.listen();
                for stream in (1..20_001).step_by(2) {
                    frames.request_with(stream, &block, &ask.body).await?;
                    frames.cancel(stream).await?;
                    field.count("reset");
                }
                Ok(())
            }
        })
        .await;
    nothing()
}

/// A hundred at a time, each dropped when its answer begins.
async fn dropped_after_its_head(field: &AttackField, ask: &UserRequest) -> Result<()> {
    let line = field.line().await?;
    while !line.is_closed() {
        for answer in join_all((0..100).map(|_| line.send(ask))).await {
            field.note_call(&answer);
        }
    }
    Ok(())
}

/// A watch of the tenant's namespace.
fn watch(field: &AttackField, label_selector: String) -> WatchEvictionsRequest {
    let namespace = field.tenant.namespace.clone();
    WatchEvictionsRequest { namespace, label_selector, ..Default::default() }
}

/// Streams that are open and not read.
struct HeldStreams {
    _lines: Vec<Option<UserConnection>>,
    bodies: Vec<Incoming>,
}

/// Calls on so many connections, so many times on each, one after another, and reads no more than heads.
async fn hold(
    field: &AttackField,
    (lines, streams): (usize, usize),
    windows: FlowWindows,
    request: impl Fn(usize) -> WatchEvictionsRequest,
) -> HeldStreams {
    let open = async |number: usize| {
        let (mut bodies, account) = (Vec::new(), field.tenant.account());
        let Ok(line) = field.line_of(account, windows).await else { return (None, bodies) };
        for stream in 0..streams {
            let answer = line.send(&call(METHOD, &request(number * streams + stream))).await;
            field.note_call(&answer);
            let open = answer.ok().filter(|answer| status_of(answer.headers()).is_none());
            bodies.extend(open.map(http::Response::into_body));
        }
        (Some(line), bodies)
    };
    let held = join_all((0..lines).map(open)).await;
    let (lines, bodies): (Vec<_>, Vec<_>) = held.into_iter().unzip();
    HeldStreams { _lines: lines, bodies: bodies.into_iter().flatten().collect() }
}

/// Writes that change what readers see of four requests, until the time is over.
async fn write(field: &AttackField) {
    let path = field.tenant.requests();
    field
        .ask_storm(4, move |lane, round| {
            let shown = json!([{"name": "m", "reason": format!("{round}{}", "x".repeat(WRITE))}]).to_string();
            let annotations = json!({"nodemaintenance.k8s.io/maintenances": shown});
            UserRequest::merge(
                format!("{path}/{}", uid(lane)),
                &json!({"metadata": {"annotations": annotations}}),
            )
        })
        .await;
}
