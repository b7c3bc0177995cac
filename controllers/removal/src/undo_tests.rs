//! What the host gets while a hostile object is undone, and when that ends.

use std::sync::{Arc, Mutex, PoisonError};

use drydock_runtime::testing::{context, failure};
use serde_json::{Value, json};

use super::*;
use crate::plan::surge;
use crate::report::{RemovalLine, Urgency};

/// The writes that the host got, and the lines that were said.
struct Undone {
    writes: Vec<Value>,
    lines: Vec<RemovalLine>,
}

impl Undone {
    fn problems(&self) -> Vec<&str> {
        let problems = self.lines.iter().filter(|line| line.urgency == Urgency::Problem);
        problems.map(RemovalLine::text).collect()
    }
}

/// A pod whose interceptor is registered.
fn registered(resource_version: &str) -> Value {
    let metadata = json!({
        "name": "p", "namespace": "shop", "uid": "u", "resourceVersion": resource_version,
        "annotations": {surge::registration(): "20000/interceptor"},
    });
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
}

/// Undoes the pod on a host that answers writes with `answer`, which gets their number.
async fn undone(is_dry_run: bool, answer: impl Fn(usize) -> (u16, Value) + Send + Sync + 'static) -> Undone {
    let writes = Arc::<Mutex<Vec<Value>>>::default();
    let got = writes.clone();
    let host = context(move |method, _, body| {
        let mut got = got.lock().unwrap_or_else(PoisonError::into_inner);
        if method == "GET" {
            return (200, registered(&got.len().to_string()));
        }
        got.push(body);
        answer(got.len())
    });
    let undoing = Undoing { scope: ObjectScope::cluster("", "v1", "Pod", "pods"), plan: surge::unregister };
    let mut lines = Vec::new();
    let mut to = |line| lines.push(line);
    undoing
        .undo(&host.client, &ObjectKey::new("shop", "p"), is_dry_run, &mut RemovalReport::new(&mut to))
        .await;
    let writes = writes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Undone { writes, lines }
}

fn gone() -> (u16, Value) {
    let mut left = registered("9");
    left["metadata"]["annotations"] = Value::Null;
    (200, left)
}

/// The script called itself after each conflict.
#[tokio::test(start_paused = true)]
async fn an_object_that_changes_before_each_write_was_tried_without_end() {
    let Undone { writes, lines } = undone(false, |_| failure(409, "Conflict")).await;
    assert_eq!(writes.len(), MAX_PLANS);
    let versions: Vec<&Value> = writes.iter().map(|write| &write["metadata"]["resourceVersion"]).collect();
    assert_eq!(versions[..2], ["0", "1"], "each write is decided on what was read for it");
    assert_eq!(Undone { writes, lines }.problems().len(), 1);
}

/// A webhook of a tenant puts the annotation back in each write.
#[tokio::test(start_paused = true)]
async fn an_annotation_that_comes_back_with_each_write_was_removed_without_end() {
    let undone = undone(false, |writes| (200, registered(&format!("w{writes}")))).await;
    assert_eq!(undone.writes.len(), MAX_PLANS);
    assert_eq!(undone.writes[1]["metadata"]["resourceVersion"], "w1");
    assert!(undone.problems()[0].contains("Pod shop/p still has something of Drydock"), "{:?}", undone.lines);
}

#[tokio::test(start_paused = true)]
async fn a_write_went_out_without_a_version() {
    let undone = undone(false, |writes| if writes < 3 { failure(503, "Unavailable") } else { gone() }).await;
    assert_eq!(undone.writes.len(), 3);
    for (at, write) in undone.writes.iter().enumerate() {
        assert_eq!(write["metadata"]["uid"], "u");
        assert_eq!(write["metadata"]["resourceVersion"], at.to_string());
    }
    assert!(undone.problems().is_empty(), "{:?}", undone.lines);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_wrote() {
    let undone = undone(true, |_| gone()).await;
    assert!(undone.writes.is_empty());
    let said: Vec<&str> = undone.lines.iter().map(RemovalLine::text).collect();
    assert_eq!(said, ["would change Pod shop/p: the surge interceptor is not registered any more"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_webhook_was_tried_again() {
    let refused = undone(false, |_| failure(403, "no\u{1b}[2J")).await;
    assert_eq!((refused.writes.len(), refused.problems()), (1, vec!["Pod shop/p: no [2J"]));
    let gone = undone(false, |_| failure(404, "NotFound")).await;
    assert_eq!((gone.writes.len(), gone.problems().len()), (1, 0));
}
