//! Admission that changes objects.

use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, AdmissionAttributes, AdmissionOperation, Phase};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fixture::{GADGETS, Server, gadget};

/// Labels what it sees, does what an annotation says, and writes down what it was asked.
#[derive(Default)]
struct Labeller(Mutex<Vec<String>>);

#[async_trait]
impl Admission for Labeller {
    async fn admit(&self, request: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        self.mutate(request).await.map(drop)
    }

    async fn mutate(&self, request: &AdmissionAttributes<'_>) -> Result<Option<Object>, ApiError> {
        let options = request.options.to_json(request.operation);
        self.0.lock().push(format!("{} {:?} {options}", request.operation.as_str(), request.name));
        let Some(mut object) = request.new.cloned() else { return Ok(None) };
        let annotations = object.meta().and_then(|meta| meta.get("annotations")).cloned().unwrap_or_default();
        if annotations.get("refuse").is_some() {
            return Err(request.forbidden("refused"));
        }
        if annotations.get("break").is_some() {
            object.set_meta("managedFields", Some(json!([{"operation": "Update", "apiVersion": ""}])));
        }
        if annotations.get("owners").is_some() {
            let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
            object.set_meta("ownerReferences", Some(json!([owner, owner])));
        }
        let mut labels = object.labels().cloned().unwrap_or_default();
        labels.insert("by".to_owned(), "labeller".into());
        object.set_meta("labels", Some(Value::Object(labels)));
        Ok(Some(object))
    }

    fn phase(&self) -> Phase {
        Phase::BeforeValidation
    }
}

/// Sees the label that the one before it made.
struct Reader;

#[async_trait]
impl Admission for Reader {
    async fn admit(&self, request: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        let labelled = request.new.and_then(Object::labels).is_some_and(|labels| labels.contains_key("by"));
        let unseen = request.operation != AdmissionOperation::Delete && !labelled;
        if unseen { Err(request.forbidden("it has no label")) } else { Ok(()) }
    }
}

async fn server() -> (Server, Arc<Labeller>) {
    let labeller = Arc::new(Labeller::default());
    (Server::with_admission(vec![labeller.clone(), Arc::new(Reader)]).await, labeller)
}

#[tokio::test]
async fn what_admission_changes_is_stored_and_belongs_to_nobody() {
    let (server, _) = server().await;
    let made = server.gadget("a", json!({"metadata": {"labels": {"mine": ""}}})).await;
    assert_eq!(made["metadata"]["labels"], json!({"mine": "", "by": "labeller"}));
    let owned = &made["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:labels"];
    assert_eq!(*owned, json!({".": {}, "f:mine": {}}));
    let patched = server.merge(&format!("{GADGETS}/a"), &json!({"metadata": {"labels": {"by": null}}})).await;
    assert_eq!(patched.expect(200)["metadata"]["labels"]["by"], "labeller");
}

#[tokio::test]
async fn a_name_is_generated_after_admission_and_once_asked_for() {
    let (server, labeller) = server().await;
    let mut nameless = gadget("", json!({}));
    nameless["metadata"] = json!({"generateName": "g-"});
    let uri = format!("{GADGETS}?fieldManager=me&dryRun=All");
    let made = server.post(&uri, &nameless).await.expect(201);
    assert!(made["metadata"]["name"].as_str().is_some_and(|name| name.len() == 7), "{made}");
    let options =
        r#"{"apiVersion":"meta.k8s.io/v1","dryRun":["All"],"fieldManager":"me","kind":"CreateOptions"}"#;
    assert_eq!(*labeller.0.lock(), [format!("CREATE \"\" {options}")]);
    nameless["metadata"]["annotations"] = json!({"refuse": ""});
    let refused = server.post(GADGETS, &nameless).await.expect(403);
    assert_eq!(refused["message"], "gadgets.test.io \"g-\" is forbidden: refused");
}

#[tokio::test]
async fn unreadable_managed_fields_are_not_taken_over_and_owners_stand_once() {
    let (server, _) = server().await;
    let broken = gadget("a", json!({"metadata": {"annotations": {"break": "", "owners": ""}}}));
    let answer = server.post(GADGETS, &broken).await;
    let warnings = answer.header("warning").join("\n");
    assert!(
        warnings.contains(".metadata.managedFields was in an invalid state after admission"),
        "{warnings}"
    );
    assert!(warnings.contains("duplicate entries after mutating admission happens"), "{warnings}");
    let made = answer.expect(201);
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "tester");
    assert_eq!(made["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
}

/// A refusal of a state from the cache was always repeated on the stored state, even if both were the same: the
/// request waited twice for a slow admission.
#[tokio::test]
async fn nobody_is_asked_twice_about_one_state() {
    let (server, labeller) = server().await;
    server.gadget("a", json!({})).await;
    labeller.0.lock().clear();
    let refused = json!({"metadata": {"annotations": {"refuse": ""}}});
    server.merge(&format!("{GADGETS}/a"), &refused).await.expect(403);
    assert_eq!(labeller.0.lock().len(), 1);
    let body = json!({"propagationPolicy": "Orphan", "preconditions": {"uid": "other"}}).to_string();
    server.send("DELETE", &format!("{GADGETS}/a"), &[], &body).await.expect(409);
    server.send("DELETE", &format!("{GADGETS}/a?propagationPolicy=Background"), &[], "").await.expect(200);
    let options =
        r#"{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions","propagationPolicy":"Background"}"#;
    assert_eq!(labeller.0.lock().last(), Some(&format!("DELETE \"a\" {options}")));
}
