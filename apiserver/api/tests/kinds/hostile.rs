//! Attacks on the two kinds with large bodies: lists, names and selectors that were not limited.

use std::time::Duration;

use drydock_api::eviction_request::interceptors::AllowedNames;
use drydock_api::eviction_request::status_validation::StatusUpdate;
use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStrategy};
use drydock_api::node_maintenance::{NodeMaintenanceStrategy, NodeSelector, limits, node_selector};
use drydock_machinery::decode::{Decoded, Format, decode};
use drydock_machinery::field::Path;
use drydock_machinery::kind::Kind;
use drydock_machinery::strategy::Strategy;
use drydock_machinery::{ApiError, Object};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Code with quadratic time takes minutes.
const AMPLE: Duration = Duration::from_secs(10);

/// The processor time that this thread has had: how busy the machine is does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn read(kind: &dyn Kind, field: &str, value: &str) -> Result<Decoded, ApiError> {
    let (outer, inner) = field.split_once('.').unwrap();
    let body = format!(r#"{{"metadata":{{"name":"a"}},"{outer}":{{"{inner}":{value}}}}}"#);
    decode(body.as_bytes(), Format::Json, kind.names(), kind.schema())
}

fn refusal(kind: &dyn Kind, field: &str, value: &str) -> String {
    let start = processor_time();
    let error = read(kind, field, value).unwrap_err();
    assert!(processor_time() - start < AMPLE);
    assert_eq!(error.code(), 422, "{error}");
    error.status.message.split_once(" is invalid: ").unwrap().1.to_owned()
}

fn list(item: &str, items: usize) -> String {
    format!("[{}]", vec![item; items].join(","))
}

/// Regression: `"requesters":[{},{},...]` needed 1.4 GB of memory.
#[test]
fn no_list_is_made_longer_than_its_kind_takes() {
    let evictions = EvictionRequestStrategy::new(Duration::from_secs(1200)).into_kind();
    for (field, item, max) in [
        ("spec.requesters", "{}", 100),
        ("spec.requesterUsers", "{}", 100),
        ("status.targetInterceptors", "{}", 17),
        ("status.interceptors", "null", 17),
        ("status.processedInterceptors", "\"a\"", 17),
        ("status.activeInterceptors", "\"a\"", 1),
        ("status.conditions", "{}", 100),
    ] {
        let plural = if max == 1 { "item" } else { "items" };
        let why = format!("{field}: Too many: 700000: must have at most {max} {plural}");
        assert_eq!(refusal(&evictions, field, &list(item, 700_000)), why);
    }
    let maintenances = NodeMaintenanceStrategy.into_kind();
    for (field, item, max) in [
        ("spec.drainPlan", "{}", 512),
        ("status.nodeStatuses", "{}", 4000),
        ("status.stageStatuses", "{}", 4),
        ("status.conditions", "{}", 100),
    ] {
        let why = format!("{field}: Too many: 700000: must have at most {max} items");
        assert_eq!(refusal(&maintenances, field, &list(item, 700_000)), why);
    }
}

#[test]
fn selectors_are_not_made_longer_than_they_may_be() {
    let selector = |terms: &str| format!(r#"{{"nodeSelectorTerms":{terms}}}"#);
    let term = |expressions: &str| selector(&format!(r#"[{{"matchExpressions":{expressions}}}]"#));
    let values = |list: &str| term(&format!(r#"[{{"key":"a","operator":"In","values":{list}}}]"#));
    let path = "spec.nodeSelector.nodeSelectorTerms";
    for (given, why) in [
        (selector(&list("{}", 1001)), format!("{path}: Too many: 1001: must have at most 1000 items")),
        (
            term(&list("{}", 1001)),
            format!("{path}[0].matchExpressions: Too many: 1001: must have at most 1000 items"),
        ),
        (
            values(&list("\"v\"", 4097)),
            format!("{path}[0].matchExpressions[0].values: Too many: 4097: must have at most 4096 items"),
        ),
    ] {
        assert_eq!(refusal(&NodeMaintenanceStrategy.into_kind(), "spec.nodeSelector", &given), why);
    }
}

/// Each planning matches the whole selector against every node.
#[test]
fn the_requirements_and_values_of_a_node_selector_are_bounded_together() {
    let selector = |terms: usize, expressions: usize, values: usize| -> NodeSelector {
        let expression = json!({"key": "a", "operator": "In", "values": vec!["v"; values]});
        let term = json!({"matchExpressions": vec![expression; expressions]});
        serde_json::from_value(json!({"nodeSelectorTerms": vec![term; terms]})).unwrap()
    };
    let check = |selector: &NodeSelector| node_selector::validate(selector, &Path::new("s"));
    assert!(check(&selector(limits::MAX_REQUIREMENTS, 1, 1)).is_empty());
    assert!(check(&selector(1, 1, limits::MAX_VALUES)).is_empty());
    for (selector, why) in [
        (selector(11, 100, 1), "at most 1000 requirements together, and have 1100"),
        (selector(5, 1, 1000), "at most 4096 values together, and have 5000"),
    ] {
        let errors = check(&selector);
        assert_eq!(errors.len(), 1);
        let text = errors[0].to_string();
        assert_eq!(text, format!("s.nodeSelectorTerms: Forbidden: the selectors may have {why}"));
    }
}

/// As above, for every pod. Many small errors in each entry give one short answer.
#[test]
fn the_selectors_of_a_drain_plan_are_bounded_together() {
    let entry = |priority: usize| {
        let expression = json!({"key": "/", "operator": "x", "values": ["!"]});
        json!({"podPriority": priority, "podSelector": {"matchExpressions": vec![expression; 3]}})
    };
    let object = |entries: usize| {
        let plan: Vec<Value> = (0..entries).map(entry).collect();
        let spec = json!({"nodeSelector": {"nodeSelectorTerms": [{}]}, "drainPlan": plan});
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        Object::from(object.as_object().unwrap().clone())
    };
    let kind = NodeMaintenanceStrategy.into_kind();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let errors = kind.validate_create(&object(400), now);
    assert_eq!(
        errors[0].to_string(),
        "spec.drainPlan: Forbidden: the selectors may have at most 1000 requirements together, and have 1200"
    );
    let errors = kind.validate_create(&object(300), now);
    let answer = ApiError::invalid("g", "k", "n", errors).to_json();
    assert!(answer.len() < 1 << 20, "{}", answer.len());
}

/// Regression: three megabytes of short names took minutes.
#[test]
fn processed_interceptors_are_counted_before_they_are_compared() {
    let names: Vec<String> = (0..400_000).map(|n| format!("{n:x}")).collect();
    let request = |processed: &[String]| -> EvictionRequest {
        serde_json::from_value(json!({
            "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest", "metadata": {"name": "a"},
            "spec": {"target": {}}, "status": {"processedInterceptors": processed},
        }))
        .unwrap()
    };
    let (new, old) = (request(&names), request(&[]));
    let update = StatusUpdate {
        new: &new,
        old: &old,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        heartbeat_deadline: Duration::from_secs(1200),
        allowed: &AllowedNames::default(),
    };
    let start = processor_time();
    let errors = update.validate();
    assert!(processor_time() - start < AMPLE);
    assert_eq!(
        errors[0].to_string(),
        "status.processedInterceptors: Too many: 400000: must have at most 17 items"
    );
}
