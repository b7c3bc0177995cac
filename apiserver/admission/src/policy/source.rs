//! Reads and compiles the host's policies and bindings (k8s.io/apiserver
//! pkg/admission/plugin/policy/generic/policy_source.go).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::{Api, Client, ResourceExt};
use tokio::sync::{Notify, watch};

use super::compiled::{Binding, CompiledPolicy, PolicyHook, binding, compile};
use super::params::Params;
use crate::cel::stack;
use crate::matching::{Criteria, ServedKinds};
use crate::reflectors::HostReflector;

/// Pause before a kind that the host did not have is looked up again.
const RETRY: Duration = Duration::from_secs(1);

/// Keeps `hooks` up to date with the host's policies. The returned receiver changes to `true` when they are known for
/// the first time.
pub fn follow(
    host: Client,
    served: Vec<(String, String, String)>,
    hooks: Arc<ArcSwapOption<Vec<PolicyHook>>>,
) -> watch::Receiver<bool> {
    let (ready_tx, ready_rx) = watch::channel(false);
    let changed = Arc::new(Notify::new());
    let policies = HostReflector::start("admission policies", Api::all(host.clone()), changed.clone());
    let bindings =
        HostReflector::start("bindings of admission policies", Api::all(host.clone()), changed.clone());
    let mut source =
        PolicySource { host, served, policies, bindings, compiled: HashMap::new(), params: HashMap::new() };
    tokio::spawn(async move {
        loop {
            let complete = if source.policies.is_ready() && source.bindings.is_ready() {
                match source.hooks().await {
                    Ok((found, complete)) => {
                        hooks.store(Some(Arc::new(found)));
                        ready_tx.send_replace(true);
                        complete
                    }
                    // The known policies stay in force: without a policy, what it denies would be admitted.
                    Err(error) => {
                        tracing::error!(error, "cannot compile a policy, trying again");
                        false
                    }
                }
            } else {
                true
            };
            // There is no notification when the host gets a missing kind, or when a thread for compiling can be
            // started.
            let retry = tokio::time::sleep(if complete { Duration::MAX } else { RETRY });
            tokio::select! {
                () = changed.notified() => {}
                () = retry => {}
                () = ready_tx.closed() => return,
            }
        }
    });
    ready_rx
}

struct PolicySource {
    host: Client,
    served: Vec<(String, String, String)>,
    policies: HostReflector<ValidatingAdmissionPolicy>,
    bindings: HostReflector<ValidatingAdmissionPolicyBinding>,
    /// By name and resourceVersion.
    compiled: HashMap<(String, String), Arc<CompiledPolicy>>,
    /// By `apiVersion` and `kind`.
    params: HashMap<(String, String), Arc<Params>>,
}

impl PolicySource {
    /// Returns the bound policies that can apply to our kinds, and whether all of them are configured correctly.
    async fn hooks(&mut self) -> Result<(Vec<PolicyHook>, bool), String> {
        let mut by_policy: BTreeMap<String, Vec<Binding>> = BTreeMap::new();
        for it in self.bindings.known.state() {
            let name = it.spec.as_ref().and_then(|spec| spec.policy_name.clone()).unwrap_or_default();
            by_policy.entry(name).or_default().push(binding(&it));
        }
        let mut policies = self.policies.known.state();
        policies.sort_by_key(|policy| policy.name_any());
        let mut hooks = Vec::new();
        for policy in policies {
            let Some(mut bindings) = by_policy.remove(&policy.name_any()) else { continue };
            let Some(policy) = self.compiled(policy).await? else { continue };
            bindings.sort_by(|a, b| a.name.cmp(&b.name));
            let (params, misconfigured) = self.params_of(&policy).await;
            hooks.push(PolicyHook { policy, bindings, params, misconfigured });
        }
        let complete = hooks.iter().all(|hook| hook.misconfigured.is_none());
        self.forget(&hooks);
        Ok((hooks, complete))
    }

    /// Returns the compiled policy; `None` if it cannot apply to our kinds.
    async fn compiled(
        &mut self,
        policy: Arc<ValidatingAdmissionPolicy>,
    ) -> Result<Option<Arc<CompiledPolicy>>, String> {
        let Some(criteria) = concerned(&policy, &self.served) else { return Ok(None) };
        let key = (policy.name_any(), policy.resource_version().unwrap_or_default());
        if let Some(known) = self.compiled.get(&key) {
            return Ok(Some(known.clone()));
        }
        let compiling =
            tokio::task::spawn_blocking(move || stack::on_large_stack(|| compile(&policy, criteria)));
        let compiled = compiling.await.map_err(|error| error.to_string())??;
        log_errors(&compiled);
        let compiled = Arc::new(compiled);
        self.compiled.insert(key, compiled.clone());
        Ok(Some(compiled))
    }

    async fn params_of(&mut self, policy: &CompiledPolicy) -> (Option<Arc<Params>>, Option<String>) {
        let Some(kind) = &policy.param_kind else { return (None, None) };
        if let Some(known) = self.params.get(kind) {
            return (Some(known.clone()), None);
        }
        match Params::follow(&self.host, &kind.0, &kind.1).await {
            Ok(params) => {
                let params = Arc::new(params);
                self.params.insert(kind.clone(), params.clone());
                (Some(params), None)
            }
            Err(why) => (None, Some(why)),
        }
    }

    /// Removes the policies and parameters that are no longer used.
    fn forget(&mut self, hooks: &[PolicyHook]) {
        self.compiled.retain(|(name, version), _| {
            hooks.iter().any(|hook| hook.policy.name == *name && hook.policy.version == *version)
        });
        self.params.retain(|kind, _| hooks.iter().any(|hook| hook.policy.param_kind.as_ref() == Some(kind)));
    }
}

fn concerned(policy: &ValidatingAdmissionPolicy, served: &ServedKinds) -> Option<Criteria> {
    let constraints = policy.spec.as_ref()?.match_constraints.as_ref()?;
    let criteria = Criteria::of_policy(constraints);
    criteria.can_apply(served).then_some(criteria)
}

/// Logs expressions that the host compiled and that do not compile here: they deny requests, or are ignored,
/// according to the failure policy.
fn log_errors(policy: &CompiledPolicy) {
    let expressions = policy.validations.iter().map(|it| &it.expression);
    let all = expressions.chain(&policy.conditions).chain(policy.annotations.iter().map(|(_, it)| it));
    for error in all.chain(policy.composed.iter().map(|(_, it)| it)).filter_map(|it| it.as_ref().err()) {
        tracing::warn!(
            policy = policy.name,
            error,
            "an expression of an admission policy does not compile here"
        );
    }
}
