//! What a deployment's admission sees, and what it can stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use async_trait::async_trait;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::namespace_lifecycle::{NamespaceLifecycle, NamespacePhase, Namespaces};
use drydock_server::admission::{Admission, AdmissionAttributes, AdmissionOperation, Phase};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fixture::{GADGETS, Server, gadget};

/// Refuses to delete what is labelled `keep`, and writes down what it was asked.
#[derive(Default)]
struct Keeper(Mutex<Vec<String>>);

#[async_trait]
impl Admission for Keeper {
    async fn admit(&self, a: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        let dry = if a.dry_run { " dry" } else { "" };
        let (operation, sub) = (a.operation.as_str(), a.subresource);
        self.0.lock().push(format!("{operation} {}/{} {sub} {}{dry}", a.namespace, a.name, a.user.name));
        a.warnings.add("asked");
        let kept = a.old.is_some_and(|o| o.labels().is_some_and(|l| l.contains_key("keep")));
        if a.operation == AdmissionOperation::Delete && kept {
            return Err(ApiError::forbidden("test.io", "gadgets", a.object_name(), "it is kept"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn admission_sees_every_write() {
    let keeper = Arc::new(Keeper::default());
    let server = Server::with_admission(vec![keeper.clone()]).await;
    server.gadget("a", json!({})).await;
    let answer =
        server.merge(&format!("{GADGETS}/a/status?dryRun=All"), &json!({"status": {"phase": "x"}})).await;
    assert_eq!(answer.header("warning"), ["299 - \"asked\""]);
    server.delete(&format!("{GADGETS}/a")).await.expect(200);
    let asked = keeper.0.lock().clone();
    assert_eq!(asked, ["CREATE ns/a  tester", "UPDATE ns/a status tester dry", "DELETE ns/a  tester"]);
}

/// Refuses writes to the status of objects with the label `taken`, and holds up the first write to any status.
#[derive(Default)]
struct Holder {
    asked: AtomicUsize,
    is_held: Notify,
    release: Notify,
}

#[async_trait]
impl Admission for Holder {
    async fn admit(&self, a: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        if a.subresource != "status" {
            return Ok(());
        }
        let taken = a.old.is_some_and(|old| old.labels().is_some_and(|labels| labels.contains_key("taken")));
        if self.asked.fetch_add(1, Relaxed) == 0 {
            self.is_held.notify_one();
            self.release.notified().await;
        }
        if taken { Err(a.forbidden(format_args!("it is taken, by a {}", a.verb))) } else { Ok(()) }
    }
}

/// An admitted state must not be stored if another write came in between.
#[tokio::test]
async fn a_write_that_lost_a_race_is_asked_about_as_it_is_then() {
    let holder = Arc::new(Holder::default());
    let server = Server::with_admission(vec![holder.clone()]).await;
    server.gadget("a", json!({})).await;
    let uri = format!("{GADGETS}/a");
    let (status, phase) = (format!("{uri}/status"), json!({"status": {"phase": "x"}}));
    let meanwhile = async {
        holder.is_held.notified().await;
        server.merge(&uri, &json!({"metadata": {"labels": {"taken": ""}}})).await.expect(200);
        holder.release.notify_one();
    };
    let (answer, ()) = tokio::join!(server.merge(&status, &phase), meanwhile);
    assert_eq!(answer.expect(403)["message"], "gadgets.test.io \"a\" is forbidden: it is taken, by a patch");
    assert_eq!(holder.asked.load(Relaxed), 2);
    assert_eq!(server.get(&uri).await.expect(200)["status"]["phase"], Value::Null);
}

#[tokio::test]
async fn a_collection_with_one_denied_object_loses_none() {
    let server = Server::with_admission(vec![Arc::new(Keeper::default())]).await;
    server.gadget("a", json!({})).await;
    server.gadget("b", json!({"metadata": {"labels": {"keep": ""}}})).await;
    assert_eq!(server.delete(GADGETS).await.expect(403)["details"]["name"], "b");
    assert_eq!(server.get(GADGETS).await.expect(200)["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_collection_is_asked_about_once_for_each_object() {
    let keeper = Arc::new(Keeper::default());
    let server = Server::with_admission(vec![keeper.clone()]).await;
    server.gadget("a", json!({})).await;
    server.gadget("b", json!({})).await;
    keeper.0.lock().clear();
    server.delete(GADGETS).await.expect(200);
    assert_eq!(keeper.0.lock().len(), 2);
    assert_eq!(server.get(GADGETS).await.expect(200)["items"], json!([]));
}

/// Answers about a deletion only when it is asked about another at the same time.
struct InPairs(tokio::sync::Barrier);

#[async_trait]
impl Admission for InPairs {
    async fn admit(&self, a: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        if a.operation == AdmissionOperation::Delete {
            self.0.wait().await;
        }
        Ok(())
    }
}

/// Asked about one by one, ten thousand objects took longer than a request may: none was ever removed.
#[tokio::test]
async fn a_collection_is_asked_about_and_removed_side_by_side() {
    let server = Server::with_admission(vec![Arc::new(InPairs(tokio::sync::Barrier::new(2)))]).await;
    for name in ["a", "b", "c", "d"] {
        server.gadget(name, json!({})).await;
    }
    assert_eq!(server.delete(GADGETS).await.expect(200)["items"].as_array().unwrap().len(), 4);
    assert_eq!(server.get(GADGETS).await.expect(200)["items"], json!([]));
}

struct Spaces;

#[async_trait]
impl Namespaces for Spaces {
    fn ready(&self) -> bool {
        true
    }
    fn cached(&self, name: &str) -> Option<NamespacePhase> {
        match name {
            "ns" => Some(NamespacePhase::Active),
            "ending" => Some(NamespacePhase::Terminating),
            _ => None,
        }
    }
    async fn live(&self, name: &str) -> Result<Option<NamespacePhase>, ApiError> {
        Ok((name == "new").then_some(NamespacePhase::Active))
    }
}

#[tokio::test]
async fn nothing_is_created_where_a_namespace_is_missing_or_ending() {
    let server = Server::with_admission(vec![Arc::new(NamespaceLifecycle::new(Arc::new(Spaces)))]).await;
    let uri = |ns: &str| format!("/apis/test.io/v1/namespaces/{ns}/gadgets");
    // It is asked before validation: even an invalid object gets the error of its namespace.
    let bad = gadget("a", json!({"spec": {"size": -1}}));
    let missing = server.post(&uri("none"), &bad).await.expect(404);
    assert_eq!(missing["message"], "namespaces \"none\" not found");
    let ending = server.post(&uri("ending"), &gadget("a", json!({}))).await.expect(403);
    assert_eq!(ending["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(
        ending["message"],
        "gadgets.test.io \"a\" is forbidden: unable to create new content in namespace ending because it is being terminated"
    );
    server.post(&uri("new"), &gadget("a", json!({}))).await.expect(201);
    server.post(&uri("ns"), &gadget("a", json!({}))).await.expect(201);
}

/// Makes of each new object's metadata what its annotations say.
struct Mover;

#[async_trait]
impl Admission for Mover {
    async fn admit(&self, _: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        Ok(())
    }

    async fn mutate(&self, a: &AdmissionAttributes<'_>) -> Result<Option<Object>, ApiError> {
        let Some(mut object) = a.new.cloned() else { return Ok(None) };
        let wanted = object.meta().and_then(|meta| meta.get("annotations")).cloned().unwrap_or_default();
        for field in ["namespace", "name"] {
            if let Some(Value::String(to)) = wanted.get(field) {
                object.set_meta(field, (!to.is_empty()).then(|| to.as_str().into()));
            }
        }
        Ok(Some(object))
    }

    fn phase(&self) -> Phase {
        Phase::BeforeValidation
    }
}

#[tokio::test]
async fn admission_moves_no_object_to_another_place() {
    let server = Server::with_admission(vec![Arc::new(Mover)]).await;
    let to = |field: &str, place: &str| json!({"metadata": {"annotations": {field: place}}});
    let elsewhere = "the namespace of the provided object does not match the namespace sent on the request";
    let renamed = "the name of the object (b) does not match the name on the URL (a)";
    let (uri, away) = (format!("{GADGETS}/a"), to("namespace", "other"));
    let made = server.post(GADGETS, &gadget("a", away.clone())).await.expect(400);
    assert_eq!(made["message"], elsewhere);
    assert_eq!(server.apply(&applied(), &gadget("a", away.clone())).await.expect(400)["message"], elsewhere);
    let misnamed = server.apply(&applied(), &gadget("a", to("name", "b"))).await.expect(400);
    assert_eq!(misnamed["message"], renamed);
    assert_eq!(server.get("/apis/test.io/v1/gadgets").await.expect(200)["items"], json!([]));
    // A namespace that was removed is filled in again.
    let nowhere = server.gadget("a", to("namespace", "")).await;
    assert_eq!(nowhere["metadata"]["namespace"], "ns");
    assert_eq!(server.put(&uri, &gadget("a", away.clone())).await.expect(400)["message"], elsewhere);
    assert_eq!(server.merge(&uri, &away).await.expect(400)["message"], elsewhere);
    assert_eq!(server.apply(&applied(), &gadget("a", away)).await.expect(400)["message"], elsewhere);
    let kept = server.put(&uri, &gadget("a", to("namespace", ""))).await.expect(200);
    assert_eq!(kept["metadata"]["namespace"], "ns");
    let immutable = server.merge(&uri, &to("name", "b")).await.expect(422);
    assert_eq!(immutable["details"]["causes"][0]["field"], "metadata.name");
}

fn applied() -> String {
    format!("{GADGETS}/a?fieldManager=m&force=true")
}
