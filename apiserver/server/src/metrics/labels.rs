//! The labels of requests, as k8s.io/apiserver pkg/endpoints/metrics has them.

use drydock_serving::request::info::{RequestInfo, Verb};
use prometheus_client::encoding::EncodeLabelSet;

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Labels {
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    component: &'static str,
}

/// The same, with whether nothing was to be stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DryRun {
    #[prometheus(flatten)]
    pub(super) request: Labels,
    pub(super) dry_run: &'static str,
}

/// Labels of `apiserver_request_total`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Total {
    #[prometheus(flatten)]
    pub(super) request: DryRun,
    pub(super) code: u16,
}

/// Labels of `apiserver_request_terminations_total`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Terminated {
    #[prometheus(flatten)]
    pub(super) request: Labels,
    pub(super) code: u16,
}

impl Labels {
    /// A patch that applies is reported under a verb of its own (k8s.io/apiserver pkg/endpoints/metrics, CleanVerb).
    pub(super) fn of_apply(self) -> Self {
        Self { verb: "APPLY".to_owned(), ..self }
    }
}

/// The labels of a request.
pub(super) fn labels(info: &RequestInfo) -> Labels {
    let scope = match info {
        i if !i.is_resource => "",
        // A name in a field selector makes no collection an object.
        i if !i.name.is_empty() && !matches!(i.verb, Verb::List | Verb::Watch) => "resource",
        i if i.verb == Verb::Create => "resource",
        i if !i.namespace.is_empty() => "namespace",
        _ => "cluster",
    };
    Labels {
        verb: reported_verb(info),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        scope,
        component: "apiserver",
    }
}

/// Returns the verb in upper case, or the HTTP method where kube-apiserver reports that instead.
fn reported_verb(info: &RequestInfo) -> String {
    match &info.verb {
        Verb::Create => "POST".to_owned(),
        Verb::Update => "PUT".to_owned(),
        // The scope distinguishes it from the deletion of one object.
        Verb::DeleteCollection => "DELETE".to_owned(),
        // Any text can stand for a method, and every one would be a series of its own.
        Verb::Other(method) if !matches!(method.as_str(), "get" | "head" | "post" | "put" | "options") => {
            "OTHER".to_owned()
        }
        verb => verb.as_str().to_ascii_uppercase(),
    }
}

/// `All`, or nothing: other values are refused anyway.
pub(super) fn dry_run(info: &RequestInfo) -> &'static str {
    if info.query.get("dryRun") == Some("All") { "All" } else { "" }
}
