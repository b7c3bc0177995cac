//! ValidatingAdmissionPolicies of the host (k8s.io/apiserver pkg/admission/plugin/policy/validating).

mod compiled;
mod decision;
mod evaluate;
mod param_reflector;
mod param_store;
mod params;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_machinery::kind::Kind;
use drydock_server::admission::{Admission, AdmissionAttributes};
use serde_json::Value;

use crate::AdmissionHost;
use crate::cel::stack;
use crate::input::{AuthorizerFactory, Input};
use crate::metrics::Metrics;
use crate::namespaces::{NamespaceSource, RequestNamespace};
use crate::reflectors::ReflectorReadiness;
pub use compiled::FailurePolicy;
use compiled::{Binding, CompiledPolicy, PolicyHook};
use decision::{PolicyDenial, PolicyResults};
use evaluate::PolicyVerdict;
use param_store::ParamJson;

/// The policies that can apply to our kinds, sorted by name.
type PolicySnapshot = Arc<Vec<PolicyHook>>;

/// The admission plugin for the host's policies.
pub struct Policies {
    hooks: Arc<ArcSwapOption<Vec<PolicyHook>>>,
    readiness: ReflectorReadiness,
    namespaces: Arc<dyn NamespaceSource>,
    authorizer_factory: AuthorizerFactory,
    metrics: Metrics,
}

impl Policies {
    /// Starts the reflectors of the host's policies, bindings and parameters.
    pub fn follow(host: &AdmissionHost) -> Self {
        let hooks = Arc::new(ArcSwapOption::empty());
        let ready_rx = source::follow(host.client.clone(), host.served.clone(), hooks.clone(), &host.tasks);
        let (namespaces, authorizer_factory) = (host.namespaces.clone(), host.authorizer_factory.clone());
        Self {
            hooks,
            readiness: ReflectorReadiness::new(ready_rx),
            namespaces,
            authorizer_factory,
            metrics: host.metrics.clone(),
        }
    }

    /// Whether the policies have been read.
    pub fn readiness(&self) -> ReflectorReadiness {
        self.readiness.clone()
    }

    async fn snapshot(&self, request: &AdmissionAttributes<'_>) -> Result<PolicySnapshot, ApiError> {
        if let Some(hooks) = self.hooks.load_full() {
            return Ok(hooks);
        }
        self.readiness.wait().await;
        self.hooks.load_full().ok_or_else(|| request.forbidden("not yet ready to handle request"))
    }

    async fn ask(
        &self,
        hook: &PolicyHook,
        request: &AdmissionAttributes<'_>,
        namespace: &RequestNamespace<'_>,
        report: &mut PolicyResults<'_>,
    ) -> Result<(), ApiError> {
        let policy = &hook.policy;
        let kind = match policy.criteria.matches(request, self.namespaces.as_ref()).await {
            Ok(None) => return Ok(()),
            Err(error) => {
                report.misconfigured(policy, None, &error.to_string());
                return Ok(());
            }
            Ok(Some(kind)) => kind,
        };
        if let Some(why) = &hook.misconfigured {
            report.misconfigured(policy, None, why);
            return Ok(());
        }
        let mut annotations = BTreeMap::new();
        for binding in &hook.bindings {
            self.ask_binding(hook, binding, (request, kind), namespace, report, &mut annotations).await?;
        }
        report.annotate(policy, annotations);
        Ok(())
    }

    async fn ask_binding(
        &self,
        hook: &PolicyHook,
        binding: &Binding,
        (request, kind): (&AdmissionAttributes<'_>, &dyn Kind),
        namespace: &RequestNamespace<'_>,
        report: &mut PolicyResults<'_>,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), ApiError> {
        let policy = &hook.policy;
        let concerned = match &binding.criteria {
            None => Ok(true),
            Some(criteria) => {
                criteria.matches(request, self.namespaces.as_ref()).await.map(|kind| kind.is_some())
            }
        };
        let params = match concerned {
            Ok(false) => return Ok(()),
            Ok(true) => params::collect(hook, binding, request.namespace).await,
            Err(error) => Err(error.to_string()),
        };
        let params = match params {
            Ok(params) => params,
            Err(why) => {
                report.misconfigured(policy, Some(binding), &why);
                return Ok(());
            }
        };
        let looked_at = policy.looks_at_namespace && !params.is_empty();
        let namespace = if looked_at { namespace.object().await?.clone() } else { Value::Null };
        let write = request.convert(kind)?;
        let verdicts = self.evaluate(policy.clone(), &request.in_version(&write), namespace, params).await?;
        for verdict in verdicts {
            report.verdict(policy, binding, verdict, annotations);
        }
        Ok(())
    }

    async fn evaluate(
        &self,
        policy: Arc<CompiledPolicy>,
        request: &AdmissionAttributes<'_>,
        namespace: Value,
        params: Vec<Option<ParamJson>>,
    ) -> Result<Vec<PolicyVerdict>, ApiError> {
        let input = Input::new(request, (self.authorizer_factory)(request.caller));
        let evaluated = stack::on_evaluation_thread(request.deadline, move || {
            // One after the other: as trees they take many times their JSON.
            let read = |json: &ParamJson| serde_json::from_slice(json).map_err(|error| error.to_string());
            let verdict = |params: &Option<ParamJson>| -> Result<PolicyVerdict, String> {
                let params: Option<Value> = params.as_ref().map(read).transpose()?;
                Ok(evaluate::evaluate(&policy, &input, &namespace, params.as_ref()))
            };
            params.iter().map(verdict).collect()
        });
        evaluated.await.flatten().map_err(ApiError::internal)
    }
}

#[async_trait]
impl Admission for Policies {
    async fn admit(&self, request: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        let hooks = self.snapshot(request).await?;
        if hooks.is_empty() {
            return Ok(());
        }
        let mut report = PolicyResults::new(request, &self.metrics);
        let namespace = RequestNamespace::new(self.namespaces.as_ref(), request.namespace);
        for hook in hooks.iter() {
            self.ask(hook, request, &namespace, &mut report).await?;
        }
        report.outcome().map_err(|denied: PolicyDenial| denied.status(request))
    }
}
