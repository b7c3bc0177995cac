//! Requests for which our API server has to ask the host for reviews.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::wait::{LIMIT, retry};
use futures::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

use super::eviction_requests::{Findings, REQUESTER, no_findings, uid};
use crate::attack::Attack;
use crate::client::{FlowWindows, UserConnection, UserRequest};
use crate::context::AttackContext;

/// Requests at a time.
const LANES: usize = 16;
/// Reviews in a second that bystanders cause, and a few in any time.
const BESIDE: (u64, u64) = (60, 100);

const RBAC: &str = "rbac.authorization.k8s.io";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("junk-tokens", "a new token for each request, from 8 addresses", |f| {
            Box::pin(junk_tokens(f))
        })
        .by_strangers(),
        Attack::new(
            "fresh-names",
            "a namespace and a name for each request that nobody asked for yet",
            |f| Box::pin(fresh_names(f)),
        )
        .by_new_questions(),
        Attack::new("fresh-pods", "requests for pods that nobody asked for yet", |f| Box::pin(fresh_pods(f)))
            .by_new_questions(),
        Attack::new("impersonation", "fifty groups and fifty extra fields to be, in each request", |f| {
            Box::pin(impersonation(f))
        })
        .by_new_questions(),
        Attack::new("long-reasons", "denials whose reason names 60 long roles that are gone", |f| {
            Box::pin(long_reasons(f))
        })
        .by_new_questions(),
        Attack::new("long-tokens", "tokens of 60 KB", |f| Box::pin(long_tokens(f))).by_strangers(),
        Attack::new("long-names", "names and selectors of 20 KB, a new one for each request", |f| {
            Box::pin(long_names(f))
        }),
        Attack::new("bad-paths", "paths of any length and shape", |f| Box::pin(bad_paths(f))),
    ]
}

async fn junk_tokens(context: AttackContext) -> Findings {
    tokens(context, 50, |lane, round| format!("junk-{lane}-{round}")).await
}

async fn long_tokens(context: AttackContext) -> Findings {
    tokens(context, 4, |lane, round| format!("{lane}-{round}-{}", "x".repeat(60_000))).await
}

async fn tokens(
    context: AttackContext,
    at_a_time: usize,
    token: impl Fn(usize, usize) -> String + Send + Sync + 'static,
) -> Findings {
    let (path, token, each) = (context.tenant.requests(), Arc::new(token), context.clone());
    context
        .repeat(LANES, move |lane, round| {
            let (context, path, token) = (each.clone(), path.clone(), token.clone());
            async move {
                let from = Ipv4Addr::new(127, 0, 1, (lane % 8) as u8 + 1);
                let connection =
                    UserConnection::open(&context.setup.direct, from, None, FlowWindows::USUAL).await?;
                for turn in (0..).take_while(|_| !connection.is_closed()) {
                    let fresh = |n| token(lane, (round * 1_000 + turn) * 1_000 + n);
                    let bearer =
                        |n| UserRequest::get(&path).with("authorization", format!("Bearer {}", fresh(n)));
                    let asks: Vec<UserRequest> = (0..at_a_time).map(bearer).collect();
                    for answer in join_all(asks.iter().map(|ask| connection.ask(ask))).await {
                        context.note(&answer);
                    }
                }
                Ok(())
            }
        })
        .await;
    no_findings()
}

async fn fresh_names(context: AttackContext) -> Findings {
    let version = drydock_api::API_VERSION;
    context
        .repeat_requests(LANES, move |lane, round| {
            UserRequest::get(format!(
                "/apis/{version}/namespaces/n{lane}-{round}/evictionrequests/e{lane}-{round}"
            ))
        })
        .await;
    no_findings()
}

async fn fresh_pods(context: AttackContext) -> Findings {
    let path = context.tenant.requests();
    context
        .repeat_requests(LANES, move |lane, round| {
            let object =
                eviction_request(&format!("p{lane}-{round}"), &uid(lane * 100_000 + round), REQUESTER);
            UserRequest::post(format!("{path}?dryRun=All"), &object)
        })
        .await;
    no_findings()
}

