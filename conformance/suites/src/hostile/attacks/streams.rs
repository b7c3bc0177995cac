//! Many calls of the gRPC status stream: unread, each with another filter, or dropped at once.

use std::time::{Duration, Instant};

use anyhow::Result;
use drydock_proto::status::v1alpha1::WatchEvictionsRequest;
use drydock_testkit::finding::Finding;
use futures::future::join_all;
use hyper::body::Incoming;
use serde_json::json;

use super::eviction_requests::{Findings, create_requests, no_findings, uid};
use crate::attack::Attack;
use crate::client::{FlowWindows, RawFrames, UserConnection, UserRequest, call, call_fields, status_of};
use crate::context::{ATTACKER_ADDRESS, AttackContext};

/// Connections with many streams, and streams on each: together 10,000.
const MANY: (usize, usize) = (20, 500);
/// What one user may have open.
const MOST_STREAMS_OF_A_USER: usize = 4096;
/// The same of streams that are never read.
const UNREAD: (usize, usize) = (16, 50);
/// The same of streams whose filters are all different.
const DIFFERENT: (usize, usize) = (20, 100);
/// Objects that there are, and bytes of each.
const LARGE_REQUESTS: (usize, usize) = (50, 1000);
/// Bytes of the annotation that each write of an object brings, of which readers see none.
const WRITE: usize = 100;
/// Connections on which streams are opened and dropped.
const LANES: usize = 8;
const METHOD: &str = "WatchEvictions";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("many-streams", "10,000 gRPC streams of one user", |f| Box::pin(many(f))),
        Attack::new(
            "unread-streams",
            "up to 800 gRPC streams that nobody reads, and writes they tell of",
            |f| Box::pin(unread_streams(f)),
        ),
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

async fn many(context: AttackContext) -> Findings {
    create_requests(&context, 1, LARGE_REQUESTS.1).await?;
    let request = watch(&context, String::new());
    let held = hold(&context, MANY, FlowWindows::USUAL, |_| request.clone()).await;
    context.wait().await;
    let open = held.open();
    let text = format!("{open} streams of one user were open, more than {MOST_STREAMS_OF_A_USER}");
    Ok(vec![
        Finding::new(open <= MOST_STREAMS_OF_A_USER, text),
        Finding::new(open > 0, "no stream was opened"),
        Finding::new(context.counted("grpc-status 8") > 0, "no stream was refused"),
    ])
}

async fn unread_streams(context: AttackContext) -> Findings {
    create_requests(&context, LARGE_REQUESTS.0, LARGE_REQUESTS.1).await?;
    let request = watch(&context, String::new());
    // Most of them wait for the seats of those before them: more time changes nothing.
    let opening = context.pick(Duration::from_secs(45), Duration::MAX);
    let held = hold_for(opening, &context, UNREAD, FlowWindows::NONE, |_| request.clone()).await;
    write(&context).await;
    drop(held);
    no_findings()
}

/// The server may send as much as it likes on each, and nothing of it is taken from the socket.
async fn unread_connections(context: AttackContext) -> Findings {
    const LARGEST: u32 = (1 << 31) - 1;
    create_requests(&context, LARGE_REQUESTS.0, LARGE_REQUESTS.1).await?;
    let ask = call(METHOD, &watch(&context, String::new()));
    let authorization = format!("Bearer {}", context.tenant.account().token);
    let more = [("authorization", authorization.as_str())];
    let block = call_fields(&context.setup.direct.authority(), &ask.path, &more);
    let mut held = Vec::new();
    for _ in 0..UNREAD.0 {
        // SETTINGS_INITIAL_WINDOW_SIZE.
        let mut frames = RawFrames::open(&context.setup.direct, ATTACKER_ADDRESS, &[(4, LARGEST)]).await?;
        frames.window(0, LARGEST - 65_535).await?;
        for stream in (1..).step_by(2).take(UNREAD.1) {
            frames.request_with(stream, &block, &ask.body).await?;
            context.count("stream");
        }
        frames.flush().await?;
        held.push(frames);
    }
    write(&context).await;
    drop(held);
    no_findings()
}

