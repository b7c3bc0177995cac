//! The host's admission configurations take effect on our kinds as they do on the host's own: each request is
//! sent for an EvictionRequest, which we serve, and for a Lease, which the host serves, and both answers are
//! compared.

mod audited;
mod cluster_scoped;
mod interceptor_annotations;
mod policies;
pub mod webhook_server;
mod webhooks;

use std::cell::RefCell;

use anyhow::{Context, Result};
use drydock_testkit::wait::retry;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::shared::{LIMIT, Namespace};

/// An answer as a client sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    pub body: Value,
}

/// Sends a request; a patch is a merge patch.
pub async fn send(client: &Client, method: Method, uri: &str, body: Option<&Value>) -> Result<Answer> {
    let type_ = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(uri).header("content-type", type_);
    let (parts, body) = client.send(request.body(Body::from(bytes))?).await?.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let warnings = parts.headers.get_all("warning").iter();
    Ok(Answer {
        code: parts.status.as_u16(),
        warnings: warnings.map(|text| Ok(text.to_str()?.to_owned())).collect::<Result<_>>()?,
        body: serde_json::from_slice(&bytes).with_context(|| String::from_utf8_lossy(&bytes).into_owned())?,
    })
}

/// A kind, and objects of it that differ from those of the compared kind in nothing that a policy looks at.
#[derive(Clone, Debug)]
pub struct ComparedKind {
    /// Where the objects are.
    pub uri: String,
    resource: &'static str,
}

/// Ours, and the host's.
pub fn compared_kinds(namespace: &Namespace) -> [ComparedKind; 2] {
    let uri = |version: &str, resource: &str| {
        format!("/apis/coordination.k8s.io/{version}/namespaces/{}/{resource}", namespace.name)
    };
    [
        ComparedKind { uri: uri("v1alpha1", "evictionrequests"), resource: "evictionrequests" },
        ComparedKind { uri: uri("v1", "leases"), resource: "leases" },
    ]
}

impl ComparedKind {
    /// An object of this name (a uid, which both kinds take) and these labels.
    pub fn object(&self, name: &str, labels: Value) -> Value {
        let mut object = match self.resource {
            "leases" => json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {}}),
            _ => drydock_testkit::kinds::eviction_request("absent", name, "test.example.com"),
        };
        object["metadata"] = json!({"name": name, "labels": labels});
        object
    }

    /// The answer without what must differ: the kind.
    pub fn normal(&self, answer: &Answer) -> (u16, Vec<String>, Value) {
        let text = answer.body.to_string().replace(self.resource, "RESOURCE");
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let warnings = answer.warnings.iter().map(|text| text.replace(self.resource, "RESOURCE"));
        (answer.code, warnings.collect(), body)
    }
}

/// Applies a configuration of the host.
pub async fn configure(namespace: &Namespace, object: &Value) -> Result<()> {
    namespace.kubectl.apply(object).await.map(drop)
}

/// Binds a policy to parameters of kind ConfigMap, for as long as the host is there. kube-apiserver stops watching
/// parameters of a built-in kind when the last binding to them goes, and never begins again (kubernetes#130887).
pub async fn keep_params_watched(namespace: &Namespace) -> Result<()> {
    static BOUND: OnceCell<()> = OnceCell::const_new();
    let bound = async || {
        let of_kind = |kind: &str, spec: Value| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": "params-stay-watched"}, "spec": spec,
            })
        };
        let policy = json!({
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["nobodys.example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"],
            }]},
            "validations": [{"expression": "true"}],
        });
        let params = json!({"name": "none", "namespace": "default", "parameterNotFoundAction": "Allow"});
        let binding =
            json!({"policyName": "params-stay-watched", "validationActions": ["Deny"], "paramRef": params});
        configure(namespace, &of_kind("ValidatingAdmissionPolicy", policy)).await?;
        configure(namespace, &of_kind("ValidatingAdmissionPolicyBinding", binding)).await
    };
    BOUND.get_or_try_init(bound).await.copied()
}

/// Waits until a create that is tried on both kinds meets the refusal that a configuration makes of it.
pub async fn in_force(namespace: &Namespace, labels: &Value, words: &str) -> Result<()> {
    for compared in compared_kinds(namespace) {
        let last = RefCell::new(None);
        let late =
            || format!("{}: not answered with {words:?} but with {:?}", compared.resource, last.borrow());
        let name = "00000000-0000-0000-0000-000000000000";
        let uri = format!("{}?dryRun=All", compared.uri);
        let tried = compared.object(name, labels.clone());
        retry(LIMIT, late, async || {
            let answer = send(&namespace.client, Method::POST, &uri, Some(&tried)).await?;
            let met = answer.body.to_string().contains(words) || answer.warnings.join("").contains(words);
            *last.borrow_mut() = Some(answer);
            Ok(met)
        })
        .await?;
    }
    Ok(())
}
