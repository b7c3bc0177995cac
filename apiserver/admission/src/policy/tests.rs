//! Verdicts of policies, and the resulting responses.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_server::admission::Admission;
use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::request::user::User;
use serde_json::{Map, Value, json};

use super::Policies;
use super::compiled::{Binding, CompiledPolicy, PolicyHook, binding, compile};
use super::decision::PolicyResults;
use super::evaluate::{Annotation, PolicyVerdict, evaluate};
use crate::cel::library::BlockingAuthorizer;
use crate::cel::stack;
use crate::input::Input;
use crate::matching::Criteria;
use crate::metrics::Metrics;
use crate::namespaces::NamespaceSource;
use crate::reflectors::ReflectorReadiness;
use crate::testing::{TestRequest, widget};

struct NeverAllows;

impl BlockingAuthorizer for NeverAllows {
    fn authorize(&self, _: &User, _: &AuthorizationAttributes) -> Result<(bool, String), String> {
        Ok((false, String::new()))
    }
}

fn policy(spec: Value) -> CompiledPolicy {
    let whole = json!({"metadata": {"name": "p", "resourceVersion": "1"}, "spec": spec});
    let constraints = serde_json::from_value(json!({})).unwrap();
    compile(&serde_json::from_value(whole).unwrap(), Criteria::of_policy(&constraints))
}

fn bound(actions: &[&str]) -> Binding {
    let whole = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": actions}});
    binding(&serde_json::from_value(whole).unwrap())
}

fn verdict(policy: &CompiledPolicy, request: &TestRequest, params: Option<&Value>) -> PolicyVerdict {
    let input = Input::new(&request.attributes(), Arc::new(NeverAllows));
    stack::on_large_stack(|| evaluate(policy, &input, &Value::Null, params)).unwrap()
}

/// Returns the response, and the client's warnings.
fn answer(
    policy: &CompiledPolicy,
    actions: &[&str],
    request: &TestRequest,
) -> (Result<(), ApiError>, Vec<String>) {
    let attributes = request.attributes();
    let metrics = Metrics::default();
    let mut report = PolicyResults::new(&attributes, &metrics);
    report.verdict(policy, &bound(actions), verdict(policy, request, None), &mut BTreeMap::new());
    let outcome = report.outcome().map_err(|denied| denied.status(&attributes));
    (outcome, request.warnings.take())
}

fn create() -> TestRequest {
    TestRequest::create(widget("w", json!({})))
}

#[test]
fn the_first_denial_is_the_answer_with_the_reason_of_its_validation() {
    let both = policy(json!({"validations": [
        {"expression": "object.spec.size < 3", "message": "too large", "reason": "Forbidden"},
        {"expression": "false"},
    ]}));
    let (denied, warnings) = answer(&both, &["Deny"], &create());
    let status = denied.unwrap_err().status;
    let message = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too large";
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert_eq!(status.message, format!("widgets.test.io \"w\" is forbidden: {message}"));
    assert_eq!(status.details.unwrap().causes[0].message, message);
    assert!(warnings.is_empty());
}

#[test]
fn a_warning_lets_the_request_through() {
    let (outcome, warnings) =
        answer(&policy(json!({"validations": [{"expression": "false"}]})), &["Warn", "Audit"], &create());
    assert_eq!(outcome, Ok(()));
    let wanted =
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: false";
    assert_eq!(warnings, [wanted]);
}

#[test]
fn what_cannot_be_evaluated_counts_by_the_failure_policy() {
    for expression in ["object.spec.none == 1", "frobnicate(object)"] {
        let failing = |failure: &str| {
            policy(json!({"failurePolicy": failure, "validations": [{"expression": expression}]}))
        };
        let (denied, _) = answer(&failing("Fail"), &["Deny"], &create());
        let status = denied.unwrap_err().status;
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{expression}");
        assert_eq!(answer(&failing("Ignore"), &["Deny"], &create()).0, Ok(()), "{expression}");
    }
    let unknown = policy(json!({"validations": [{"expression": "frobnicate(object)"}]}));
    let message = verdict(&unknown, &create(), None).objections[0].clone().unwrap().message;
    assert!(
        message.starts_with("compilation error: compilation failed: ERROR: <input>:1:11: undeclared"),
        "{message}"
    );
}

