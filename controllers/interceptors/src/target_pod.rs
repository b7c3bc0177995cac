//! The target pod of a request, and which interceptor evicts it.

use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::{DAEMON_SET, IMPERATIVE_EVICTION, KUBELET};
use drydock_api::node_maintenance::PodType;
use drydock_runtime::{Cacheable, Pod, Store};

/// The interceptor that evicts a pod: one for each pod, by its type, as in the drain plan. None while it is not known whether the
/// DaemonSet exists that the pod names: nobody touches the pod then.
pub(crate) fn responsible(pod: &Pod) -> Option<&'static str> {
    match pod.pod_type() {
        _ if pod.is_undecided() => None,
        PodType::Static => Some(KUBELET),
        PodType::DaemonSet => Some(DAEMON_SET),
        PodType::Default | PodType::Unknown => Some(IMPERATIVE_EVICTION),
    }
}

/// The target of a request, unless it is gone or terminal.
pub(crate) fn target_of(request: &EvictionRequest, pods: &Store<Pod>) -> Option<Arc<Pod>> {
    let target = request.spec.target.pod.as_ref()?;
    let pod = pods.find(request.namespace(), &target.name)?;
    (pod.uid == target.uid && !pod.is_terminal()).then_some(pod)
}

#[cfg(test)]
mod tests {
    use drydock_api::eviction_request::LocalPodReference;
    use drydock_runtime::cache::{DaemonSetOwner, OwnerRef};
    use drydock_runtime::testing::{mirror, of_daemon_set};

    use super::*;

    #[test]
    fn a_pod_that_has_the_targets_name_and_another_uid_is_not_the_target() {
        let mut request = EvictionRequest::named("ns", "u-1");
        let pods = Store::default();
        let pod = |uid: &str| Pod {
            name: "db-0".into(),
            namespace: "ns".into(),
            uid: uid.into(),
            ..Pod::default()
        };
        request.spec.target.pod = Some(LocalPodReference { name: "db-0".into(), uid: "u-1".into() });
        pods.apply(pod("u-1"));
        assert!(target_of(&request, &pods).is_some_and(|target| target.uid == "u-1"));
        pods.apply(pod("u-2"));
        assert_eq!(target_of(&request, &pods), None);
    }

    /// An owner of a version that is not served makes no interceptor responsible that would not act.
    #[test]
    fn each_pod_has_one_interceptor_that_evicts_it() {
        let owned = |version: &str, kind: &str| {
            let owner = OwnerRef { api_version: version.into(), kind: kind.into(), ..OwnerRef::default() };
            Pod { controller: Some(owner.into()), ..Pod::default() }
        };
        let owner = |daemon_set_owner| Pod { daemon_set_owner, ..owned("apps/v1", "DaemonSet") };
        for (pod, name) in [
            (Pod::default(), IMPERATIVE_EVICTION),
            (owned("apps/v1", "ReplicaSet"), IMPERATIVE_EVICTION),
            (owned("apps/v9", "DaemonSet"), IMPERATIVE_EVICTION),
            (owner(DaemonSetOwner::Gone), IMPERATIVE_EVICTION),
            (of_daemon_set("agent", "u", Pod::default()), DAEMON_SET),
            (mirror(Pod::default()), KUBELET),
            (Pod { controller: None, ..mirror(Pod::default()) }, IMPERATIVE_EVICTION),
        ] {
            assert_eq!(responsible(&pod), Some(name), "{pod:?}");
        }
        assert_eq!(responsible(&owner(DaemonSetOwner::Undecided)), None);
    }
}
