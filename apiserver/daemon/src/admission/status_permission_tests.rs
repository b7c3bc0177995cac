//! Tests of the reviews that a write needs, and of the message of a refusal.

#![allow(clippy::unwrap_used)]
use std::time::{Duration, Instant};

use drydock_api::eviction_request::{EvictionRequestStrategy, NAMES};
use drydock_machinery::Object;
use drydock_machinery::strategy::Strategy;
use drydock_server::admission::{AdmissionOperation, RequestOptions};
use drydock_server::audit::AuditContext;
use drydock_server::request::warnings::Warnings;
use drydock_serving::request::query::Query;
use serde_json::{Value, json};

use super::*;
use crate::admission::asked::{Asked, caller, host_by};

/// A status in which `a.example.com` is active.
fn stored() -> Value {
    json!({
        "targetInterceptors": [{"name": "a.example.com"}, {"name": "imperative-eviction.k8s.io"}],
        "activeInterceptors": ["a.example.com"],
        "interceptors": [{"name": "a.example.com", "message": ""}, {"name": "imperative-eviction.k8s.io", "message": ""}],
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut status = stored();
    *status.pointer_mut(field).unwrap() = value;
    status
}

fn object(name: &str, status: &Value) -> Object {
    let object = json!({"metadata": {"name": name, "namespace": "demo"}, "status": status});
    Object::from_json(object.to_string().as_bytes()).unwrap()
}

/// A writer of statuses, and the host that reviews its permissions.
struct Writer {
    check: StatusPermission,
    groups: Vec<&'static str>,
    asked: Asked,
}

impl Writer {
    fn allowed(rule: impl Fn(&Value) -> bool + Clone + Send + 'static) -> Self {
        let (authorizer, asked) = host_by(move |spec| rule(&spec["resourceAttributes"]));
        Self { check: StatusPermission::new(authorizer), groups: vec![], asked }
    }

    async fn write(&self, verb: &'static str, name: &str, status: &Value) -> Result<(), ApiError> {
        let (new, old) = (object(name, status), object(name, &stored()));
        self.admit(verb, "status", &new, Some(&old)).await
    }

    async fn admit(
        &self,
        verb: &'static str,
        subresource: &'static str,
        new: &Object,
        old: Option<&Object>,
    ) -> Result<(), ApiError> {
        let (caller, kind) =
            (caller("ann<", &self.groups), EvictionRequestStrategy::new(Duration::ZERO).into_kind());
        let (query, warnings, audit_context) =
            (Query::parse(""), Warnings::default(), AuditContext::default());
        let attributes = AdmissionAttributes {
            caller: &caller,
            user: &caller.user,
            operation: if old.is_some() { AdmissionOperation::Update } else { AdmissionOperation::Create },
            verb,
            kind: &kind,
            names: &NAMES,
            requested: &NAMES,
            versions: None,
            subresource,
            namespace: "demo",
            name: new.name(),
            old,
            new: Some(new),
            dry_run: false,
            options: RequestOptions::Write(&query),
            deadline: Instant::now() + Duration::from_secs(60),
            warnings: &warnings,
            audit: &audit_context,
        };
        self.check.admit(&attributes).await
    }
}

fn about(subresource: &str, verb: &str, namespace: Option<&str>, name: Option<&str>) -> Value {
    let mut about = json!({"verb": verb, "group": "coordination.k8s.io", "version": "v1alpha1",
                           "resource": "evictionrequests", "subresource": subresource});
    let fields = [("namespace", namespace), ("name", name)];
    fields.iter().for_each(|(field, value)| value.iter().for_each(|value| about[*field] = (*value).into()));
    about
}

#[tokio::test]
async fn an_interceptor_is_asked_about_once_however_many_requests_it_reports_on() {
    let writer = Writer::allowed(|about| about["subresource"] == "interceptor");
    for name in ["x", "y", "z"] {
        for message in ["one", "two"] {
            writer.write("patch", name, &with("/interceptors/0/message", message.into())).await.unwrap();
        }
    }
    let expected = about("interceptor", "patch", Some("demo"), Some("a.example.com"));
    assert_eq!(writer.asked.all(), [expected]);
}

#[tokio::test]
async fn assignment_is_asked_about_in_the_whole_cluster_and_by_the_requests_own_verb() {
    let writer = Writer::allowed(|about| about["verb"] == "update");
    let next = with("/activeInterceptors/0", "imperative-eviction.k8s.io".into());
    writer.write("update", "x", &next).await.unwrap();
    writer.write("patch", "x", &next).await.unwrap_err();
    let expected = ["update", "patch"].map(|verb| about("assignment", verb, None, None));
    assert_eq!(writer.asked.all(), expected);
}

/// Regression: the owner of a namespace, with * on * in it, wrote "all is well" into the entry of imperative-eviction,
/// and the blocker of a pod that a budget protected disappeared.
#[tokio::test]
async fn an_interceptor_of_the_clusters_own_is_asked_about_in_the_whole_cluster() {
    let writer = Writer::allowed(|about| about["namespace"] == "demo");
    let refused = writer.write("patch", "x", &with("/interceptors/1/message", "all is well".into())).await;
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("kubectl create clusterrole imperative-eviction.k8s.io"), "{why}");
    let expected = about("interceptor", "patch", None, Some("imperative-eviction.k8s.io"));
    assert_eq!(writer.asked.all(), [expected]);
}

/// Regression: the creator of an object could invent managed fields of the status.
#[tokio::test]
async fn a_create_that_brings_owners_of_a_status_needs_the_permission_too() {
    let writer = Writer::allowed(|_| false);
    let fields = |fields: &Value| {
        json!({"manager": "thief", "operation": "Apply", "subresource": "status",
        "apiVersion": "coordination.k8s.io/v1alpha1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let made = |fields: Value| {
        let made = json!({"metadata": {"name": "x", "namespace": "demo", "managedFields": [fields]}});
        Object::from_json(made.to_string().as_bytes()).unwrap()
    };
    let spec = made(fields(&json!({"f:spec": {"f:requesters": {}}})));
    writer.admit("create", "", &spec, None).await.unwrap();
    let status = made(fields(&json!({"f:status": {"f:activationTime": {}}})));
    writer.admit("create", "", &status, None).await.unwrap_err();
    assert_eq!(writer.asked.all(), [about("assignment", "update", None, None)]);
}

#[tokio::test]
async fn a_write_of_nothing_and_one_of_system_masters_are_asked_about_by_nobody() {
    let mut writer = Writer::allowed(|_| false);
    writer.write("update", "x", &stored()).await.unwrap();
    writer.groups = vec!["system:masters"];
    writer.write("update", "x", &with("/activeInterceptors", json!([]))).await.unwrap();
    assert!(writer.asked.all().is_empty());
}

#[tokio::test]
async fn each_permission_must_be_there() {
    let last = with(
        "/interceptors/1",
        json!({"name": "imperative-eviction.k8s.io", "message": "",
                                              "completionTime": "2026-01-01T00:00:00Z"}),
    );
    for (subresources, may) in
        [(&["interceptor"][..], false), (&["assignment"], false), (&["interceptor", "assignment"], true)]
    {
        let writer = Writer::allowed(move |about| subresources.iter().any(|it| about["subresource"] == *it));
        assert_eq!(writer.write("patch", "x", &last).await.is_ok(), may, "{subresources:?}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_permission_and_what_grants_it() {
    let writer = Writer::allowed(|_| false);
    let refused =
        writer.write("patch", "x", &with("/interceptors/0/message", "one".into())).await.unwrap_err();
    assert_eq!((refused.status.code, refused.reason()), (403, "Forbidden"));
    assert_eq!(
        refused.status.message,
        "evictionrequests.coordination.k8s.io \"x\" is forbidden: changing status.interceptors[a.example.com] requires \
         resource=\"evictionrequests/interceptor\", resourceName=\"a.example.com\", verb=\"patch\" permission: User \
         \"ann&lt;\" cannot patch resource \"evictionrequests/interceptor\" in API group \"coordination.k8s.io\" in the \
         namespace \"demo\"; kubectl create role a.example.com --namespace=demo --verb=update,patch \
         --resource=evictionrequests.coordination.k8s.io/interceptor --resource-name=a.example.com and a RoleBinding \
         grant it"
    );
    let refused = writer.write("update", "x", &with("/activeInterceptors", json!([]))).await.unwrap_err();
    assert_eq!(
        refused.status.message,
        "evictionrequests.coordination.k8s.io \"x\" is forbidden: changing status.activeInterceptors requires \
         resource=\"evictionrequests/assignment\", verb=\"update\" permission: User \"ann&lt;\" cannot update resource \
         \"evictionrequests/assignment\" in API group \"coordination.k8s.io\" at the cluster scope; kubectl create \
         clusterrole evictionrequest-assignment --verb=update,patch \
         --resource=evictionrequests.coordination.k8s.io/assignment and a ClusterRoleBinding grant it"
    );
}