async fn impersonation(context: AttackContext) -> Findings {
    let path = context.tenant.requests();
    context
        .repeat_requests(LANES, move |lane, round| {
            let mut ask = UserRequest::get(&path).with("impersonate-user", format!("u{lane}-{round}"));
            for at in 0..50 {
                ask = ask.with("impersonate-group", format!("g{lane}-{round}-{at}"));
                ask = ask.with(&format!("impersonate-extra-e{at}"), format!("{lane}-{round}"));
            }
            ask
        })
        .await;
    no_findings()
}

async fn long_names(context: AttackContext) -> Findings {
    let (before, began) = (context.setup.reviews().await?, Instant::now());
    let requests = context.tenant.requests();
    context
        .repeat_requests(LANES, move |lane, round| {
            let name = format!("n{lane}-{round}-{}", "x".repeat(20_000));
            UserRequest::get(match round % 3 {
                0 => format!("{requests}/{name}"),
                1 => format!("{requests}?fieldSelector=metadata.name%3D{name}"),
                _ => format!("{requests}?labelSelector={name}"),
            })
        })
        .await;
    let reviews = context.setup.reviews().await?.saturating_sub(before);
    let most = BESIDE.0 * (began.elapsed().as_secs() + 1) + BESIDE.1;
    Ok(vec![Finding::new(reviews <= most, format!("{reviews} reviews, more than {most}"))])
}

/// In the reason for a denial the host names each RoleBinding whose role does not exist.
async fn long_reasons(context: AttackContext) -> Findings {
    let namespace = context.tenant.namespace.clone();
    let admin = context.setup.admin().await?;
    let bindings = format!("/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings");
    for at in 0..60 {
        admin.done(&UserRequest::post(&bindings, &dangling(at))).await?;
    }
    let path = format!("/apis/{}/namespaces/{namespace}/others", drydock_api::API_VERSION);
    let reason = || reason(&context);
    retry(LIMIT, || "the host gives no long reason".to_owned(), async || Ok(reason().await? > 200_000))
        .await?;
    let each = path.clone();
    context
        .repeat_requests(LANES, move |lane, round| UserRequest::get(format!("{each}/n{lane}-{round}")))
        .await;
    let answer = context.connect().await?.ask_again(&UserRequest::get(format!("{path}/last"))).await?;
    let (code, length) = (answer.code, answer.body.len());
    let text = format!("a denial is {code} in {length} bytes");
    Ok(vec![Finding::new(code == StatusCode::FORBIDDEN && length < 4_096, text)])
}

/// Binds all users to a role that does not exist.
fn dangling(at: usize) -> Value {
    json!({
        "metadata": {"name": format!("gone-{at}")},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": format!("r{at}-{}", "x".repeat(4_000))},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}],
    })
}

/// The length of the host's reason why the tenant may not do something.
async fn reason(context: &AttackContext) -> Result<usize> {
    let user = format!("system:serviceaccount:{}:account-0", context.tenant.namespace);
    let asked = json!({"namespace": context.tenant.namespace, "verb": "get", "resource": "others"});
    let spec = json!({"user": user, "groups": ["system:authenticated"], "resourceAttributes": asked});
    let review =
        UserRequest::post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &json!({ "spec": spec }));
    let answer = context.setup.done(&review).await?;
    Ok(answer["status"]["reason"].as_str().map_or(0, str::len))
}

async fn bad_paths(context: AttackContext) -> Findings {
    let requests = context.tenant.requests();
    let long = "a".repeat(50_000);
    let paths = [
        format!("{requests}/{long}"),
        format!("/apis/{long}"),
        "/".repeat(50_000),
        "/..%2f..%2f".repeat(4_000),
        format!("{requests}/%ff%00%c3%28/status"),
        format!("{requests}/x/{}", "status/".repeat(5_000)),
        "/openapi/v3/apis/coordination.k8s.io/v1alpha1?hash=x".to_owned(),
        "/openapi/v2".to_owned(),
        "/apis".to_owned(),
        "/metrics".to_owned(),
        "/readyz?verbose".to_owned(),
        "/debug/pprof/profile".to_owned(),
    ];
    context
        .repeat_requests(LANES, move |lane, round| {
            if round % 20 == 19 {
                return UserRequest::delete(&paths[round % 3]);
            }
            if round % 20 == 18 {
                return UserRequest::merge(&paths[lane % paths.len()], &json!({}));
            }
            UserRequest::get(&paths[(lane + round) % paths.len()])
        })
        .await;
    no_findings()
}
