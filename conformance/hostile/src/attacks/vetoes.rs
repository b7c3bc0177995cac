//! How a tenant might keep a pod on a node that is drained without a word.

use std::time::Duration;

use anyhow::{Context, Result};
use drydock_conformance::wait::retry;
use http::StatusCode;
use serde_json::{Value, json};

use super::stock::{Findings, REQUESTER};
use crate::attack::{Attack, Finding};
use crate::door::Ask;
use crate::field::Field;
use crate::stage::Pods;

const FINALIZER: &str = "veto.example.com/stay";
const LIMIT: Duration = Duration::from_secs(60);

/// These attacks.
pub fn all() -> Vec<Attack> {
    vec![Attack::new("finalizer-veto", "a maintenance's requests, deleted and held by a finalizer", |f| {
        Box::pin(finalizer_veto(f))
    })]
}

/// Neither controller looked at a request that is being deleted: no blocker told of it, and nobody ended it.
async fn finalizer_veto(field: Field) -> Findings {
    let pods = drained(&field).await?;
    let line = field.line().await?;
    for (_, uid) in &pods {
        let path = field.tenant.request(uid);
        let hold = json!({"metadata": {"finalizers": [FINALIZER]}});
        field.note(&line.ask_again(&Ask::merge(format!("{path}?fieldManager=vetoer"), &hold)).await);
        field.note(&line.ask_again(&Ask::delete(&path)).await);
    }
    let told = field.stage.blocker(LIMIT, &field.tenant.namespace, "Finalizer", &[FINALIZER, "vetoer"]).await;
    let (_, first) = pods.first().context("no pod")?;
    let ended = until(&field, first, is_canceled).await;
    let joined = json!({"spec": {"requesters": [{"name": REQUESTER}]}});
    let joined = line.ask_again(&Ask::merge(field.tenant.request(first), &joined)).await?;
    let held = line.done(&Ask::get(field.tenant.request(first))).await?;
    let release = json!({"metadata": {"finalizers": null}});
    field.note(&line.ask_again(&Ask::merge(field.tenant.request(first), &release)).await);
    let replaced = until(&field, first, |request| {
        request["metadata"]["uid"] != held["metadata"]["uid"]
            && !request["status"]["activeInterceptors"].is_null()
    });
    let replaced = replaced.await;
    Ok(vec![
        Finding::new(told.is_ok(), format!("a blocker that names the finalizer: {}", whether(&told))),
        Finding::new(ended.is_ok(), format!("the end of a request that is held: {}", whether(&ended))),
        Finding::new(
            joined.code == StatusCode::UNPROCESSABLE_ENTITY,
            format!("a requester of a request that is being deleted: {}", joined.told()),
        ),
        Finding::new(replaced.is_ok(), format!("another request, when it is gone: {}", whether(&replaced))),
    ])
}

fn whether(came: &Result<()>) -> String {
    came.as_ref().map_or_else(|error| format!("{error:#}"), |()| "it came".to_owned())
}

fn is_canceled(request: &Value) -> bool {
    let conditions = request["status"]["conditions"].as_array().into_iter().flatten();
    let canceled = conditions.into_iter().any(|c| c["type"] == "Canceled" && c["status"] == "True");
    canceled && request["status"]["activeInterceptors"].is_null()
}

/// Pods of the tenant on a node of their own, which a maintenance has asked to leave.
async fn drained(field: &Field) -> Result<Pods> {
    let (name, count) = (field.tenant.namespace.clone(), field.pick(10, 100));
    field.stage.node(&name).await?;
    let pods = field.stage.pods(&field.tenant, &name, count, true).await?;
    field.stage.drain(&name, &name).await?;
    let (_, last) = pods.last().context("no pod")?;
    until(field, last, |request| !request["status"]["activeInterceptors"].is_null()).await?;
    Ok(pods)
}

/// The request of a pod is so.
async fn until(field: &Field, uid: &str, is_so: impl Fn(&Value) -> bool) -> Result<()> {
    let (admin, path) = (field.stage.admin().await?, Ask::get(field.tenant.request(uid)));
    retry(
        LIMIT,
        || "not within the limit".to_owned(),
        async || Ok(is_so(&admin.ask_again(&path).await?.json())),
    )
    .await
}
