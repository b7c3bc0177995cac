//! What is written, of which object, and what an answer leads to.

use std::sync::Arc;

use drydock_interceptor_runtime::{EvictionTurn, TurnEnd};
use drydock_runtime::surge_record::SurgeRecord;
use drydock_runtime::testing;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;
use crate::turns::TurnPlace;

type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// A controller whose API server answers each request with this code, and the requests that it got.
fn controller(code: u16, reason: &'static str) -> (SurgeController, Requests) {
    let requests = Requests::default();
    let got = requests.clone();
    let context = testing::context(move |_, path, body| {
        got.lock().push((path.split('?').next().unwrap_or_default().to_owned(), body));
        match code {
            200 => (200, json!({"metadata": {"name": "d", "namespace": "n"}})),
            _ => testing::failure(code, reason),
        }
    });
    let controller = SurgeController { context, workloads: Workloads::new(), turns: TurnTable::default() };
    (controller, requests)
}

fn recorded(base: i32, floor: i32) -> FoundRecord {
    FoundRecord::Valid(SurgeRecord::new(base, floor, ["gone".to_owned()].into(), Timestamp::UNIX_EPOCH))
}

fn deployment(replicas: i32, record: FoundRecord) -> Deployment {
    Deployment {
        name: "d".into(),
        namespace: "n".into(),
        uid: "u".into(),
        resource_version: "7".into(),
        is_opted_in: true,
        max_surge: Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(1)),
        replicas,
        record,
        ..Deployment::default()
    }
}

fn autoscaler(name: &str, is_of_deployment: bool, record: FoundRecord) -> HorizontalPodAutoscaler {
    HorizontalPodAutoscaler {
        name: name.into(),
        namespace: "n".into(),
        uid: name.into(),
        resource_version: "9".into(),
        target: key(),
        is_of_deployment,
        min_replicas: 6,
        max_replicas: 9,
        record,
        ..HorizontalPodAutoscaler::default()
    }
}

fn key() -> ObjectKey {
    ObjectKey::new("n", "d")
}

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/n/deployments/d";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers/";

#[tokio::test]
async fn a_record_without_a_request_is_taken_back_in_one_update_of_the_version_that_was_read() {
    let (controller, requests) = controller(200, "");
    controller.workloads.deployments.apply(deployment(3, recorded(2, 2)));
    assert_eq!(controller.reconcile(key()).await.unwrap(), Requeue::Never);
    let patch = json!({
        "metadata": {"uid": "u", "resourceVersion": "7", "annotations": {RECORD: null}},
        "spec": {"replicas": 2},
    });
    assert_eq!(*requests.lock(), [(DEPLOYMENT.to_owned(), patch)]);
    assert_eq!(controller.context.recorder.take_all()[0].0, "SurgeEnded");
}

#[tokio::test]
async fn a_conflict_has_it_decided_again() {
    let (controller, _) = controller(409, "Conflict");
    controller.workloads.deployments.apply(deployment(3, recorded(2, 2)));
    assert_eq!(controller.reconcile(key()).await.unwrap(), Requeue::After(STALE_RETRY_AFTER));
    assert_eq!(controller.context.recorder.take_all(), [], "nothing was written");
}

/// The Deployment is deleted, or the autoscaler scales something else of its name.
#[tokio::test]
async fn an_autoscaler_without_its_deployment_gets_its_minimum_back() {
    for has_deployment in [false, true] {
        let (controller, requests) = controller(200, "");
        if has_deployment {
            controller.workloads.deployments.apply(deployment(3, FoundRecord::Absent));
        }
        let other = autoscaler("h", !has_deployment, recorded(2, 5));
        controller.workloads.autoscalers.apply(other);
        assert_eq!(controller.workloads.surged("n"), [key()].into());
        controller.reconcile(key()).await.unwrap();
        let requests = requests.lock();
        assert_eq!(requests.len(), 1, "{requests:?}");
        assert_eq!(requests[0].0, format!("{AUTOSCALERS}h"));
        assert_eq!(requests[0].1["spec"], json!({"minReplicas": 2}));
    }
}

#[tokio::test]
async fn an_autoscaler_that_comes_meanwhile_takes_the_surge_off_the_deployment() {
    let (controller, requests) = controller(200, "");
    controller.workloads.deployments.apply(deployment(3, recorded(2, 2)));
    controller.workloads.autoscalers.apply(autoscaler("h", true, FoundRecord::Absent));
    controller.reconcile(key()).await.unwrap();
    let paths: Vec<_> = requests.lock().iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(paths, [DEPLOYMENT]);
}