/// Each selector selects every object and has many terms, each of which is evaluated for each change.
async fn distinct(context: AttackContext, terms: usize) -> Findings {
    create_requests(&context, LARGE_REQUESTS.0, LARGE_REQUESTS.1).await?;
    let selector = |at: usize| (0..terms).map(|term| format!("k{term}!=a{at}")).collect::<Vec<_>>().join(",");
    let held = hold(&context, DIFFERENT, FlowWindows::USUAL, |at| watch(&context, selector(at))).await;
    write(&context).await;
    let open = held.open();
    Ok(vec![Finding::new(open > 0, "no stream was opened")])
}

async fn opened_and_dropped(context: AttackContext) -> Findings {
    create_requests(&context, LARGE_REQUESTS.0, LARGE_REQUESTS.1).await?;
    let ask = call(METHOD, &watch(&context, String::new()));
    let authorization = format!("Bearer {}", context.tenant.account().token);
    let more = [("authorization", authorization.as_str())];
    let block = call_fields(&context.setup.direct.authority(), &ask.path, &more);
    let own = context.clone();
    context
        .repeat(LANES, move |lane, _| {
            let (context, block, ask) = (own.clone(), block.clone(), ask.clone());
            async move {
                if lane % 2 == 0 {
                    return dropped_after_its_head(&context, &ask).await;
                }
                let mut frames =
                    RawFrames::open(&context.setup.direct, ATTACKER_ADDRESS, &[]).await?.listen();
                for stream in (1..20_001).step_by(2) {
                    frames.request_with(stream, &block, &ask.body).await?;
                    frames.cancel(stream).await?;
                    context.count("reset");
                }
                Ok(())
            }
        })
        .await;
    no_findings()
}

/// A hundred at a time, each dropped when its answer begins.
async fn dropped_after_its_head(context: &AttackContext, ask: &UserRequest) -> Result<()> {
    let connection = context.connect().await?;
    while !connection.is_closed() {
        for answer in join_all((0..100).map(|_| connection.send(ask))).await {
            context.note_call(&answer);
        }
    }
    Ok(())
}

/// A watch of the tenant's namespace.
fn watch(context: &AttackContext, label_selector: String) -> WatchEvictionsRequest {
    let namespace = context.tenant.namespace.clone();
    WatchEvictionsRequest { namespace, label_selector, ..Default::default() }
}

/// Streams that are open and not read, of each connection.
struct HeldStreams(Vec<(UserConnection, Vec<Incoming>)>);

impl HeldStreams {
    /// How many there are on the connections that have not ended.
    fn open(&self) -> usize {
        self.0.iter().filter(|(connection, _)| !connection.is_closed()).map(|(_, bodies)| bodies.len()).sum()
    }
}

/// Opens streams on so many connections, so many on each, one after another, and reads only the heads of the answers.
async fn hold(
    context: &AttackContext,
    counts: (usize, usize),
    windows: FlowWindows,
    request: impl Fn(usize) -> WatchEvictionsRequest,
) -> HeldStreams {
    hold_for(Duration::MAX, context, counts, windows, request).await
}

/// The same; after this time no more are opened.
async fn hold_for(
    opening: Duration,
    context: &AttackContext,
    (connections, streams): (usize, usize),
    windows: FlowWindows,
    request: impl Fn(usize) -> WatchEvictionsRequest,
) -> HeldStreams {
    let began = Instant::now();
    let open = async |number: usize| {
        let (mut bodies, account) = (Vec::new(), context.tenant.account());
        let connection = context.connect_as(account, windows).await.ok()?;
        for stream in 0..streams {
            if began.elapsed() > opening {
                break;
            }
            let answer = connection.send(&call(METHOD, &request(number * streams + stream))).await;
            context.note_call(&answer);
            let open = answer.ok().filter(|answer| status_of(answer.headers()).is_none());
            bodies.extend(open.map(http::Response::into_body));
        }
        Some((connection, bodies))
    };
    HeldStreams(join_all((0..connections).map(open)).await.into_iter().flatten().collect())
}

/// Writes that change what readers see of four requests, until the time is over.
async fn write(context: &AttackContext) {
    let path = context.tenant.requests();
    context
        .repeat_requests(4, move |lane, round| {
            let shown = json!([{"name": "m", "reason": format!("{round}{}", "x".repeat(WRITE))}]).to_string();
            let annotations = json!({"nodemaintenance.k8s.io/maintenances": shown});
            UserRequest::merge(
                format!("{path}/{}", uid(lane)),
                &json!({"metadata": {"annotations": annotations}}),
            )
        })
        .await;
}
