//! The requests to webhooks, and the effects of their responses.
#![allow(clippy::unwrap_used)]

use base64::Engine;
use serde_json::{Value, json};

use super::error::WebhookError;
use super::patch::patched;
use super::review::{ReviewVersion, review, verify};
use crate::testing::{TestRequest, widget};

fn answered(response: Value) -> Vec<u8> {
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response})
        .to_string()
        .into_bytes()
}

fn base64(patch: &Value) -> String {
    base64::engine::general_purpose::STANDARD.encode(patch.to_string())
}

#[test]
fn a_review_shows_the_request_as_the_host_does() {
    let request = TestRequest::update(widget("w", json!({"a": "b"})), widget("w", json!({})));
    let attributes = request.attributes();
    let shown = review(ReviewVersion::V1, "u", &attributes, attributes.new);
    let wanted = json!({
        "uid": "u",
        "kind": {"group": "test.io", "version": "v1", "kind": "Widget"},
        "requestKind": {"group": "test.io", "version": "v1", "kind": "Widget"},
        "resource": {"group": "test.io", "version": "v1", "resource": "widgets"},
        "requestResource": {"group": "test.io", "version": "v1", "resource": "widgets"},
        "operation": "UPDATE", "name": "w", "namespace": "ns", "dryRun": false,
        "userInfo": {"username": "ann", "groups": ["g"]},
        "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"},
        "object": widget("w", json!({"a": "b"})).0,
        "oldObject": widget("w", json!({})).0,
    });
    assert_eq!(shown["request"], wanted);
    assert_eq!(shown["apiVersion"], "admission.k8s.io/v1");
    let gone = TestRequest::delete(widget("w", json!({})));
    assert_eq!(
        review(ReviewVersion::V1beta1, "u", &gone.attributes(), None)["request"]["object"],
        Value::Null
    );
}

#[test]
fn an_answer_is_checked_before_it_is_believed() {
    let patch = base64(&json!([]));
    for (mutating, response, wrong) in [
        (false, json!({"uid": "x", "allowed": true}), "expected response.uid=\"u\", got \"x\""),
        (
            true,
            json!({"uid": "u", "patch": patch}),
            "webhook returned response.patch but not response.patchType",
        ),
        (
            true,
            json!({"uid": "u", "patchType": "JSONPatch"}),
            "webhook returned response.patchType but not response.patch",
        ),
        (
            true,
            json!({"uid": "u", "patch": patch, "patchType": ""}),
            "webhook returned invalid response.patchType of \"\"",
        ),
        (false, json!({"uid": "u", "patch": patch}), "validating webhook may not return response.patch"),
        (
            false,
            json!({"uid": "u", "patchType": "JSONPatch"}),
            "validating webhook may not return response.patchType",
        ),
        (true, Value::Null, "webhook response was absent"),
    ] {
        assert_eq!(verify(ReviewVersion::V1, "u", mutating, &answered(response)).unwrap_err(), wrong);
    }
    let other =
        answered(json!({"uid": "u"})).iter().map(|b| *b as char).collect::<String>().replace("/v1", "/v9");
    let wrong = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v9, Kind=AdmissionReview";
    assert_eq!(verify(ReviewVersion::V1, "u", false, other.as_bytes()).unwrap_err(), wrong);
    // The version, uid and patch type of the older version's responses are not checked.
    let older =
        verify(ReviewVersion::V1beta1, "u", true, &answered(json!({"allowed": true, "patch": patch})))
            .unwrap();
    assert!(older.allowed && older.patch == b"[]");
}

