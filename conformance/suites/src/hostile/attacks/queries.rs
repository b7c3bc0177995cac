//! Queries that cost far more than their bytes.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;

use super::eviction_requests::{Findings, create_requests, no_findings, uid};
use crate::attack::Attack;
use crate::client::{FlowWindows, UserRequest};
use crate::context::AttackContext;

/// Requests at a time.
const LANES: usize = 8;
/// Bytes of a selector: URLs of 64 KB are taken by most servers.
const SELECTOR: usize = 60_000;

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("long-selectors", "label selectors as long as a URL, on lists and 200 watches", |f| {
            Box::pin(long_selectors(f))
        }),
        Attack::new("label-churn", "labels that enter and leave the selectors of 400 watches", |f| {
            Box::pin(label_churn(f))
        }),
        Attack::new("bad-queries", "unknown fields, huge queries, parameters a thousand times", |f| {
            Box::pin(bad_queries(f))
        }),
        Attack::new("watch-storm", "watches from revisions that are gone, to come, or none", |f| {
            Box::pin(watch_storm(f))
        }),
        Attack::new("watch-lists", "watches that want 8 MB of initial events and leave", |f| {
            Box::pin(watch_lists(f))
        }),
        Attack::new("forged-continue", "continue tokens of the tenant's own making", |f| {
            Box::pin(forged_continue(f))
        }),
    ]
}

async fn long_selectors(context: AttackContext) -> Findings {
    create_requests(&context, 500, 10).await?;
    let terms: Vec<String> = (0..SELECTOR / 9).map(|at| format!("!k{at}")).collect();
    let values: Vec<String> = (0..SELECTOR / 7).map(|at| format!("v{at}")).collect();
    let selectors = [terms.join(","), format!("k%20notin%20({})", values.join(","))];
    let selectors = selectors.map(|text| text.chars().take(SELECTOR).collect::<String>());
    let paths = selectors.map(|selector| format!("{}?labelSelector={selector}", context.tenant.requests()));
    let watches =
        open_watches(&context, 200, paths.iter().map(|path| format!("{path}&watch=1")).collect()).await?;
    churn(&context, move |_, round| UserRequest::get(&paths[round % paths.len()])).await;
    drop(watches);
    no_findings()
}

async fn label_churn(context: AttackContext) -> Findings {
    create_requests(&context, LANES, 10).await?;
    let path = |at| format!("{}?watch=1&labelSelector=in%3Dr{at}", context.tenant.requests());
    let watches = open_watches(&context, 400, (0..4).map(path).collect()).await?;
    churn(&context, |_, _| UserRequest::get("/apis")).await;
    drop(watches);
    no_findings()
}

/// Half of the workers write labels, the others list.
async fn churn(context: &AttackContext, ask: impl Fn(usize, usize) -> UserRequest + Send + Sync + 'static) {
    let requests = context.tenant.requests();
    context
        .repeat_requests(LANES, move |lane, round| {
            if lane % 2 == 0 {
                return ask(lane, round);
            }
            let labels = json!({"metadata": {"labels": {"in": format!("r{}", round % 4)}}});
            UserRequest::merge(format!("{requests}/{}", uid(lane)), &labels)
        })
        .await;
}

/// Opens so many watches, which are read until the return value is dropped.
async fn open_watches(
    context: &AttackContext,
    count: usize,
    paths: Vec<String>,
) -> anyhow::Result<tokio::task::JoinSet<()>> {
    let mut watches = tokio::task::JoinSet::new();
    let mut connection = context.connect().await?;
    for at in 0..count {
        if at % 50 == 0 {
            connection = context.connect_as(context.tenant.account(), FlowWindows::USUAL).await?;
        }
        let (context, connection, ask) =
            (context.clone(), connection.clone(), UserRequest::get(&paths[at % paths.len()]));
        watches.spawn(async move {
            let answer = connection.ask(&ask).await;
            context.note(&answer);
        });
    }
    Ok(watches)
}

async fn bad_queries(context: AttackContext) -> Findings {
    let path = context.tenant.requests();
    let long = "x".repeat(SELECTOR);
    let unknown: Vec<String> = (0..3_000).map(|at| format!("spec.f{at}%3Dv")).collect();
    let queries = [
        format!("fieldSelector={}", unknown.join(",")),
        format!("fieldSelector={long}"),
        format!("labelSelector={}", "a%20in%20((((".repeat(2_000)),
        format!("labelSelector={}", "%F0%9F%98%80,".repeat(4_000)),
        format!("fieldManager={long}"),
        vec!["limit=1"; 5_000].join("&"),
        "resourceVersion=99999999999999999999999".to_owned(),
        "limit=-9223372036854775809&timeoutSeconds=1e400".to_owned(),
        format!("{}=1", "%00".repeat(10_000)),
    ];
    context
        .repeat_requests(LANES, move |_, round| {
            UserRequest::get(format!("{path}?{}", queries[round % queries.len()]))
        })
        .await;
    no_findings()
}

async fn watch_storm(context: AttackContext) -> Findings {
    create_requests(&context, 10, 10).await?;
    let path = context.tenant.requests();
    // What is no number is answered 500 by kube-apiserver, and so by us.
    let from = ["1", "999999999999", "0", "18446744073709551615", ""];
    context
        .repeat_requests(32, move |_, round| {
            UserRequest::get(format!(
                "{path}?watch=1&timeoutSeconds=1&resourceVersion={}",
                from[round % from.len()]
            ))
        })
        .await;
    no_findings()
}

async fn watch_lists(context: AttackContext) -> Findings {
    create_requests(&context, 200, 40_000).await?;
    let each = context.clone();
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    context
        .repeat(16, move |_, _| {
            let context = each.clone();
            async move {
                let ask = UserRequest::get(format!("{}?{query}", context.tenant.requests()));
                let answer = context.connect().await?.send(&ask).await?;
                context.count(answer.status().as_str());
                Ok(())
            }
        })
        .await;
    no_findings()
}

async fn forged_continue(context: AttackContext) -> Findings {
    create_requests(&context, 10, 10).await?;
    let path = context.tenant.requests();
    let token = |rv: i64, start: &str| {
        let text = json!({"v": "meta.k8s.io/v1", "rv": rv, "start": start}).to_string();
        BASE64_URL_SAFE_NO_PAD.encode(text)
    };
    let tokens = [
        token(-1, "../../other-tenant/x\0"),
        token(i64::MAX, "x\0"),
        token(1, "\0"),
        token(0, &"y".repeat(40_000)),
        token(-2, "x\0"),
        "x".repeat(50_000),
        "%FF%FE".to_owned(),
        BASE64_URL_SAFE_NO_PAD.encode("[".repeat(30_000)),
    ];
    context
        .repeat_requests(LANES, move |_, n| {
            UserRequest::get(format!("{path}?limit=1&continue={}", tokens[n % tokens.len()]))
        })
        .await;
    no_findings()
}