#[tokio::test]
async fn of_two_autoscalers_neither_is_surged() {
    let (controller, requests) = controller(200, "");
    controller.workloads.deployments.apply(deployment(6, FoundRecord::Absent));
    for name in ["h", "i"] {
        controller.workloads.autoscalers.apply(autoscaler(name, true, recorded(2, 5)));
    }
    controller.reconcile(key()).await.unwrap();
    let paths: Vec<_> = requests.lock().iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(paths, ["h", "i"].map(|name| format!("{AUTOSCALERS}{name}")));
}

/// A pod of the Deployment, with a request whose turn waits.
fn waiting(controller: &SurgeController) -> TurnPlace {
    let owner = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let named = |name: &str, uid: &str, owners: Value| json!({"metadata": {"name": name, "namespace": "n", "uid": uid, "ownerReferences": owners}});
    let set = named("s", "set-uid", owner("Deployment", "d", "u"));
    controller.workloads.replica_sets.apply(serde_json::from_value(set).unwrap());
    let pod = named("p", "pod-uid", owner("ReplicaSet", "s", "set-uid"));
    controller.context.caches.pods.apply(serde_json::from_value(pod).unwrap());
    let request = json!({
        "metadata": {"name": "pod-uid", "namespace": "n", "uid": "request-uid"},
        "spec": {"target": {"pod": {"name": "p", "uid": "pod-uid"}}, "requesters": [{"name": "r.example.com"}]},
        "status": {"activeInterceptors": [SURGE], "interceptors": [{"name": SURGE, "message": ""}]},
    });
    let request = serde_json::from_value(request).unwrap();
    let turn = EvictionTurn::unserved(controller.context.client.clone(), request);
    controller.turns.enter(key(), turn, Timestamp::UNIX_EPOCH)
}

/// The turn was declined although a conflict had kept the surge from being taken back: the replica stood for a pod that
/// nobody waited with any longer.
#[tokio::test]
async fn a_turn_beside_two_autoscalers_is_declined_once_the_surge_is_taken_back() {
    for (code, reason, again) in
        [(409, "Conflict", Requeue::After(STALE_RETRY_AFTER)), (200, "", Requeue::Never)]
    {
        let (controller, _) = controller(code, reason);
        controller.workloads.deployments.apply(deployment(6, FoundRecord::Absent));
        for name in ["h", "i"] {
            controller.workloads.autoscalers.apply(autoscaler(name, true, recorded(2, 5)));
        }
        let mut place = waiting(&controller);
        assert_eq!(controller.reconcile(key()).await.unwrap(), again, "{code}");
        let ended = place.ended().now_or_never().flatten();
        let why = "more than one HorizontalPodAutoscaler scales Deployment d".to_owned();
        assert_eq!(ended, (code == 200).then_some(TurnEnd::Declined(why)), "{code}");
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_an_event_and_no_write() {
    let (controller, requests) = controller(200, "");
    controller.workloads.deployments.apply(deployment(3, FoundRecord::Broken("at line 1".into())));
    controller.reconcile(key()).await.unwrap();
    assert_eq!(requests.lock().len(), 0);
    let events = controller.context.recorder.take_all();
    assert!(
        matches!(events.as_slice(), [("InvalidSurgeRecord", text)] if text.contains("at line 1")),
        "{events:?}"
    );
}

#[test]
fn a_budget_that_only_the_host_can_compare_with_a_pod_is_told_from_those_that_cover_it() {
    let pod: Pod = serde_json::from_value(json!({"metadata": {"labels": {"app": "a"}}})).unwrap();
    let of = |name: &str, selector: Value| -> Arc<PodDisruptionBudget> {
        let budget = json!({"metadata": {"name": name}, "spec": {"selector": selector}});
        serde_json::from_value::<PodDisruptionBudget>(budget).unwrap().into()
    };
    let values: Vec<_> = (0..10_000).map(|value| value.to_string()).collect();
    let huge = |name: &str| {
        of(name, json!({"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}))
    };
    let own = || of("own", json!({"matchLabels": {"app": "a"}}));
    let other = of("other", json!({"matchLabels": {"app": "b"}}));
    let found = Budgets::of(&pod, vec![huge("huge"), huge("huger"), other, own()]);
    assert_eq!((found.covering, found.unknown.as_deref()), (vec![own()], Some("huge")));
    assert_eq!(Budgets::of(&pod, vec![own()]).unknown, None);
}
