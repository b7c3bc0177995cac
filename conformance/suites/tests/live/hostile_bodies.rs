//! Bodies that nobody honest sends, straight to our port by somebody who may do anything: code and reason of the
//! refusal, and nothing changed.

use anyhow::Result;
use drydock_testkit::kinds::{eviction_request, node_maintenance};
use drydock_testkit::link::Link;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::shared::{Namespace, shared};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const MAINTENANCES: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";

/// An answer: status code, reason, message; and its warnings.
#[derive(Debug)]
struct Answer {
    code: u16,
    reason: String,
    message: String,
    warnings: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_object_are_refused() -> Result<()> {
    let client = shared().await?.drydock.direct().await?;
    let whole = node_maintenance("hostile", "Idle", &["nowhere"]).to_string();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deep_field = whole.replace(r#""a test""#, &deep(10_000));
    let unknown_deep = whole.replace(r#""reason":"a test""#, &format!(r#""x":{}"#, deep(10_000)));
    let cases: [(&str, Vec<u8>, u16, &str); 8] = [
        ("an oversized one", vec![b' '; 3 * 1024 * 1024 + 1], 413, "RequestEntityTooLarge"),
        ("a truncated one", whole.as_bytes()[..whole.len() / 2].to_vec(), 400, "BadRequest"),
        ("an empty one", Vec::new(), 400, "BadRequest"),
        ("two in one", whole.repeat(2).into_bytes(), 400, "BadRequest"),
        ("arrays of 10,000 levels", deep(10_000).into_bytes(), 400, "BadRequest"),
        ("10,000 levels in a field", deep_field.into_bytes(), 400, "BadRequest"),
        ("10,000 levels in an unknown field", unknown_deep.into_bytes(), 400, "BadRequest"),
        ("an object of another kind", br#"{"apiVersion":"v1","kind":"Pod"}"#.to_vec(), 400, "BadRequest"),
    ];
    for (what, body, code, reason) in cases {
        let answer = send(&client, Method::POST, MAINTENANCES, JSON, body).await?;
        assert_eq!((answer.code, answer.reason.as_str()), (code, reason), "{what}: {answer:?}");
    }
    let answer = send(&client, Method::POST, MAINTENANCES, "text/plain", whole.into_bytes()).await?;
    assert_eq!((answer.code, answer.reason.as_str()), (415, "UnsupportedMediaType"), "{answer:?}");
    assert_eq!(send(&client, Method::GET, &format!("{MAINTENANCES}/hostile"), JSON, vec![]).await?.code, 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_the_wrong_type_are_refused_by_name() -> Result<()> {
    let client = shared().await?.drydock.direct().await?;
    let wrong = [
        ("/metadata/labels", json!({"a": 1})),
        ("/metadata/name", json!(["hostile-types"])),
        ("/spec", json!("all nodes")),
        ("/spec/stage", json!(3)),
        ("/spec/nodeSelector/nodeSelectorTerms", json!({"a": "b"})),
    ];
    for (pointer, value) in wrong {
        let mut object = node_maintenance("hostile-types", "Idle", &["nowhere"]);
        object["metadata"]["labels"] = json!({});
        if let Some(field) = object.pointer_mut(pointer) {
            *field = value;
        }
        let answer = send(&client, Method::POST, MAINTENANCES, JSON, object.to_string().into_bytes()).await?;
        assert_eq!((answer.code, answer.reason.as_str()), (400, "BadRequest"), "{pointer}: {answer:?}");
        let field = pointer.rsplit('/').next().unwrap_or_default();
        assert!(answer.message.contains(field), "{pointer}: {answer:?}");
    }
    assert_eq!(
        send(&client, Method::GET, &format!("{MAINTENANCES}/hostile-types"), JSON, vec![]).await?.code,
        404
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_keys_are_warned_of_or_refused_as_the_caller_wants() -> Result<()> {
    let client = shared().await?.drydock.direct().await?;
    let twice = node_maintenance("twice", "Idle", &["nowhere"])
        .to_string()
        .replace(r#""reason":"a test""#, r#""reason":"first","reason":"second""#);
    let strict = format!("{MAINTENANCES}?fieldValidation=Strict");
    let answer = send(&client, Method::POST, &strict, JSON, twice.clone().into_bytes()).await?;
    assert_eq!((answer.code, answer.reason.as_str()), (400, "BadRequest"), "{answer:?}");
    assert!(answer.message.contains(r#"strict decoding error: duplicate field "spec.reason""#), "{answer:?}");
    assert_eq!(send(&client, Method::GET, &format!("{MAINTENANCES}/twice"), JSON, vec![]).await?.code, 404);
    let dry = format!("{MAINTENANCES}?dryRun=All");
    let answer = send(&client, Method::POST, &dry, JSON, twice.into_bytes()).await?;
    assert_eq!(answer.code, 201, "{answer:?}");
    assert!(answer.warnings.contains(r#"duplicate field \"spec.reason\""#), "{answer:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_not_the_uid_of_the_pod_is_refused() -> Result<()> {
    let shared = shared().await?;
    let client = shared.drydock.direct().await?;
    let path = "/apis/coordination.k8s.io/v1alpha1/namespaces/default/evictionrequests";
    let uid = "33333333-7f3e-4f5e-9d0e-0123456789ab";
    let mut request = eviction_request("p", uid, "test.example.com");
    request["metadata"]["name"] = "p".into();
    let answer = send(&client, Method::POST, path, JSON, request.to_string().into_bytes()).await?;
    assert_eq!((answer.code, answer.reason.as_str()), (422, "Invalid"), "{answer:?}");
    assert!(answer.message.contains(r#"metadata.name: Invalid value: "p": must be equal to"#), "{answer:?}");
    request["metadata"] = json!({"generateName": "p-"});
    let answer = send(&client, Method::POST, path, JSON, request.to_string().into_bytes()).await?;
    assert_eq!((answer.code, answer.reason.as_str()), (422, "Invalid"), "{answer:?}");
    for name in ["p", uid] {
        assert_eq!(send(&client, Method::GET, &format!("{path}/{name}"), JSON, vec![]).await?.code, 404);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn illegal_steps_of_a_status_are_refused_and_change_nothing() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("hostile-status").await?;
    let uid = namespace.held_request("p", &shared.node("hostile-status").await?).await?;
    let client = shared.drydock.direct().await?;
    let path = format!("/apis/coordination.k8s.io/v1alpha1/namespaces/hostile-status/evictionrequests/{uid}");
    let before = settled(&namespace, &uid).await?;
    let evicted = |status: &str, kind: &str| json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let steps = [
        ("the last before the first is done", json!({"activeInterceptors": ["imperative-eviction.k8s.io"]})),
        (
            "two at a time",
            json!({"activeInterceptors": ["absent.example.com", "imperative-eviction.k8s.io"]}),
        ),
        ("nobody's turn", json!({"activeInterceptors": []})),
        ("others than were chosen", json!({"targetInterceptors": [{"name": "mine.example.com"}]})),
        ("one that never had its turn", json!({"processedInterceptors": ["imperative-eviction.k8s.io"]})),
        ("the generation of tomorrow", json!({"observedGeneration": 99})),
        ("two ends", json!({"conditions": [evicted("True", "Evicted"), evicted("True", "Canceled")]})),
    ];
    for (what, status) in steps {
        let patch = json!({"status": status}).to_string().into_bytes();
        let answer = send(&client, Method::PATCH, &format!("{path}/status"), MERGE, patch).await?;
        assert_eq!((answer.code, answer.reason.as_str()), (422, "Invalid"), "{what}: {answer:?}");
        assert!(answer.message.contains("status."), "{what}: {answer:?}");
    }
    let after = settled(&namespace, &uid).await?;
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_that_goes_back_is_refused_and_changes_nothing() -> Result<()> {
    let shared = shared().await?;
    let client = shared.drydock.direct().await?;
    let kubectl = shared.kubectl();
    kubectl.apply(&node_maintenance("hostile-stage", "Cordon", &["nowhere"])).await?;
    let back = json!({"spec": {"stage": "Idle"}}).to_string().into_bytes();
    let path = format!("{MAINTENANCES}/hostile-stage");
    let answer = send(&client, Method::PATCH, &path, MERGE, back).await?;
    assert_eq!((answer.code, answer.reason.as_str()), (422, "Invalid"), "{answer:?}");
    assert!(answer.message.contains("spec.stage"), "{answer:?}");
    let after = kubectl.object("nm", "hostile-stage").await?;
    assert_eq!((&after["spec"]["stage"], &after["metadata"]["generation"]), (&json!("Cordon"), &json!(1)));
    kubectl.ok(&["delete", "nm", "hostile-stage"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_is_no_request() -> Result<()> {
    let drydock = &shared().await?.drydock;
    let mut link = Link::new(&drydock.url())?;
    link.mend_for(200_000).await?;
    let client = drydock.direct_at(&link.url, Kubeconfig::read_from(drydock.host.admin())?).await?;
    let mut long = node_maintenance("broken-off", "Idle", &["nowhere"]);
    long["spec"]["reason"] = "x".repeat(1_000_000).into();
    let request =
        Request::post(MAINTENANCES).header(CONTENT_TYPE, JSON).body(long.to_string().into_bytes())?;
    assert!(client.send(request.map(Into::into)).await.is_err(), "half a request was answered");
    let client = drydock.direct().await?;
    let answer = send(&client, Method::GET, &format!("{MAINTENANCES}/broken-off"), JSON, vec![]).await?;
    assert_eq!(answer.code, 404, "{answer:?}");
    Ok(())
}

/// The request as it is once its controller has said all that there is to say.
async fn settled(namespace: &Namespace, uid: &str) -> Result<Value> {
    namespace.kubectl.ok(&["wait", "evreq", uid, "--for=jsonpath={.metadata.labels.app}=p"]).await?;
    namespace.kubectl.object("evreq", uid).await
}

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: Vec<u8>,
) -> Result<Answer> {
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, media_type).body(body)?;
    let response = client.send(request.map(Into::into)).await?;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().filter_map(|w| w.to_str().ok());
    let warnings = warnings.collect::<Vec<_>>().join("; ");
    let body = response.into_body().collect().await?.to_bytes();
    let status: Value = serde_json::from_slice(&body)?;
    let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
    Ok(Answer { code, reason: text("reason"), message: text("message"), warnings })
}
