//! Patches that cost far more than their bytes.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::eviction_requests::{Findings, REQUESTER, large_request, no_findings, request, uid};
use crate::attack::Attack;
use crate::client::UserRequest;
use crate::context::AttackContext;

/// Requests at a time.
const LANES: usize = 4;
/// The most operations of a JSON patch (k8s.io/apiserver, endpoints/handlers/patch.go).
const OPERATIONS: usize = 10_000;
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "stalling-patch",
            "1 MB that names a field of 500 KB, and in it one field 80,000 times",
            |f| Box::pin(stalling(f)),
        ),
        Attack::new("copy-doubling", "operations each of which doubles the object", |f| {
            Box::pin(doubling(f))
        }),
        Attack::new("copied-values", "1 MB of operations that copy what the first one added", |f| {
            Box::pin(copied(f))
        }),
        Attack::new("merge-directives", "strategic merges that order and delete 100,000 items", |f| {
            Box::pin(directives(f))
        }),
        Attack::new("many-managers", "one object applied and updated by ever new managers", |f| {
            Box::pin(managers(f))
        }),
        Attack::new("wide-apply", "configurations with 20,000 fields to own", |f| Box::pin(wide_apply(f))),
        Attack::new("apply-conflicts", "two managers that take turns to own the same 500 fields", |f| {
            Box::pin(conflicts(f))
        }),
    ]
}

/// Strict decoding reports each duplicate by its whole path.
async fn stalling(context: AttackContext) -> Findings {
    let twice = vec![r#""a":1"#; 80_000].join(",");
    let body = Bytes::from(format!(r#"{{"{}":{{{twice}}}}}"#, "k".repeat(500_000)));
    let merge = "application/merge-patch+json";
    repeat_patch(&context, move |path| UserRequest::body(Method::PATCH, path, merge, body.clone())).await
}

async fn copied(context: AttackContext) -> Findings {
    let mut operations =
        vec![json!({"op": "add", "path": "/metadata/annotations/b", "value": "b".repeat(300_000)})];
    let copy = json!({"op": "copy", "from": "/metadata/annotations", "path": "/metadata/labels"});
    operations.extend(vec![copy; OPERATIONS - 1]);
    operate(&context, operations).await
}

async fn doubling(context: AttackContext) -> Findings {
    let double = |at| json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/x{at}")});
    operate(&context, (0..64).map(double).collect()).await
}

/// Patches one request with these, again and again.
async fn operate(context: &AttackContext, operations: Vec<Value>) -> Findings {
    let body = Bytes::from(Value::from(operations).to_string());
    repeat_patch(context, move |path| UserRequest::operations(path, body.clone())).await
}

async fn directives(context: AttackContext) -> Findings {
    let names: Vec<String> = (0..60_000).map(|at| format!("a{at}.example.com")).collect();
    // An order without what the patch sets is answered 500 by kube-apiserver, and so by us.
    let order: Vec<Value> =
        names.iter().map(String::as_str).chain([REQUESTER]).map(|name| json!({"name": name})).collect();
    let deleted: Vec<Value> = names.iter().map(|name| json!({"name": name, "$patch": "delete"})).collect();
    let patches = [
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": names, "$setElementOrder/finalizers": names}}),
        json!({"spec": {"$setElementOrder/requesters": order, "requesters": [{"name": REQUESTER}]}}),
        json!({"spec": {"requesters": deleted}}),
    ];
    let bodies = patches.map(|patch| Bytes::from(patch.to_string()));
    let path = path(&context).await?;
    let asks = bodies.map(|body| UserRequest::body(Method::PATCH, &path, STRATEGIC, body));
    context.repeat_requests(LANES, move |_, round| asks[round % asks.len()].clone()).await;
    no_findings()
}

async fn managers(context: AttackContext) -> Findings {
    let path = path(&context).await?;
    context
        .repeat_requests(LANES, move |lane, round| {
            let manager = format!("m{lane}x{round}{}", "y".repeat(100));
            let annotation = json!({"annotations": {format!("example.com/{lane}-{round}"): "z"}, "name": uid(0)});
            let object = json!({"apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest", "metadata": annotation});
            if round % 2 == 0 {
                UserRequest::apply(format!("{path}?fieldManager={manager}"), object.to_string())
            } else {
                UserRequest::merge(format!("{path}?fieldManager={manager}"), &json!({"metadata": annotation}))
            }
        })
        .await;
    no_findings()
}

async fn wide_apply(context: AttackContext) -> Findings {
    let mut object = request(0);
    let keys = |with: &str| (0..20_000).map(|at| (format!("{with}{at}"), json!(""))).collect::<Value>();
    object["metadata"]["annotations"] = keys("a");
    object["metadata"]["labels"] = keys("l");
    apply(&context, object, "wide").await
}

async fn conflicts(context: AttackContext) -> Findings {
    let path = path(&context).await?;
    context
        .repeat_requests(LANES, move |lane, round| {
            let mut object = request(0);
            object["metadata"]["annotations"] =
                (0..500).map(|at| (format!("k{at}"), json!(format!("{lane}-{round}")))).collect();
            let force = round % 3 == 0;
            UserRequest::apply(format!("{path}?fieldManager=m{lane}&force={force}"), object.to_string())
        })
        .await;
    no_findings()
}

async fn apply(context: &AttackContext, object: Value, manager: &'static str) -> Findings {
    let body = Bytes::from(object.to_string());
    repeat_patch(context, move |path| {
        UserRequest::apply(format!("{path}?fieldManager={manager}&force=true"), body.clone())
    })
    .await
}

async fn repeat_patch(
    context: &AttackContext,
    ask: impl Fn(&str) -> UserRequest + Send + Sync + 'static,
) -> Findings {
    let path = path(context).await?;
    context.repeat_requests(LANES, move |_, _| ask(&path)).await;
    no_findings()
}

/// Creates a request, and returns its path.
async fn path(context: &AttackContext) -> anyhow::Result<String> {
    context
        .connect()
        .await?
        .done(&UserRequest::post(context.tenant.requests(), &large_request(0, 1000)))
        .await?;
    Ok(context.tenant.request(&uid(0)))
}
