//! EvictionRequests with which attacks are made, small and large, for pods that do not exist; and what attacks wait for.

use std::cell::RefCell;

use anyhow::{Result, ensure};
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::wait::{LIMIT, retry};
use serde_json::{Value, json};

use crate::client::UserRequest;
use crate::context::AttackContext;

/// What an attack comes back with.
pub type Findings = Result<Vec<Finding>>;

/// Requests that are made at a time.
const AT_A_TIME: usize = 8;
/// The requester in them.
pub const REQUESTER: &str = "a.example.com";

/// The findings of an attack of which only the effect on bystanders is judged.
pub fn no_findings() -> Findings {
    Ok(Vec::new())
}

/// The UID of the pod of that number, which does not exist.
pub fn uid(at: usize) -> String {
    format!("00000000-0000-4000-8000-{at:012}")
}

/// The request for it.
pub fn request(at: usize) -> Value {
    eviction_request("nowhere", &uid(at), REQUESTER)
}

/// The same with an annotation of so many bytes.
pub fn large_request(at: usize, bytes: usize) -> Value {
    let mut object = request(at);
    object["metadata"]["annotations"] = json!({"example.com/padding": "x".repeat(bytes)});
    object
}

/// Makes so many requests of so many bytes each.
pub async fn create_requests(context: &AttackContext, count: usize, bytes: usize) -> Result<()> {
    let path = context.tenant.requests();
    let asks = (0..count).map(|at| UserRequest::post(&path, &large_request(at, bytes))).collect();
    context.each(asks, AT_A_TIME).await?;
    ensure!(context.counted("201") > 0, "no request could be made: {}", context.summary());
    Ok(())
}

/// Waits until `is_so` holds for the request of a pod, which may not exist yet. The error shows what was seen last.
pub async fn until(context: &AttackContext, uid: &str, is_so: impl Fn(&Value) -> bool) -> Result<()> {
    let (admin, path) = (context.setup.admin().await?, UserRequest::get(context.tenant.request(uid)));
    let last = RefCell::new(Value::Null);
    let late = || format!("the request {uid} does not come so far; it was last seen as {}", last.borrow());
    let is_there = async || {
        let seen = admin.ask_again(&path).await?.json();
        let is_there = is_so(&seen);
        last.replace(seen);
        Ok(is_there)
    };
    retry(LIMIT, late, is_there).await
}
