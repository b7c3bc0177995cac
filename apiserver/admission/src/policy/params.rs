//! Parameters of policies: objects of any kind of the host, which a binding names or selects
//! (k8s.io/apiserver pkg/admission/plugin/policy/generic, CollectParams).

use std::time::Duration;

use super::compiled::{Binding, ParamRef, PolicyHook};
use super::param_reflector::ParamScope;
use super::param_store::ParamJson;
use drydock_logging::with_causes;
use kube::Client;
use kube::api::ApiResource;
use kube::core::{GroupVersionKind, Selector};
use kube::discovery::{Scope, pinned_kind};

/// Longest wait of a request for the first list of what a binding has just named.
const SYNC_WAIT: Duration = Duration::from_secs(1);

/// A kind that policies use as parameters.
#[derive(Clone, Debug)]
pub struct ParamKind {
    /// The kind as the host serves it.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

impl ParamKind {
    /// Looks the kind up. Fails if the host does not have it.
    pub async fn find(host: &Client, api_version: &str, kind: &str) -> Result<Self, String> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = pinned_kind(host, &wanted).await.map_err(|error| {
            tracing::warn!(
                error = with_causes(&error),
                group,
                version,
                kind,
                "a policy's paramKind is not found on the host"
            );
            format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
        })?;
        Ok(Self { resource, namespaced: capabilities.scope == Scope::Namespaced })
    }

    /// Returns the objects that a binding refers to.
    ///
    /// # Errors
    /// The reference does not fit the kind, or refers to nothing.
    pub fn scope(&self, wanted: &ParamRef) -> Result<ParamScope, String> {
        if !self.namespaced && !wanted.namespace.is_empty() {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
        if !wanted.name.is_empty() {
            return Ok(ParamScope::new(&wanted.namespace, &wanted.name, None));
        }
        let selector = wanted.selector.clone().ok_or("one of name or selector must be provided")?;
        let selector = Selector::try_from(selector).map_err(|error| error.to_string())?;
        Ok(ParamScope::new(&wanted.namespace, "", Some(&selector)))
    }

    /// Returns the namespace of the parameters for a request in `request`; empty if they are in none.
    fn namespace_of<'a>(&self, wanted: &'a ParamRef, request: &'a str) -> Result<&'a str, String> {
        match (self.namespaced, wanted.namespace.as_str(), request) {
            (false, ..) => Ok(""),
            (true, "", "") => {
                Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned())
            }
            (true, "", request) => Ok(request),
            (true, given, _) => Ok(given),
        }
    }
}

/// Returns the parameters for a request; the policy is evaluated with each of them. `None` if the policy has no
/// parameters.
pub async fn collect(
    hook: &PolicyHook,
    binding: &Binding,
    namespace: &str,
) -> Result<Vec<Option<ParamJson>>, String> {
    let (Some(named), Some(wanted)) = (&hook.policy.param_kind, &binding.param_ref) else {
        return Ok(vec![None]);
    };
    let shown = format!("&ParamKind{{APIVersion:{},Kind:{},}}", named.0, named.1);
    let Some(kind) = &hook.param_kind else { return Err(format!("paramKind kind `{shown}` not known")) };
    let namespace = kind.namespace_of(wanted, namespace)?;
    let params = match &binding.params {
        Some(params) => params.as_ref().map_err(Clone::clone)?,
        None => return Err(format!("paramKind kind `{shown}` not known")),
    };
    if !tokio::time::timeout(SYNC_WAIT, params.ready()).await.unwrap_or(false) {
        return Err(format!("paramKind kind `{shown}` not yet synced to use for admission"));
    }
    let found = params.of(namespace)?;
    if found.is_empty() && wanted.deny_if_missing {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found.into_iter().map(Some).collect())
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::{Value, json};

    use super::*;

    fn kind(namespaced: bool) -> ParamKind {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        ParamKind { resource, namespaced }
    }

    fn reference(namespace: &str, name: &str, selector: Option<Value>) -> ParamRef {
        let selector = selector.map(|it| serde_json::from_value(it).unwrap_or_default());
        ParamRef { name: name.to_owned(), namespace: namespace.to_owned(), selector, deny_if_missing: true }
    }

    /// All objects of the kind were kept, of all namespaces.
    #[test]
    fn only_what_a_binding_names_or_selects_is_followed() {
        let scope = |wanted: &ParamRef| kind(true).scope(wanted);
        let named = ParamScope { namespace: "a".into(), name: "limits".into(), selector: String::new() };
        assert_eq!(scope(&reference("a", "limits", None)), Ok(named));
        let anywhere = ParamScope { name: "limits".into(), ..ParamScope::default() };
        assert_eq!(scope(&reference("", "limits", None)), Ok(anywhere));
        let labels = json!({ "matchLabels": { "x": "y" } });
        let selected = ParamScope { selector: "x=y".into(), ..ParamScope::default() };
        assert_eq!(scope(&reference("", "", Some(labels))), Ok(selected));
        assert!(scope(&reference("", "", None)).is_err());
        let odd = json!({ "matchExpressions": [{ "key": "x", "operator": "Near" }] });
        assert!(scope(&reference("", "", Some(odd))).is_err());
        assert!(kind(false).scope(&reference("a", "limits", None)).is_err());
    }

    #[test]
    fn the_namespace_is_that_of_the_reference_or_of_the_request() {
        let of = |namespaced: bool, given: &str, request: &str| {
            let wanted = reference(given, "limits", None);
            kind(namespaced).namespace_of(&wanted, request).map(str::to_owned)
        };
        assert_eq!(of(true, "a", "b"), Ok("a".into()));
        assert_eq!(of(true, "", "b"), Ok("b".into()));
        assert_eq!(of(false, "", "b"), Ok(String::new()));
        assert!(of(true, "", "").is_err());
    }
}
