//! The target pod of a request, and which interceptor evicts it.

use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::{DAEMON_SET, IMPERATIVE_EVICTION, KUBELET};
use drydock_api::node_maintenance::PodType;
use drydock_runtime::{Cacheable, Pod, Store};

/// The interceptor that evicts a pod: one for each pod, by its type. The owner reference is not verified,
/// here as in the drain plan: whether the DaemonSet exists makes no difference, because no other interceptor
/// evicts the pod.
pub(crate) fn responsible(pod: &Pod) -> &'static str {
    match pod.pod_type() {
        PodType::Static => KUBELET,
        PodType::DaemonSet => DAEMON_SET,
        PodType::Default | PodType::Unknown => IMPERATIVE_EVICTION,
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
    use std::collections::BTreeMap;

    use drydock_api::eviction_request::LocalPodReference;
    use drydock_runtime::cache::{MIRROR_ANNOTATION, OwnerRef};

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

    /// A mirror pod is a static one, even if it has a controller; and an owner of a version that is not served makes no
    /// interceptor responsible that would not act.
    #[test]
    fn each_pod_has_one_interceptor_that_evicts_it() {
        let owned = |version: &str, kind: &str| {
            let owner = OwnerRef { api_version: version.into(), kind: kind.into(), ..OwnerRef::default() };
            Pod { controller: Some(owner.into()), ..Pod::default() }
        };
        let mirror = |pod: Pod| {
            let annotations = BTreeMap::from([(MIRROR_ANNOTATION.to_owned(), "x".to_owned())]).into();
            Pod { annotations, ..pod }
        };
        for (pod, name) in [
            (Pod::default(), IMPERATIVE_EVICTION),
            (owned("apps/v1", "ReplicaSet"), IMPERATIVE_EVICTION),
            (owned("apps/v9", "DaemonSet"), IMPERATIVE_EVICTION),
            (owned("apps/v1", "DaemonSet"), DAEMON_SET),
            (mirror(Pod::default()), KUBELET),
            (mirror(owned("apps/v1", "DaemonSet")), KUBELET),
        ] {
            assert_eq!(responsible(&pod), name, "{pod:?}");
        }
    }
}
