//! Parameters of policies: objects of any kind of the host, with a reflector for each kind that a policy names
//! (k8s.io/apiserver pkg/admission/plugin/policy/generic, CollectParams).

use std::sync::Arc;
use std::time::Duration;

use drydock_logging::with_causes;
use drydock_machinery::selector::LabelRequirements;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::runtime::reflector::{ObjectRef, store::Writer};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::Notify;

use super::compiled::{Binding, ParamRef, PolicyHook};
use crate::matching;
use crate::reflectors::HostReflector;

/// Longest wait for the first list of a kind that a policy has just named.
const SYNC_WAIT: Duration = Duration::from_secs(1);

/// A reflector of a kind that policies use as parameters.
pub struct Params {
    kind: ApiResource,
    namespaced: bool,
    reflector: HostReflector<DynamicObject>,
}

impl Params {
    /// Starts the reflector. Fails if the host does not have the kind.
    pub async fn follow(host: &Client, api_version: &str, kind: &str) -> Result<Self, String> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let (found, capabilities) = pinned_kind(host, &wanted).await.map_err(|error| {
            tracing::warn!(
                error = with_causes(&error),
                group,
                version,
                kind,
                "a policy's paramKind is not found on the host"
            );
            format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
        })?;
        let api: Api<DynamicObject> = Api::all_with(host.clone(), &found);
        // Parameters are read for each request and not compiled, so no one needs to be notified of changes.
        let changed = Arc::new(Notify::new());
        let reflector =
            HostReflector::start_with(found.plural.clone(), api, Writer::new(found.clone()), changed);
        Ok(Self { namespaced: capabilities.scope == Scope::Namespaced, kind: found, reflector })
    }

    fn get(&self, name: &str, namespace: Option<&str>) -> Option<Value> {
        let mut wanted = ObjectRef::new_with(name, self.kind.clone());
        if let Some(namespace) = namespace {
            wanted = wanted.within(namespace);
        }
        self.reflector.known.get(&wanted).and_then(|found| shown(&found))
    }

    fn select(&self, selector: &LabelRequirements, namespace: Option<&str>) -> Vec<Value> {
        let all = self.reflector.known.state();
        let mut found: Vec<_> = all
            .iter()
            .filter(|it| namespace.is_none() || it.metadata.namespace.as_deref() == namespace)
            .filter(|it| {
                let labels = it.metadata.labels.iter().flatten();
                selector.matches_labels(Some(&labels.map(|(k, v)| (k.clone(), v.clone().into())).collect()))
            })
            .collect();
        found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        found.into_iter().filter_map(|it| shown(it)).collect()
    }
}

fn shown(object: &DynamicObject) -> Option<Value> {
    serde_json::to_value(object).ok()
}

/// Returns the parameters for a request; the policy is evaluated with each of them. `None` if the policy has no
/// parameters.
pub async fn collect(
    hook: &PolicyHook,
    binding: &Binding,
    namespace: &str,
) -> Result<Vec<Option<Value>>, String> {
    let (Some(kind), Some(wanted)) = (&hook.policy.param_kind, &binding.param_ref) else {
        return Ok(vec![None]);
    };
    let shown = format!("&ParamKind{{APIVersion:{},Kind:{},}}", kind.0, kind.1);
    let Some(params) = &hook.params else { return Err(format!("paramKind kind `{shown}` not known")) };
    let namespace = namespace_of(params, wanted, namespace)?;
    if !tokio::time::timeout(SYNC_WAIT, params.reflector.ready()).await.unwrap_or(false) {
        return Err(format!("paramKind kind `{shown}` not yet synced to use for admission"));
    }
    let found: Vec<Value> = match &wanted.selector {
        _ if !wanted.name.is_empty() => params.get(&wanted.name, namespace).into_iter().collect(),
        Some(selector) => params.select(&matching::selector(Some(selector))?, namespace),
        None => return Err("one of name or selector must be provided".to_owned()),
    };
    if found.is_empty() && wanted.deny_if_missing {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found.into_iter().map(Some).collect())
}

fn namespace_of<'a>(
    params: &Params,
    wanted: &'a ParamRef,
    request: &'a str,
) -> Result<Option<&'a str>, String> {
    match (params.namespaced, wanted.namespace.as_str(), request) {
        (false, "", _) => Ok(None),
        (false, _, _) => {
            Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned())
        }
        (true, "", "") => {
            Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                .to_owned())
        }
        (true, "", request) => Ok(Some(request)),
        (true, given, _) => Ok(Some(given)),
    }
}
