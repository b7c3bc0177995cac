//! Ways in which a tenant might keep a pod on a node for hours with turns of interceptors that nobody runs.

use anyhow::Result;
use drydock_api::eviction_request::interceptors::{BUILT_IN, DAEMON_SET, IMPERATIVE_EVICTION};
use drydock_api::time::format_seconds;
use drydock_testkit::finding::Finding;
use drydock_testkit::wait::{LIMIT, retry};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::eviction_requests::{Findings, until};
use super::vetoes::{SECOND, drained_with, report, turn_of};
use crate::attack::Attack;
use crate::client::UserRequest;
use crate::context::AttackContext;
use crate::setup::cluster::{PATIENT, has_condition, maintenance};

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![Attack::new(
        "hours-by-annotations",
        "fifteen interceptors that nobody runs, and the request deleted before the last turn",
        |f| Box::pin(hours(f)),
    )]
}

/// Built-in names were waited for like those of owners, twenty minutes each. When the request was deleted before the last turn,
/// all began anew.
async fn hours(context: AttackContext) -> Findings {
    let pods = drained_with(&context, &annotations()).await?;
    let begun =
        |name: &'static str| move |request: &Value| request["status"]["activeInterceptors"] == json!([name]);
    for (_, uid) in &pods {
        until(&context, uid, begun(PATIENT)).await?;
        report(&context, uid, |now| json!({"completionTime": format_seconds(now)})).await?;
    }
    let before = context.counted("200");
    for (_, uid) in &pods {
        until(&context, uid, |request| begun(SECOND)(request) && is_silent_too_long(request)).await?;
        let delete = UserRequest::delete(context.tenant.request(uid));
        // The server has ended a connection on which nothing was asked until now.
        context.note(&context.connect().await?.ask_again(&delete).await);
    }
    let deleted = context.counted("200") - before;
    let drained = is_drained(&context).await;
    let said = drained.as_ref().map_or_else(|error| format!("{error:#}"), |()| "it came".to_owned());
    Ok(vec![
        Finding::new(deleted >= pods.len(), format!("{deleted} of {} requests could be deleted", pods.len())),
        Finding::new(drained.is_ok(), format!("the end of the drain, after one turn of each: {said}")),
    ])
}

/// Whether the active interceptor would not get its turn again: it had a minute to report.
fn is_silent_too_long(request: &Value) -> bool {
    let began = request["status"]["activationTime"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    began.is_some_and(|began| Timestamp::now().duration_since(began).as_secs() > 60)
}

/// Interceptors of the first turns are built-in names that no program serves here; then one of the tenant's, and one that never
/// reports.
fn annotations() -> Value {
    let is_unserved =
        |name: &&&str| ![IMPERATIVE_EVICTION, DAEMON_SET].contains(*name) && !name.starts_with("surge.");
    let unserved = BUILT_IN.iter().filter(is_unserved).map(|name| (turn_of(name), json!("5000/controller")));
    let own = [(PATIENT, "1000/controller"), (SECOND, "10/controller")];
    let own = own.map(|(name, value)| (turn_of(name), json!(value)));
    Value::Object(unserved.chain(own).collect::<Map<_, _>>())
}

async fn is_drained(context: &AttackContext) -> Result<()> {
    let path = UserRequest::get(maintenance(&context.tenant.namespace));
    let is_drained = async || Ok(has_condition(&context.setup.done(&path).await?, "Drained"));
    retry(LIMIT, || "the node is not drained".to_owned(), is_drained).await
}
