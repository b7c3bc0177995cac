//! Requests in which a tenant names another user as the one who asks: what the server records goes to the policies of the host.

use std::collections::BTreeSet;

use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::eviction_request;
use http::Method;
use serde_json::{Value, json};

use super::eviction_requests::{Findings, REQUESTER};
use crate::attack::Attack;
use crate::client::UserRequest;
use crate::context::AttackContext;

/// The user who is named.
const ADMIN: &str = "admin";
/// The requester that the tenant adds to each request.
const SECOND: &str = "b.example.com";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![Attack::new("borrowed-users", "requests that name another user as the one who asks", |f| {
        Box::pin(borrowed_users(f))
    })]
}

async fn borrowed_users(context: AttackContext) -> Findings {
    let node = format!("node-of-{}", context.tenant.namespace);
    context.setup.node(&node).await?;
    let pods = context.setup.pods(&context.tenant, &node, context.pick(10, 100), true).await?;
    let connection = context.connect().await?;
    for (pod, uid) in &pods {
        let mut make = eviction_request(pod, uid, REQUESTER);
        make["spec"]["requesterUsers"] = forged();
        connection.done(&UserRequest::post(context.tenant.requests(), &make)).await?;
        for ask in forgeries(&context.tenant.request(uid), &make) {
            context.note(&connection.ask_again(&ask).await);
        }
    }
    let all = context.setup.done(&UserRequest::get(context.tenant.requests())).await?;
    let specs: Vec<&Value> = all["items"].as_array().into_iter().flatten().map(|one| &one["spec"]).collect();
    let named: BTreeSet<&str> = specs.iter().flat_map(|spec| users(spec)).collect();
    let own = format!("system:serviceaccount:{}:", context.tenant.namespace);
    let are_own = !named.is_empty() && named.iter().all(|user| user.starts_with(&own));
    let is_whole = |spec: &&&Value| users(spec).len() == 2 && spec["requesters"].to_string().contains(SECOND);
    let whole = specs.iter().filter(is_whole).count();
    Ok(vec![
        Finding::new(are_own, format!("users who are said to ask: {named:?}")),
        Finding::new(whole == pods.len(), format!("of {} requests {whole} have two users", pods.len())),
    ])
}

/// The users whom a request has recorded.
fn users(spec: &Value) -> Vec<&str> {
    let recorded = spec["requesterUsers"].as_array().into_iter().flatten();
    recorded.filter_map(|one| one["username"].as_str()).collect()
}

/// The record that the tenant would like.
fn forged() -> Value {
    [REQUESTER, SECOND]
        .map(|requester| json!({"requester": requester, "username": ADMIN}))
        .into_iter()
        .collect()
}

/// Each way of writing to a request that was made so.
fn forgeries(path: &str, made: &Value) -> Vec<UserRequest> {
    let requesters = json!([{"name": REQUESTER}, {"name": SECOND}]);
    let change = json!({"spec": {"requesters": requesters, "requesterUsers": forged()}});
    let mut whole = made.clone();
    whole["spec"]["requesters"] = requesters;
    let add = json!([{"op": "add", "path": "/spec/requesterUsers", "value": forged()}]);
    let body = |type_: &str, value: &Value| UserRequest::body(Method::PATCH, path, type_, value.to_string());
    vec![
        UserRequest::merge(path, &change),
        body(STRATEGIC, &change),
        UserRequest::operations(path, add.to_string()),
        UserRequest::apply(format!("{path}?fieldManager=thief&force=true"), whole.to_string()),
        UserRequest::body(Method::PUT, path, "application/json", whole.to_string()),
        UserRequest::merge(format!("{path}/status"), &change),
        UserRequest::merge(path, &change).with("x-remote-user", ADMIN),
        UserRequest::merge(path, &change).with("impersonate-user", ADMIN),
    ]
}