#[test]
fn a_rejection_keeps_the_webhooks_status_and_never_a_success() {
    let rejection = |result: Option<Value>| match WebhookError::rejection("h", result.as_ref()) {
        WebhookError::Refused(error) => error.status,
        other => panic!("{other:?}"),
    };
    let full =
        rejection(Some(json!({"code": 409, "reason": "Conflict", "message": "m", "details": {"name": "n"}})));
    assert_eq!((full.code, full.reason.as_str()), (409, "Conflict"));
    assert_eq!(full.message, "admission webhook \"h\" denied the request: m");
    assert_eq!(full.details.unwrap().name, "n");
    let success = rejection(Some(json!({"code": 200, "status": "Success", "reason": "OK"})));
    assert_eq!((success.code, success.status.as_str()), (400, "Failure"));
    assert_eq!(success.message, "admission webhook \"h\" denied the request: OK");
    assert_eq!(rejection(None).message, "admission webhook \"h\" denied the request without explanation");
    // A leader whose token is refused begins a new term.
    let borrowed = rejection(Some(json!({"code": 409, "reason": "FencingTokenRefused", "message": "m"})));
    assert_eq!((borrowed.code, borrowed.reason.as_str()), (409, ""));
}

#[test]
fn a_patched_object_fits_the_schema_and_is_defaulted() {
    let request = TestRequest::create(widget("w", json!({})));
    let attributes = request.attributes();
    let apply = |patch: &Value, object| patched("h", attributes.kind, object, patch.to_string().as_bytes());
    let operations = json!([
        {"op": "add", "path": "/metadata/labels/x", "value": "y"},
        {"op": "remove", "path": "/spec/size"},
        {"op": "add", "path": "/spec/unknown", "value": 1},
    ]);
    let object = apply(&operations, attributes.new).unwrap().unwrap();
    assert_eq!(object.0["spec"], json!({"size": 1}));
    assert_eq!(object.labels().unwrap()["x"], "y");
    assert_eq!(apply(&json!([]), attributes.new), Ok(None));
    assert_eq!(apply(&Value::Null, attributes.new), Ok(None));
    assert!(matches!(apply(&json!({}), attributes.new), Err(WebhookError::Calling(_, 503))));
    // The failure policy applies to an invalid patch, but not to one that cannot be applied.
    assert!(matches!(apply(&json!([1]), attributes.new), Err(WebhookError::Calling(_, 503))));
    let missing = apply(&json!([{"op": "replace", "path": "/status/x", "value": 1}]), attributes.new);
    let Err(WebhookError::Internal(error)) = missing else { panic!("{missing:?}") };
    assert_eq!(
        (error.code(), error.status.message.as_str()),
        (
            500,
            "Internal error occurred: replace operation does not apply: doc is missing path: /status/x: missing value"
        )
    );
    let Err(WebhookError::Internal(error)) = apply(&operations, None) else { panic!("taken over") };
    assert_eq!(
        error.status.message,
        "Internal error occurred: admission webhook \"h\" attempted to modify the object, which is not supported for this operation"
    );
}

#[test]
fn a_patch_makes_nothing_of_another_kind() {
    let request = TestRequest::create(widget("w", json!({})));
    let attributes = request.attributes();
    let apply = |operation: Value| {
        let patch = json!([operation]).to_string();
        patched("h", attributes.kind, attributes.new, patch.as_bytes())
    };
    for (field, value, wrong) in [
        ("kind", json!("Pod"), "no kind \"Pod\" is registered for version \"test.io/v1\" in scheme"),
        ("apiVersion", json!("v1"), "no kind \"Widget\" is registered for version \"v1\" in scheme"),
        ("apiVersion", json!("a/b/c"), "unexpected GroupVersion string: a/b/c"),
        ("kind", json!(5), "couldn't get version/kind; json parse error: json: cannot unmarshal number"),
    ] {
        let replaced = apply(json!({"op": "replace", "path": format!("/{field}"), "value": value}));
        let Err(WebhookError::Internal(error)) = replaced else { panic!("{replaced:?}") };
        assert_eq!(error.code(), 500);
        let message = &error.status.message;
        assert!(message.starts_with(&format!("Internal error occurred: {wrong}")), "{message}");
    }
    let filled = apply(json!({"op": "remove", "path": "/kind"})).unwrap().unwrap();
    assert_eq!(filled.0["kind"], "Widget");
}
