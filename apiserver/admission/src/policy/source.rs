//! Reads and compiles the host's policies and bindings (k8s.io/apiserver
//! pkg/admission/plugin/policy/generic/policy_source.go).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use drydock_serving::tasks::ProgramTasks;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::{Api, Client, ResourceExt};
use tokio::sync::{Notify, watch};

use super::compiled::{Binding, CompiledPolicy, PolicyHook, binding, compile};
use super::param_reflector::{ParamReflector, ParamScope};
use super::params::ParamKind;
use crate::cel::stack;
use crate::matching::{Criteria, ServedKinds};
use crate::reflectors::HostReflector;

/// Pause before a kind that the host did not have is looked up again.
const RETRY: Duration = Duration::from_secs(1);

/// Longest wait for the first lists of params.
const FIRST_LISTS: Duration = Duration::from_secs(5);

/// Keeps `hooks` up to date with the host's policies. The returned receiver changes to `true` when they are known for
/// the first time.
pub fn follow(
    host: Client,
    served: Vec<(String, String, String)>,
    hooks: Arc<ArcSwapOption<Vec<PolicyHook>>>,
    tasks: &ProgramTasks,
) -> watch::Receiver<bool> {
    let (ready_tx, ready_rx) = watch::channel(false);
    let changed = Arc::new(Notify::new());
    let policies = HostReflector::start("admission policies", Api::all(host.clone()), changed.clone(), tasks);
    let what = "bindings of admission policies";
    let bindings = HostReflector::start(what, Api::all(host.clone()), changed.clone(), tasks);
    let mut source = PolicySource {
        host,
        tasks: tasks.clone(),
        served,
        policies,
        bindings,
        compiled: HashMap::new(),
        kinds: HashMap::new(),
        params: HashMap::new(),
        started: Vec::new(),
    };
    tasks.spawn_endless("compilation of admission policies", async move {
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

/// `apiVersion` and `kind`.
type NamedKind = (String, String);

struct PolicySource {
    host: Client,
    tasks: ProgramTasks,
    served: Vec<(String, String, String)>,
    policies: HostReflector<ValidatingAdmissionPolicy>,
    bindings: HostReflector<ValidatingAdmissionPolicyBinding>,
    /// By name and resourceVersion.
    compiled: HashMap<(String, String), Arc<CompiledPolicy>>,
    /// Kinds of parameters.
    kinds: HashMap<NamedKind, ParamKind>,
    /// Parameters, by their kind and by what a binding refers to.
    params: HashMap<(NamedKind, ParamScope), Arc<ParamReflector>>,
    /// Of these, the ones that have been started and not been waited for.
    started: Vec<Arc<ParamReflector>>,
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
        let (mut hooks, mut used) = (Vec::new(), HashSet::new());
        for policy in policies {
            let Some(mut bindings) = by_policy.remove(&policy.name_any()) else { continue };
            let Some(policy) = self.compiled(policy).await? else { continue };
            bindings.sort_by(|a, b| a.name.cmp(&b.name));
            let (param_kind, misconfigured) = self.param_kind_of(&policy).await;
            if let (Some(named), Some(kind)) = (&policy.param_kind, &param_kind) {
                bindings.iter_mut().for_each(|binding| self.follow_params(binding, named, kind, &mut used));
            }
            hooks.push(PolicyHook { policy, bindings, param_kind, misconfigured });
        }
        self.first_lists().await;
        let complete = hooks.iter().all(|hook| hook.misconfigured.is_none());
        self.forget(&hooks, &used);
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

    async fn param_kind_of(&mut self, policy: &CompiledPolicy) -> (Option<ParamKind>, Option<String>) {
        let Some(named) = &policy.param_kind else { return (None, None) };
        if let Some(known) = self.kinds.get(named) {
            return (Some(known.clone()), None);
        }
        match ParamKind::find(&self.host, &named.0, &named.1).await {
            Ok(kind) => {
                self.kinds.insert(named.clone(), kind.clone());
                (Some(kind), None)
            }
            Err(why) => (None, Some(why)),
        }
    }

    /// Gives a binding its parameters, and starts to follow them if no other binding refers to the same. Adds them to those
    /// that are `used`.
    fn follow_params(
        &mut self,
        binding: &mut Binding,
        named: &NamedKind,
        kind: &ParamKind,
        used: &mut HashSet<(NamedKind, ParamScope)>,
    ) {
        let Some(wanted) = &binding.param_ref else { return };
        binding.params = Some(kind.scope(wanted).map(|scope| {
            let key = (named.clone(), scope.clone());
            used.insert(key.clone());
            if let Some(known) = self.params.get(&key) {
                return known.clone();
            }
            let (host, resource) = (self.host.clone(), kind.resource.clone());
            let started = Arc::new(ParamReflector::start(host, resource, scope, &self.tasks));
            self.params.insert(key, started.clone());
            self.started.push(started.clone());
            started
        }));
    }

    /// Waits until the params that bindings have begun to refer to have been listed: the policies that are in force stay so
    /// until then.
    async fn first_lists(&mut self) {
        let started = std::mem::take(&mut self.started);
        let listed = futures::future::join_all(started.iter().map(|params| params.ready()));
        if tokio::time::timeout(FIRST_LISTS, listed).await.is_err() {
            tracing::warn!(
                "params of a policy have not been listed yet; its failurePolicy decides until they are"
            );
        }
    }

    /// Removes the policies and parameters that are no longer used.
    fn forget(&mut self, hooks: &[PolicyHook], used: &HashSet<(NamedKind, ParamScope)>) {
        self.compiled.retain(|(name, version), _| {
            hooks.iter().any(|hook| hook.policy.name == *name && hook.policy.version == *version)
        });
        self.kinds.retain(|kind, _| hooks.iter().any(|hook| hook.policy.param_kind.as_ref() == Some(kind)));
        self.params.retain(|key, _| used.contains(key));
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