#[test]
fn match_conditions_decide_whether_a_policy_is_asked_at_all() {
    let with = |condition: &str, failure: &str| {
        let conditions = json!([{"name": "c", "expression": condition}]);
        policy(
            json!({"failurePolicy": failure, "matchConditions": conditions, "validations": [{"expression": "false"}]}),
        )
    };
    let denies = |policy: &CompiledPolicy| answer(policy, &["Deny"], &create()).0.is_err();
    assert!(denies(&with("object.spec.size == 3", "Fail")));
    assert!(!denies(&with("object.spec.size == 4", "Fail")));
    assert!(denies(&with("object.spec.none == 4", "Fail")));
    assert!(!denies(&with("object.spec.none == 4", "Ignore")));
    // A false condition decides, even beside one that fails.
    let conditions =
        json!([{"name": "a", "expression": "object.spec.none == 1"}, {"name": "b", "expression": "false"}]);
    assert!(!denies(&policy(
        json!({"matchConditions": conditions, "validations": [{"expression": "false"}]})
    )));
    assert!(!denies(&with("namespaceObject.metadata.name == 'ns'", "Ignore")));
}

#[test]
fn a_message_that_is_no_message_gives_way_to_the_next_best() {
    for (expression, wanted) in [
        ("'  of ' + object.metadata.name + ' '", "of w"),
        ("object.spec.none", "fixed"),
        ("'two\\nlines'", "fixed"),
        ("' '", "fixed"),
    ] {
        let validations =
            json!([{"expression": "false", "message": " fixed ", "messageExpression": expression}]);
        let objection =
            verdict(&policy(json!({"validations": validations})), &create(), None).objections[0].clone();
        assert_eq!(objection.unwrap().message, wanted, "{expression}");
    }
}

#[test]
fn parameters_and_variables_are_seen() {
    let limited = policy(json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "most", "expression": "int(params.data.most)"}],
        "validations": [{"expression": "object.spec.size <= variables.most"}],
    }));
    let of = |most: &str| {
        verdict(&limited, &create(), Some(&json!({"data": {"most": most}}))).objections[0].is_none()
    };
    assert!(of("3") && !of("2"));
}

#[test]
fn audit_annotations_are_texts_or_nothing() {
    let noting = |expression: &str| {
        let notes = json!([{"key": "k", "valueExpression": expression}]);
        verdict(&policy(json!({"auditAnnotations": notes})), &create(), None).annotations
    };
    assert_eq!(
        noting("'size ' + string(object.spec.size)"),
        [Annotation::Publish("k".into(), "size 3".into())]
    );
    assert_eq!(noting("object.spec.size > 5 ? 'x' : null"), []);
    assert!(
        matches!(&noting("object.spec.size")[0], Annotation::Failed(why) if why.contains("unsupported return type: int"))
    );
    assert!(
        matches!(&noting("object.spec.none")[0], Annotation::Failed(why) if why.ends_with("no such key: none"))
    );
}

/// Counts the requests for a namespace.
#[derive(Default)]
struct CountedNamespaces(AtomicUsize);

#[async_trait]
impl NamespaceSource for CountedNamespaces {
    async fn labels(&self, _: &str) -> Result<Map<String, Value>, ApiError> {
        Ok(Map::new())
    }

    async fn object(&self, name: &str) -> Result<Value, ApiError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(json!({"metadata": {"name": name}}))
    }
}

/// Returns how often the namespace is fetched if two policies with two bindings each have `expression`.
async fn asked_for_namespace(expression: &str) -> usize {
    let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
    let constraints = serde_json::from_value(json!({"resourceRules": [rule]})).unwrap();
    let spec = json!({"validations": [{"expression": expression}]});
    let whole = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
    let hook = || PolicyHook {
        policy: Arc::new(compile(&whole, Criteria::of_policy(&constraints))),
        bindings: vec![bound(&["Deny"]), bound(&["Deny"])],
        param_kind: None,
        misconfigured: None,
    };
    let namespaces = Arc::new(CountedNamespaces::default());
    let policies = Policies {
        hooks: Arc::new(ArcSwapOption::from_pointee(vec![hook(), hook()])),
        readiness: ReflectorReadiness::new(tokio::sync::watch::channel(true).1),
        namespaces: namespaces.clone(),
        authorizer_factory: Arc::new(|_| Arc::new(NeverAllows)),
        metrics: Metrics::default(),
    };
    policies.admit(&create().attributes()).await.unwrap();
    namespaces.0.load(Ordering::Relaxed)
}

#[tokio::test]
async fn the_namespace_is_asked_for_once_and_only_if_it_is_looked_at() {
    assert_eq!(asked_for_namespace("namespaceObject.metadata.name == 'ns'").await, 1);
    assert_eq!(asked_for_namespace("object.spec.size == 3").await, 0);
}
